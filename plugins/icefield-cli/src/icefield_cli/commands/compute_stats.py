"""Compute statistics of a table, and of its partitions where it has any, and register them with a snapshot."""

from __future__ import annotations

import click
from icefield.metadata import PartitionStatisticsFile, StatisticsFile

from icefield_cli.context import Context
from icefield_cli.options import command, id_option, names_option, table_argument
from icefield_cli.people import size

NAME = "compute-stats"
_COLUMNS = ("statistics", "snapshot_id", "bytes", "location")


@command(NAME, __doc__)
@table_argument
@names_option("--columns", "Count distinct values of these; default: of all that are primitive.")
@id_option("--snapshot", "Default: the current one.")
@click.option(
    "--only", type=click.Choice(["table", "partitions"]), help="Only those of the table, or of its partitions."
)
def run(context: Context, table: str, columns: tuple[str, ...], snapshot: int | None, only: str | None) -> None:
    """Run the command."""
    if columns and only == "partitions":
        raise click.UsageError("'--columns' is for statistics of the table; with '--only partitions' there are none")
    found = context.table(table)
    rows: list[tuple[str, StatisticsFile | PartitionStatisticsFile]] = []
    if only != "partitions":
        with context.changing(NAME):
            made = found.maintenance.compute_table_stats(list(columns) or None, snapshot)
        if made is not None:
            rows.append(("table", made))
        found = context.table(table)
    partitioned = any(spec.fields for spec in found.metadata.partition_specs)
    if only == "partitions" or (only is None and partitioned):
        with context.changing(NAME):
            parts = found.maintenance.compute_partition_stats(snapshot)
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
