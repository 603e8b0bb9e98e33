"""Compute statistics of a table, and of its partitions where it has any, and register them with a snapshot."""

from __future__ import annotations

import argparse

from icefield.metadata import PartitionStatisticsFile, StatisticsFile

from icefield_cli.context import Context

NAME = "compute-stats"
_COLUMNS = ("statistics", "snapshot_id", "bytes", "location")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument(
        "--columns", metavar="NAMES", help="count distinct values of these; default: of all that are primitive"
    )
    parser.add_argument("--snapshot", type=int, metavar="ID", help="default: the current one")
    parser.add_argument("--only", choices=("table", "partitions"), help="only those of the table, or of its partitions")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    columns = [name.strip() for name in given.columns.split(",")] if given.columns else None
    rows: list[tuple[str, StatisticsFile | PartitionStatisticsFile]] = []
    if given.only != "partitions":
        with context.changing(NAME):
            made = table.maintenance.compute_table_stats(columns, given.snapshot)
        if made is not None:
            rows.append(("table", made))
        table = context.table(given.table)
    partitioned = any(spec.fields for spec in table.metadata.partition_specs)
    if given.only == "partitions" or (given.only is None and partitioned):
        with context.changing(NAME):
            parts = table.maintenance.compute_partition_stats(given.snapshot)
        if parts is not None:
            rows.append(("partitions", parts))
    context.rows(
        (
            dict(zip(_COLUMNS, (what, file.snapshot_id, file.file_size_in_bytes, file.statistics_path), strict=True))
            for what, file in rows
        ),
        _COLUMNS,
    )
