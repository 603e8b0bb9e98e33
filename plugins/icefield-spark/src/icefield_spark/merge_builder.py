"""A MERGE put together clause by clause, for callers that have a frame and no statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from icefield.errors import InvalidArgument
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.quoting import quoted
from icefield_spark.running import named, substituted


class Merge:
    """A merge of a frame into a table, to be filled with clauses and then committed.

    Conditions and values are expressions of Spark's SQL, in which ``target`` and ``source`` are the table and the
    frame. Of the clauses of a kind, in the order in which they were added, the first one counts whose condition holds.
    """

    def __init__(
        self,
        run: Callable[[SparkSession, str], DataFrame],
        table: str,
        source: DataFrame,
        on: str | Sequence[str],
    ) -> None:
        """``table``: its name as SQL has it. ``on``: a condition, or the columns of the key; null equals nothing.

        ``run`` runs a statement, whose variables have their values already, in a session: that of the source.
        """
        self._run, self._table, self._source = run, table, source
        if isinstance(on, str):
            self._on = self._said(on)
        elif on:
            self._on = " AND ".join(f"target.{quoted(name)} = source.{quoted(name)}" for name in on)
        else:
            raise InvalidArgument("a merge needs a key: name its columns, or give the table identifier fields")
        self._clauses: list[str] = []

    def when_matched_update(self, set: Mapping[str, str], condition: str | None = None) -> Self:
        """Give columns of rows that are met other values."""
        return self._add("MATCHED", condition, f"UPDATE SET {assigned(set, self._said)}")

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Give all columns the values of the source, which has them all."""
        return self._add("MATCHED", condition, "UPDATE SET *")

    def when_matched_delete(self, condition: str | None = None) -> Self:
        """Delete rows that are met."""
        return self._add("MATCHED", condition, "DELETE")

    def when_not_matched_insert(self, values: Mapping[str, str], condition: str | None = None) -> Self:
        """Insert a row for rows of the source that meet none; columns that are not named are null."""
        names = ", ".join(quoted(name) for name in values)
        given = ", ".join(f"({self._said(each)})" for each in values.values())
        return self._add("NOT MATCHED", condition, f"INSERT ({names}) VALUES ({given})")

    def when_not_matched_insert_all(self, condition: str | None = None) -> Self:
        """Insert the rows of the source that meet none, by the names of their columns."""
        return self._add("NOT MATCHED", condition, "INSERT *")

    def when_not_matched_by_source_update(self, set: Mapping[str, str], condition: str | None = None) -> Self:
        """Give columns of rows that no row of the source meets other values."""
        return self._add("NOT MATCHED BY SOURCE", condition, f"UPDATE SET {assigned(set, self._said)}")

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Self:
        """Delete rows that no row of the source meets."""
        return self._add("NOT MATCHED BY SOURCE", condition, "DELETE")

    def commit(self) -> None:
        """Merge, in one job for the rows that change and, by copy-on-write, one for the files that they were in.

        Raises ``InvalidArgument`` for a row of the table that several rows of the source would change, and for a merge
        without clauses; ``ValidationFailed`` when others changed meanwhile what was read.
        """
        if not self._clauses:
            raise InvalidArgument("this merge does nothing: say what is to become of rows by its when_... methods")
        session, clauses = self._source.sparkSession, " ".join(self._clauses)
        with named({"source": self._source}) as names:
            self._run(
                session,
                f"MERGE INTO {self._table} AS target USING {names['source']} AS source ON {self._on} {clauses}",
            )

    def _add(self, of: str, condition: str | None, then: str) -> Self:
        also = "" if condition is None else f" AND ({self._said(condition)})"
        self._clauses.append(f"WHEN {of}{also} THEN {then}")
        return self

    def _said(self, expression: str) -> str:
        """An expression of the caller, with the values of its variables. Names of the table have none."""
        return substituted(self._source.sparkSession, expression)


def assigned(values: Mapping[str, str], said: Callable[[str], str]) -> str:
    """The assignments of an UPDATE, whose values ``said`` makes ready. Raises ``InvalidArgument`` for none."""
    if not values:
        raise InvalidArgument("an update sets at least one column")
    return ", ".join(f"{quoted(*name.split('.'))} = {said(value)}" for name, value in values.items())
