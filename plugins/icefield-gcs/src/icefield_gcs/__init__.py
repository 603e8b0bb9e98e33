"""Google Cloud Storage for Icefield."""
