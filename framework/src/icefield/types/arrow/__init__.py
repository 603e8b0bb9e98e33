"""Iceberg types as Arrow types, and what is done to Arrow arrays by them."""
