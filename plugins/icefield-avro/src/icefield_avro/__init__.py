"""Avro files for Icefield, manifests among them."""
