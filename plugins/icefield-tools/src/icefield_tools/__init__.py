"""Tables of Icefield in data tools: ``icefield_tools.dlt`` and ``icefield_tools.dagster``."""
