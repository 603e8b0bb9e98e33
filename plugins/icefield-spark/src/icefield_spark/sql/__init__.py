"""Statements of Spark's SQL in which names are tables of a catalog."""
