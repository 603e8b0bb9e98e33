"""The AWS Glue Data Catalog as a catalog for Icefield."""
