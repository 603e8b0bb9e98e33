"""Tables of Icefield in data tools: ``icefield_tools.dlt``, ``.dagster`` and ``.airflow``."""
