"""List the branches of all tables; or create, compare, merge or drop a branch over many tables in one step."""

from __future__ import annotations

from dataclasses import asdict

from icefield_cli import Context

from icefield_maintenance import CatalogBranches

_DIFFERENCE = ("table", "ahead", "behind", "added_records", "deleted_records", "has_lost_history")


def run(
    context: Context,
    name: str | None,
    create: tuple[str, ...],
    diff: bool,
    merge: bool,
    drop: bool,
    tables: tuple[str, ...],
) -> None:
    """Run the command."""
    branches = CatalogBranches(context.catalog, tables or None)
    if name is None or not (create or diff or merge or drop):
        found = branches.list()
        rows = ({"branch": each, "table": table} for each in found if name in (None, each) for table in found[each])
        context.rows(rows, ("branch", "table"))
        return
    if diff:
        context.rows((asdict(each) for each in branches.diff(name)), _DIFFERENCE)
        return
    if create:
        verb, changed = "created", branches.create(name, create)
    elif merge:
        verb, changed = "merged", branches.merge(name)
    else:
        verb, changed = "dropped", branches.drop(name)
    noun = "table" if len(changed) == 1 else "tables"
    context.say(f"{verb} branch {name} of {len(changed):,} {noun}", branch=name, tables=list(changed))
