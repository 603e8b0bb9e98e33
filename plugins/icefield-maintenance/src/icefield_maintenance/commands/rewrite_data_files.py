"""Write the rows of small, too large and much deleted data files into files of about the target size."""

from __future__ import annotations

from typing import Any

from icefield_cli import Context

NAME = "rewrite-data-files"
_STRATEGIES: dict[str, Any] = {"bin-pack": "binpack", "sort": "sort", "zorder": "zorder"}


def run(
    context: Context,
    table: str,
    strategy: str | None,
    sort_order: tuple[str, ...],
    zorder_columns: tuple[str, ...],
    snapshot_properties: tuple[tuple[str, str], ...],
    dry_run: bool,
    **options: Any,
) -> None:
    """Run the command. ``options`` are those of ``RewriteOptions``."""
    maintenance = context.table(table).maintenance
    implied = "sort" if sort_order else "zorder" if zorder_columns else "bin-pack"
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.rewrite_data_files(
            _STRATEGIES[strategy or implied],
            list(sort_order) or None,
            zorder_columns,
            snapshot_properties=dict(snapshot_properties),
            dry_run=dry_run,
            **options,
        )
    totals = {"rewritten_data_files": result.rewritten_data_files, "rewritten_bytes": result.rewritten_bytes}
    if not dry_run:
        totals |= {"added_data_files": result.added_data_files, "added_bytes": result.added_bytes}
    done = "would rewrite" if dry_run else "rewrote"
    context.result(f"{done} {result.rewritten_data_files:,} data files of {table}", NAME, result, **totals)
