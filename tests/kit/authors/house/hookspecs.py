"""A hook of another author's plugin: grants that further plugins bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icefield import hookspec


@dataclass(frozen=True)
class Grant:
    """The right of a client to do an operation with a name and all names below it; ``*`` stands for any operation."""

    client: str
    operation: str
    name: tuple[str, ...]

    def covers(self, operation: str, name: tuple[str, ...]) -> bool:
        """Whether the grant allows an operation with a name."""
        return self.operation in ("*", operation) and name[: len(self.name)] == self.name


@hookspec
def icefield_grants() -> Sequence[Grant]:  # type: ignore[empty-body]
    """Return grants in addition to the grants of the file ``grants.file``."""
