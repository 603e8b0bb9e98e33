"""Tests of a tool are collected where it is installed, as `make tools` does."""

from importlib.util import find_spec

collect_ignore = [f"test_{tool}.py" for tool in ("dlt", "dagster", "airflow", "mcp", "dbt") if find_spec(tool) is None]
