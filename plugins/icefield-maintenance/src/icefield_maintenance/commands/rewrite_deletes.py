"""Write small position delete files into fewer; on request convert equality deletes and remove dangling deletes."""

from __future__ import annotations

from icefield_cli import Context

from icefield_maintenance import ConvertEqualityDeletesResult, RewriteDeletesResult

NAME = "rewrite-deletes"


def run(
    context: Context,
    table: str,
    convert_equality: bool,
    remove_dangling: bool,
    where: str | None,
    target_file_size: int | None,
    min_input_files: int,
    rewrite_all: bool,
    branch: str,
    snapshot_properties: tuple[tuple[str, str], ...],
    dry_run: bool,
) -> None:
    """Run the command."""
    summary = dict(snapshot_properties)
    before: list[ConvertEqualityDeletesResult | RewriteDeletesResult] = []
    if convert_equality:
        maintenance = context.table(table).maintenance
        with context.changing(NAME, dry_run=dry_run):
            converted = maintenance.convert_equality_deletes(
                where, dry_run=dry_run, branch=branch, snapshot_properties=summary
            )
        before.append(converted)
        done = "would convert" if dry_run else "converted"
        number = converted.converted_equality_delete_files
        context.result(f"{done} {number:,} equality delete files", "convert-equality-deletes", converted)
    maintenance = context.table(table).maintenance
    with context.changing(NAME, dry_run=dry_run):
        packed = maintenance.rewrite_position_delete_files(
            where,
            target_file_size=target_file_size,
            min_input_files=min_input_files,
            rewrite_all=rewrite_all,
            dry_run=dry_run,
            branch=branch,
            snapshot_properties=summary,
        )
    before.append(packed)
    done = "would rewrite" if dry_run else "rewrote"
    number = packed.rewritten_position_delete_files + packed.rewritten_deletion_vectors
    context.result(f"{done} {number:,} position delete files and deletion vectors", "rewrite-position-deletes", packed)
    if remove_dangling:
        maintenance = context.table(table).maintenance
        with context.changing(NAME, dry_run=dry_run):
            removed = maintenance.remove_dangling_deletes(
                after=before, dry_run=dry_run, branch=branch, snapshot_properties=summary
            )
        done = "would remove" if dry_run else "removed"
        number = removed.removed_position_delete_files + removed.removed_deletion_vectors
        number += removed.removed_equality_delete_files
        context.result(f"{done} {number:,} deletes that apply to no data file", "remove-dangling-deletes", removed)
