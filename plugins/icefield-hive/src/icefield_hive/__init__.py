"""The Hive Metastore as a catalog for Icefield."""
