"""A merge put together clause by clause, for callers that have a frame and no statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from icefield.errors import InvalidArgument
from icefield.transaction import WriteResult
from pyspark.sql import DataFrame

from icefield_spark.conditions import Expression
from icefield_spark.merge_rows import LEFT, MATCHED, NEW, MergeFrame, WhenClause
from icefield_spark.row_level import Target
from icefield_spark.row_writer import DELETE, INSERT, UPDATE


class FrameMerge:
    """A merge of a frame into a table, to be filled with clauses and then committed.

    Conditions and values are expressions of Spark's SQL, or columns of Spark's as ``col("source.id")``, in which
    ``target`` and ``source`` are the table and the frame. Clauses of a kind are tried in the order in which they were
    added; the first clause with a true condition applies.
    """

    def __init__(self, target: Callable[[], Target], source: DataFrame, on: Expression | Sequence[str]) -> None:
        """``target`` loads the table. ``on``: a condition, or the columns of the key; null equals nothing."""
        if isinstance(on, Sequence) and not on:
            raise InvalidArgument("a merge needs a key: name its columns, or give the table identifier fields")
        self._target, self._source, self._on = target, source, on
        self._clauses: list[WhenClause] = []

    def when_matched_update(self, set: Mapping[str, Expression], condition: Expression | None = None) -> Self:
        """Set columns of matched rows to other values."""
        return self._add(WhenClause(MATCHED, condition, UPDATE, assigned(set)))

    def when_matched_update_all(self, condition: Expression | None = None) -> Self:
        """Set all columns to the values of the source, which must have all of them."""
        return self._add(WhenClause(MATCHED, condition, UPDATE, None))

    def when_matched_delete(self, condition: Expression | None = None) -> Self:
        """Delete rows that are met."""
        return self._add(WhenClause(MATCHED, condition, DELETE, {}))

    def when_not_matched_insert(self, values: Mapping[str, Expression], condition: Expression | None = None) -> Self:
        """Insert a row for each unmatched row of the source; columns that are not named have their default."""
        return self._add(WhenClause(NEW, condition, INSERT, {(name,): value for name, value in values.items()}))

    def when_not_matched_insert_all(self, condition: Expression | None = None) -> Self:
        """Insert the unmatched rows of the source, by the names of their columns."""
        return self._add(WhenClause(NEW, condition, INSERT, None))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Expression], condition: Expression | None = None
    ) -> Self:
        """Set columns of rows that match no row of the source to other values."""
        return self._add(WhenClause(LEFT, condition, UPDATE, assigned(set)))

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> Self:
        """Delete rows that match no row of the source."""
        return self._add(WhenClause(LEFT, condition, DELETE, {}))

    def commit(self) -> WriteResult:
        """Merge: one job writes the changed rows, and with copy-on-write another job rewrites the files that held them.

        Raises ``InvalidArgument`` for a row of the table that several rows of the source would change, and for a merge
        without clauses; ``ValidationFailed`` when a concurrent commit changed the data that was read.
        """
        return MergeFrame(self._source, self._on, self._clauses).run(self._target())

    def _add(self, clause: WhenClause) -> Self:
        self._clauses.append(clause)
        return self


def assigned(values: Mapping[str, Expression]) -> dict[tuple[str, ...], Expression]:
    """Values by the paths of columns, from dotted names. Raises ``InvalidArgument`` if there are no values."""
    if not values:
        raise InvalidArgument("an update sets at least one column")
    return {tuple(name.split(".")): value for name, value in values.items()}
