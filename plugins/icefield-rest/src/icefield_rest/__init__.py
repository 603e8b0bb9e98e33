"""The Iceberg REST catalog for Icefield: a client of every service that speaks its protocol."""
