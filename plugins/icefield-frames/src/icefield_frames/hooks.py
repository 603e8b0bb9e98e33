"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icefield import TableService, hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command

METHODS: Final = {
    "to_pandas": "pandas_frames",
    "to_polars": "polars_frames",
    "lazy": "polars_frames",
    "to_dataset": "datasets",
    "to_duckdb": "duckdb_relations",
    "to_datafusion": "datafusion_tables",
    "to_ray": "ray_datasets",
    "to_daft": "daft_frames",
    "to_dask": "dask_frames",
}
"""The methods that scans get, each with its module."""


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield sql``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "sql",
            "Print the result of a query in DuckDB's SQL. Tables are read, and nothing is changed.\n\n"
            'Example: icefield sql "SELECT kind, count(*) FROM db.events GROUP BY kind"',
            "icefield_frames.command:run",
            (
                Argument("query"),
                Option("limit", "The most rows; default: 20.", kind="count"),
                Option("all", "Every row.", kind="flag"),
            ),
            exclusive=(("limit", "all"),),
            prints_rows=True,
        )
    ]


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide the methods of scans that return frames, relations and data sets, and filters of two libraries."""
    return [
        *(TableService(name, f"icefield_frames.{module}:{name.upper()}", "scan") for name, module in METHODS.items()),
        TableService("write_on_workers", "icefield_frames.worker_writes:WRITE_ON_WORKERS"),
        TableService("pyarrow", "icefield_frames.arrow_filters:from_arrow", "filter"),
        TableService("polars", "icefield_frames.polars_filters:from_polars", "filter"),
    ]
