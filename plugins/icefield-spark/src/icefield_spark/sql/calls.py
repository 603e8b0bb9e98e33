"""Calls of Iceberg's own functions in a statement: ``system.bucket(16, id)``, with or without the catalog's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

SYSTEM: Final = "system"
UNITS: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
"""The functions of a time, and the transforms that they are."""

VERSION: Final = "iceberg_version"
FUNCTIONS: Final = frozenset({"bucket", "truncate", VERSION, *UNITS})


@dataclass(frozen=True)
class Call:
    """A call of a function: its node in the tree, and its name in lower case."""

    node: exp.Dot
    name: str

    @property
    def arguments(self) -> list[exp.Expression]:
        """What it is called with."""
        return list(self.node.expression.expressions)

    @property
    def start(self) -> int:
        """Where it begins in the statement."""
        return int(next(self.node.find_all(exp.Identifier, bfs=False)).meta["start"])


def call_of(node: exp.Expression, catalog: str) -> Call | None:
    """The call of one of Iceberg's functions that an expression is; None for all else."""
    if not isinstance(node, exp.Dot) or not isinstance(node.expression, exp.Anonymous):
        return None
    before, name = node.this, node.expression.name.lower()
    parts = [before] if isinstance(before, exp.Identifier) else [before.this, before.expression] if before else []
    if name not in FUNCTIONS or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    names = [part.name for part in parts]
    folded = [*names[:-1], names[-1].lower()]
    if folded not in ([SYSTEM], [catalog, SYSTEM]) and names != [catalog]:
        return None
    return Call(node, name)
