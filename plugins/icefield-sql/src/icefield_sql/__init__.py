"""A metastore in SQLite or PostgreSQL for Icefield, with the tables of Iceberg's JDBC catalog."""
