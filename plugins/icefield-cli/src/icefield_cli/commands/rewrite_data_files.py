"""Write the rows of small, too large and much deleted data files into files of about the target size.

Deleted rows are left out. With --partial-progress the command commits finished groups of files as it goes: an
interrupted run keeps these commits, and the next run continues with the remaining files.
"""

from __future__ import annotations

from typing import Any

import click

from icefield_cli.context import Context
from icefield_cli.options import (
    branch_option,
    command,
    count,
    dry_run_option,
    flag,
    names_option,
    snapshot_property_option,
    table_argument,
    where_option,
)

NAME = "rewrite-data-files"
_STRATEGIES: dict[str, Any] = {"bin-pack": "binpack", "sort": "sort", "zorder": "zorder"}
_STRATEGY = (
    "bin-pack keeps the order of rows, sort and zorder change it; default: bin-pack, or what the order asks for."
)
_ORDERS = ["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"]
_FAILED = "With --partial-progress: fail once more commits than these have failed; default: --max-commits."
_THRESHOLD = "Rewrite files with so many delete files, whatever their size."
_GOES_WITH = dict.fromkeys(("max_commits", "max_failed_commits"), ("partial_progress",))


@command(NAME, __doc__, exclusive=(("sort", "zorder_columns"),), goes_with=_GOES_WITH)
@table_argument
@click.option("--strategy", type=click.Choice(list(_STRATEGIES)), help=_STRATEGY)
@click.option(
    "--sort",
    metavar="FIELD",
    multiple=True,
    help="Such as 'ts desc nulls last'; repeatable; default: the table's order.",
)
@names_option("--zorder", "Cluster by all of these columns, separated by commas.", "zorder_columns")
@where_option("Only files that may hold such rows.")
@click.option("--target-file-size", type=count, metavar="BYTES", help="Default: as the table's properties say.")
@click.option(
    "--min-file-size", type=count, metavar="BYTES", help="Smaller files are rewritten; default: 75 % of the target."
)
@click.option(
    "--max-file-size", type=count, metavar="BYTES", help="Larger files are rewritten; default: 180 % of the target."
)
@click.option(
    "--min-input-files", type=count, default=5, metavar="N", help="The fewest files worth a rewrite; default: 5."
)
@click.option("--delete-file-threshold", type=count, metavar="N", help=_THRESHOLD)
@click.option(
    "--delete-ratio-threshold",
    type=float,
    default=0.3,
    metavar="RATIO",
    help="Rewrite files of whose rows so many are deleted; default: 0.3.",
)
@click.option(
    "--max-group-size",
    type=count,
    metavar="BYTES",
    help="The most that is rewritten at once; default: as the strategy needs.",
)
@flag("--partial-progress", "Commit what is done so far as it goes, not all at the end.")
@click.option(
    "--max-commits", type=count, default=10, metavar="N", help="With --partial-progress: the most commits; default: 10."
)
@click.option("--max-failed-commits", type=count, metavar="N", help=_FAILED)
@click.option(
    "--max-concurrent-groups",
    type=count,
    default=1,
    metavar="N",
    help="Rewrite so many groups of files at once, in the same memory; default: 1.",
)
@click.option(
    "--job-order",
    type=click.Choice(_ORDERS),
    default="none",
    help="Which groups of files come first, by their bytes or number of files; default: none.",
)
@flag("--all", "Rewrite every file, whatever its size.")
@flag("--new-sequence-number", "Let equality deletes that others commit meanwhile not apply to the new files.")
@flag("--remove-dangling", "At the end remove deletes that apply to no data file.")
@click.option("--output-spec", type=int, metavar="ID", help="Write by this partition spec; default: the table's.")
@branch_option
@snapshot_property_option
@dry_run_option
def run(
    context: Context,
    table: str,
    strategy: str | None,
    sort: tuple[str, ...],
    zorder_columns: tuple[str, ...],
    **given: Any,
) -> None:
    """Run the command."""
    dry_run = given["dry_run"]
    maintenance = context.table(table).maintenance
    implied = "sort" if sort else "zorder" if zorder_columns else "bin-pack"
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.rewrite_data_files(
            _STRATEGIES[strategy or implied],
            list(sort) or None,
            zorder_columns,
            given["where"],
            target_file_size_bytes=given["target_file_size"],
            min_file_size_bytes=given["min_file_size"],
            max_file_size_bytes=given["max_file_size"],
            min_input_files=given["min_input_files"],
            delete_file_threshold=given["delete_file_threshold"],
            delete_ratio_threshold=given["delete_ratio_threshold"],
            max_file_group_size_bytes=given["max_group_size"],
            partial_progress=given["partial_progress"],
            max_commits=given["max_commits"],
            max_failed_commits=given["max_failed_commits"],
            max_concurrent_file_group_rewrites=given["max_concurrent_groups"],
            rewrite_job_order=given["job_order"],
            rewrite_all=given["all"],
            use_starting_sequence_number=not given["new_sequence_number"],
            remove_dangling_deletes=given["remove_dangling"],
            output_spec_id=given["output_spec"],
            branch=given["branch"],
            dry_run=dry_run,
            snapshot_properties=dict(given["snapshot_properties"]),
        )
    totals = {"rewritten_data_files": result.rewritten_data_files, "rewritten_bytes": result.rewritten_bytes}
    if not dry_run:
        totals |= {"added_data_files": result.added_data_files, "added_bytes": result.added_bytes}
    done = "would rewrite" if dry_run else "rewrote"
    context.result(f"{done} {result.rewritten_data_files:,} data files of {table}", NAME, result, **totals)
