"""Catalogs from the configuration of PyIceberg."""
