"""Statements that Python carries out when Spark carries out their plan, in every version of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.sql.context import Rows


class Command(Remote):
    """A statement: what carries it out, and the columns of the rows that it gives."""

    def __init__(self, run: Callable[[], Rows | None], columns: str = "") -> None:
        """``columns``: their names and types as in a statement; ``run`` gives None where there are none."""
        self._run = run
        self._columns = columns

    def plan(self, catalog: Any) -> Any:
        """The plan for Spark. ``catalog``: the Java object of the catalog whose statement it is."""
        return catalog.command(self, self._columns, "a statement on a catalog of Icefield")

    def on_run(self, _: None) -> str:
        """The rows."""
        return reply([list(row) for row in self._run() or ()])
