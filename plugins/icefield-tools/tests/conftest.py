"""Tests of a tool are collected where it is installed, as `make tools` does."""

from importlib.util import find_spec

TOOLS = ("dlt", "dagster", "airflow", "mcp", "dbt", "sqlmesh")
collect_ignore = [f"test_{tool}.py" for tool in TOOLS if find_spec(tool) is None]
