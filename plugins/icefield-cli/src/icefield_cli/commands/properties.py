"""Show, set or remove properties of a table."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.hookspecs import WrongUsage


def run(context: Context, table: str, changes: tuple[tuple[str, str], ...], remove: tuple[str, ...]) -> None:
    """Run the command."""
    for key in dict(changes):
        if key in remove:
            raise WrongUsage(f"'--set' and '--remove' are both given for {key}; give one")
    found = context.table(table)
    if changes or remove:
        with found.transaction() as transaction:
            if changes:
                transaction.set_properties(dict(changes))
            if remove:
                transaction.remove_properties(*remove)
        found = found.refresh()
    rows = ({"key": key, "value": value} for key, value in sorted(found.metadata.properties.items()))
    context.rows(rows, ("key", "value"))
