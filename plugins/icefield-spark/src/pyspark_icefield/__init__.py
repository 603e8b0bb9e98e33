"""Where PySpark looks for data sources of its own accord: the format `icefield`."""
