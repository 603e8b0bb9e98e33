"""Parquet files for Icefield."""
