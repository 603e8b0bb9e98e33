"""Cluster the entries of a table's manifests by partition, so that scans with filters read fewer."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import (
    branch_option,
    command,
    dry_run_option,
    names,
    snapshot_property_option,
    table_argument,
    where_option,
)

NAME = "rewrite-manifests"
_CLUSTER = "Partition fields that come first, separated by commas."


@command(NAME, __doc__)
@table_argument
@click.option("--spec", type=int, metavar="ID", help="Only manifests of this partition spec.")
@where_option("Only manifests that may hold such rows.")
@click.option("--cluster-by", type=names, default="", metavar="FIELDS", help=_CLUSTER)
@branch_option
@snapshot_property_option
@dry_run_option
def run(
    context: Context,
    table: str,
    spec: int | None,
    where: str | None,
    cluster_by: tuple[str, ...],
    branch: str,
    snapshot_properties: tuple[tuple[str, str], ...],
    dry_run: bool,
) -> None:
    """Run the command."""
    maintenance = context.table(table).maintenance
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.rewrite_manifests(
            spec,
            where,
            cluster_by=cluster_by,
            dry_run=dry_run,
            branch=branch,
            snapshot_properties=dict(snapshot_properties),
        )
    done = "would rewrite" if dry_run else "rewrote"
    context.result(f"{done} {result.rewritten_manifests:,} manifests of {table}", NAME, result)
