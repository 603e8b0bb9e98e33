"""Lance files for Icefield."""
