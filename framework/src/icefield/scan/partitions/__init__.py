"""Partitions across the specs of a table: their tuples, sums and statistics."""
