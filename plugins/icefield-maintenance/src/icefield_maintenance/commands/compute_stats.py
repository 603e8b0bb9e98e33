"""Compute statistics of a table, and of its partitions where it has any, and register them with a snapshot."""

from __future__ import annotations

from icefield.metadata import PartitionStatisticsFile, StatisticsFile
from icefield_cli import Context, WrongUsage, size

NAME = "compute-stats"
_COLUMNS = ("statistics", "snapshot_id", "bytes", "location")


def run(context: Context, table: str, columns: tuple[str, ...], snapshot_id: int | None, only: str | None) -> None:
    """Run the command."""
    if columns and only == "partitions":
        raise WrongUsage("'--columns' is for statistics of the table; with '--only partitions' there are none")
    found = context.table(table)
    rows: list[tuple[str, StatisticsFile | PartitionStatisticsFile]] = []
    if only != "partitions":
        with context.changing(NAME):
            made = found.maintenance.compute_table_stats(list(columns) or None, snapshot_id)
        if made is not None:
            rows.append(("table", made))
        found = context.table(table)
    partitioned = any(spec.fields for spec in found.metadata.partition_specs)
    if only == "partitions" or (only is None and partitioned):
        with context.changing(NAME):
            parts = found.maintenance.compute_partition_stats(snapshot_id)
        if parts is not None:
            rows.append(("partitions", parts))
    context.rows(
        (
            dict(zip(_COLUMNS, (what, file.snapshot_id, file.file_size_in_bytes, file.statistics_path), strict=True))
            for what, file in rows
        ),
        _COLUMNS,
        lambda row: {**row, "bytes": size(row["bytes"])},
    )
