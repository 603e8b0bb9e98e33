"""ORC files for Icefield."""
