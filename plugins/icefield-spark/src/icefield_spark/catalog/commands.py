"""Statements that Python carries out when Spark carries out their plan, in every version of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.sql.context import Rows


class CatalogCommand(Remote):
    """A statement: the function that carries it out, and the columns of its result."""

    def __init__(self, run: Callable[[], Rows | None], columns: str = "") -> None:
        """``columns``: names and types as in a statement; ``run`` returns None for a statement without rows."""
        self._run = run
        self._columns = columns

    def plan(self, catalog: Any) -> Any:
        """The plan for Spark. ``catalog``: the Java object of the statement's catalog."""
        return catalog.command(self, self._columns, "a statement on a catalog of Icefield")

    def on_run(self, _: None) -> str:
        """The rows."""
        return reply([list(row) for row in self._run() or ()])
