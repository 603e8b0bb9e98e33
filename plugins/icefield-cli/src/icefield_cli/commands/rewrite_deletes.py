"""Write small position delete files into fewer; on request convert equality deletes, and drop what deletes nothing.

Each of the three is a commit of its own. In version 3 position deletes become deletion vectors.
"""

from __future__ import annotations

import argparse

from icefield_cli.context import Context, count

NAME = "rewrite-deletes"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument(
        "--convert-equality", action="store_true", help="first make position deletes of equality deletes"
    )
    parser.add_argument("--remove-dangling", action="store_true", help="at the end remove what applies to no data file")
    parser.add_argument("--where", metavar="FILTER", help="only deletes of partitions that may hold such rows")
    parser.add_argument(
        "--target-file-size", type=count, metavar="BYTES", help="default: as the table's properties say"
    )
    parser.add_argument("--min-input-files", type=count, default=5, metavar="N", help="default: 5")
    parser.add_argument("--all", action="store_true", help="rewrite all, whatever their sizes")
    parser.add_argument("--branch", default="main", metavar="NAME", help="default: main")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and say what would be done")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    maintenance = context.table(given.table).maintenance
    would = "would have " if given.dry_run else ""
    if given.convert_equality:
        with context.changing(NAME, dry_run=given.dry_run):
            converted = maintenance.convert_equality_deletes(given.where, dry_run=given.dry_run, branch=given.branch)
        number = converted.converted_equality_delete_files
        context.result(f"{would}converted {number:,} equality delete files", "convert-equality-deletes", converted)
        maintenance = context.table(given.table).maintenance
    with context.changing(NAME, dry_run=given.dry_run):
        packed = maintenance.rewrite_position_delete_files(
            given.where,
            target_file_size=given.target_file_size,
            min_input_files=given.min_input_files,
            rewrite_all=given.all,
            dry_run=given.dry_run,
            branch=given.branch,
        )
    number = packed.rewritten_position_delete_files + packed.rewritten_deletion_vectors
    context.result(
        f"{would}rewritten {number:,} position delete files and deletion vectors", "rewrite-position-deletes", packed
    )
    if given.remove_dangling:
        maintenance = context.table(given.table).maintenance
        with context.changing(NAME, dry_run=given.dry_run):
            removed = maintenance.remove_dangling_deletes(dry_run=given.dry_run, branch=given.branch)
        context.result(f"{would}removed deletes that delete nothing", "remove-dangling-deletes", removed)
