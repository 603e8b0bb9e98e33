"""Merges rows into a table, as SQL's MERGE does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.metadata import MAIN_BRANCH, TableMetadata
from icefield.metadata.properties import MERGE_ISOLATION_LEVEL, MERGE_MODE
from icefield.schema import Schema
from icefield.transaction.action import Action
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.head.branch_head import Head
from icefield.transaction.row_level.action import RowLevelAction, since_head
from icefield.transaction.row_level.changed_files import FileResult
from icefield.transaction.row_level.clauses import ALL, DELETE, BoundClause, Clause, Condition, first_that_holds
from icefield.transaction.row_level.edits import Ints, RowEdit
from icefield.transaction.row_level.merge_edit import MergeEdit, MergeSource
from icefield.transaction.row_level.upsert import key_names
from icefield.transaction.rows import Rows, conformed, table_of
from icefield.transaction.snapshots.write_result import WriteResult


class MergeRows(RowLevelAction):
    """Change rows that match rows of a source, or match none, and insert the rows of the source that match none."""

    mode = MERGE_MODE
    isolation = MERGE_ISOLATION_LEVEL

    def __init__(
        self,
        stage: Callable[[Action], None],
        schema: Schema,
        source: MergeSource,
        *,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._schema, self._source, self._case_sensitive = schema, source, case_sensitive
        self.matched: list[Clause] = []
        self.not_matched: list[Clause] = []
        self.by_source: list[Clause] = []

    def commit(self) -> None:
        """Stage the merge. Raises ``InvalidArgument`` for errors in the clauses, and for a merge without any."""
        if not (self.matched or self.not_matched or self.by_source):
            raise InvalidArgument("this merge does nothing: say what is to become of rows by its when_... methods")
        self._bound(self._schema)
        self._inserting(self._schema)
        super().commit()

    def _is_filled(self) -> bool:
        return bool(self.matched or self.not_matched or self.by_source)

    def _edit(self, head: Head) -> RowEdit:
        return self._bound(head.metadata.schema())

    def _others(self, head: Head, changed: Sequence[FileResult]) -> Sequence[DataFile]:
        schema = head.metadata.schema()
        new = np.ones(len(self._source), bool)
        for one in changed:
            new[one.met] = False
        clauses = self._inserting(schema)
        rows = np.flatnonzero(new)
        chosen = first_that_holds(clauses, self._source.alone(rows))
        new[rows[chosen < 0]] = False
        return self._files.inserted(
            new, lambda: [self._new(schema, one, rows[chosen == at]) for at, one in enumerate(clauses)]
        )

    def _bound(self, schema: Schema) -> MergeEdit:
        seen = self._source.seen_schema(schema)
        matched = [BoundClause(one, seen, schema, self._case_sensitive) for one in self.matched]
        by_source = [BoundClause(one, schema, schema, self._case_sensitive) for one in self.by_source]
        everything = pa.table({})
        if any(one.takes_all for one in matched):
            named = self._source.named()
            unknown = [name for name in named.column_names if not schema.has_field((name,))]
            if unknown:
                raise InvalidArgument(
                    f"the table has no column '{unknown[0]}' to take over from the source; leave it out, or name the "
                    "columns to set",
                    column=unknown[0],
                )
            fields = [schema.find_field((name,)) for name in named.column_names]
            everything = conformed(Schema(*fields), named)
        return MergeEdit(schema, self._source, matched, by_source, everything)

    def _inserting(self, schema: Schema) -> list[BoundClause]:
        """The clauses for inserts, with conditions over the source alone."""
        seen = Schema(self._source.seen_schema(schema).find_field((self._source.name,)))
        return [BoundClause(one, seen, schema, self._case_sensitive) for one in self.not_matched]

    def _new(self, schema: Schema, clause: BoundClause, rows: Ints) -> pa.Table:
        """The rows that a clause inserts for rows of the source."""
        if clause.takes_all:
            return self._source.named().take(pa.array(rows))
        assert clause.assignments is not None
        return pa.Table.from_batches([clause.assignments.columns(self._source.alone(rows))])


class Merge:
    """A merge to be filled with clauses and then committed.

    Rows of the table and of the source match if their keys are equal; a null equals nothing. Clauses of a kind are
    tried in the order in which they were added, and the first clause that holds for a row is applied. Without such a
    clause nothing happens. Conditions are filters (``"source.day > '2020-01-01'"``), Arrow expressions
    (``pc.field("source", "n") > pc.field("n")``) or functions of a record batch. In a condition, columns of the table
    have their own names, and columns of the source are in the struct ``source``. Values are literals, Arrow
    expressions, or functions of a record batch that give an array.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        metadata: TableMetadata,
        source: Rows,
        on: Sequence[str] | Mapping[str, str] | str | None,
        *,
        source_name: str = "source",
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        isolation_level: IsolationLevel | str | None = None,
    ) -> None:
        schema = metadata.schema()
        given = [on] if isinstance(on, str) else on
        names = key_names(schema, None if given is None else list(given), case_sensitive)
        own = given.values() if isinstance(given, Mapping) else names if given is None else given
        self._action = MergeRows(
            stage,
            schema,
            MergeSource(table_of(source), dict(zip(names, own, strict=True)), schema, source_name),
            case_sensitive=case_sensitive,
            branch=branch,
            snapshot_properties=snapshot_properties,
        )
        self._action.isolate(isolation_level, since_head(metadata, branch))

    def when_matched_update(self, set: Mapping[Any, Any], condition: Condition = None) -> Self:
        """Set columns of matched rows."""
        return self._add(self._action.matched, Clause(condition, dict(set)))

    def when_matched_update_all(self, condition: Condition = None) -> Self:
        """Set every column of the source to the source's value. Other columns stay as they are."""
        return self._add(self._action.matched, Clause(condition, ALL))

    def when_matched_delete(self, condition: Condition = None) -> Self:
        """Delete matched rows."""
        return self._add(self._action.matched, Clause(condition, DELETE))

    def when_not_matched_insert(self, values: Mapping[str, Any], condition: Condition = None) -> Self:
        """Insert a row for rows of the source that match none; columns that are not named get their write default.

        Conditions and values are over the source alone: ``pc.field("source", "n")``.
        """
        return self._add(self._action.not_matched, Clause(condition, dict(values)))

    def when_not_matched_insert_all(self, condition: Condition = None) -> Self:
        """Insert the rows of the source that match none, by the names of their columns."""
        return self._add(self._action.not_matched, Clause(condition, ALL))

    def when_not_matched_by_source_update(
        self,
        set: Mapping[Any, Any],
        condition: Condition = None,
    ) -> Self:
        """Set columns of rows that match no row of the source. The condition is over the table alone."""
        return self._add(self._action.by_source, Clause(condition, dict(set)))

    def when_not_matched_by_source_delete(self, condition: Condition = None) -> Self:
        """Delete rows that match no row of the source. The condition is over the table alone."""
        return self._add(self._action.by_source, Clause(condition, DELETE))

    def commit(self) -> WriteResult:
        """Commit the merge.

        Raises ``InvalidArgument`` for a row of the table that several rows of the source would change, for values that
        a column cannot hold, and for a merge without clauses.
        """
        self._action.commit()
        return self._action.write_result

    def _add(self, clauses: list[Clause], clause: Clause) -> Self:
        clauses.append(clause)
        return self
