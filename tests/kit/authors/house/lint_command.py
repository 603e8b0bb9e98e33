"""The command ``lint``: it imports no library of the command line."""

from __future__ import annotations

import re

from icefield import IcefieldError
from icefield_cli import Context, WrongUsage

_STYLES = {"snake": re.compile(r"[a-z][a-z0-9_]*"), "camel": re.compile(r"[a-z][A-Za-z0-9]*")}


def letters(given: str) -> int:
    """A number of letters. Raises ``ValueError``."""
    if not given.isdigit():
        raise ValueError(f"'{given}' is no number of letters")
    return int(given)


def run(
    context: Context, table: str, style: str, except_for: tuple[str, ...], shortest: int | None, fail: bool
) -> None:
    """Print a row for each column with a wrong name."""
    columns = [field.name for field in context.table(table).schema().fields]
    if unknown := set(except_for).difference(columns):
        raise WrongUsage(f"'--except' names {min(unknown)}, which is no column of {table}")
    wrong = [
        name
        for name in columns
        if name not in except_for and not (_STYLES[style].fullmatch(name) and len(name) >= (shortest or 1))
    ]
    context.rows(({"column": name, "style": style} for name in wrong), ("column", "style"))
    if fail and wrong:
        raise IcefieldError(f"{len(wrong)} of {len(columns)} names are wrong")
