"""Cluster the entries of a table's manifests by partition, so that scans with filters read fewer."""

from __future__ import annotations

from typing import Any

from icefield_cli import Context

NAME = "rewrite-manifests"


def run(
    context: Context,
    table: str,
    snapshot_properties: tuple[tuple[str, str], ...],
    dry_run: bool,
    **options: Any,
) -> None:
    """Run the command. ``options`` are those of ``RewriteManifestsOptions``."""
    maintenance = context.table(table).maintenance
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.rewrite_manifests(
            snapshot_properties=dict(snapshot_properties), dry_run=dry_run, **options
        )
    done = "would rewrite" if dry_run else "rewrote"
    context.result(f"{done} {result.rewritten_manifests:,} manifests of {table}", NAME, result)
