"""List the branches of all tables; or create, compare, merge or drop a branch over many tables in one step."""

from __future__ import annotations

from dataclasses import asdict

from icefield_cli import Context

from icefield_maintenance import CatalogBranches

_DIFFERENCE = ("table", "ahead", "behind", "added_records", "deleted_records")


def run(context: Context, name: str | None, create: tuple[str, ...], diff: bool, merge: bool, drop: bool) -> None:
    """Run the command."""
    branches = CatalogBranches(context.catalog)
    if name is None or not (create or diff or merge or drop):
        found = branches.list()
        rows = ({"branch": each, "table": table} for each in found if name in (None, each) for table in found[each])
        context.rows(rows, ("branch", "table"))
        return
    if diff:
        context.rows((asdict(each) for each in branches.diff(name)), _DIFFERENCE)
        return
    if create:
        verb, tables = "created", branches.create(name, create)
    elif merge:
        verb, tables = "merged", branches.merge(name)
    else:
        verb, tables = "dropped", branches.drop(name)
    context.say(f"{verb} branch {name} of {len(tables):,} tables", branch=name, tables=list(tables))
