"""Encrypted tables: the standard encryption of the Iceberg specification, and a local keystore."""
