"""The two roads of rows between data files and Spark (Spark's own reader and writer, or Arrow), and their choice."""
