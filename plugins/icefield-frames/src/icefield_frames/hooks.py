"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icefield import TableService, hookimpl

METHODS: Final = {
    "to_pandas": "pandas_frames",
    "to_polars": "polars_frames",
    "lazy": "polars_frames",
    "to_dataset": "datasets",
    "to_duckdb": "duckdb_relations",
    "to_datafusion": "datafusion_tables",
}
"""The methods that scans get, each with its module."""


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide the methods of scans that return frames, relations and data sets, and filters of two libraries."""
    return [
        *(TableService(name, f"icefield_frames.{module}:{name.upper()}", "scan") for name, module in METHODS.items()),
        TableService("pyarrow", "icefield_frames.arrow_filters:from_arrow", "filter"),
        TableService("polars", "icefield_frames.polars_filters:from_polars", "filter"),
    ]
