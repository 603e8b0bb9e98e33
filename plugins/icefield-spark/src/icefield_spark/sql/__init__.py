"""Spark's SQL over the tables of a catalog, on stock Spark."""
