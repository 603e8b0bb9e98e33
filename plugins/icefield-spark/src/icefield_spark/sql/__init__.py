"""Spark's SQL over the tables of a catalog, on stock Spark."""

from icefield_spark.sql.statements import Statements

__all__ = ["Statements"]
