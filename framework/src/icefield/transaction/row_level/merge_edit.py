"""The edit that a merge makes to the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, disjunction
from icefield.schema import Schema
from icefield.transaction.row_level.clauses import BoundClause, first_that_holds
from icefield.transaction.row_level.edits import EditResult, Ints, RowEdit
from icefield.transaction.row_level.merge_source import MergeSource
from icefield.types.arrow.pieces import one_array, with_columns
from icefield.types.values import distinct
from icefield.writing.conforming import Conforming


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """The clauses for rows of the table that match a row of the source, and for rows that match none."""

    matched: list[BoundClause]
    by_source: list[BoundClause]


@dataclass(frozen=True, slots=True)
class _Concerned:
    """The rows of a batch that one clause concerns, with their rows of the source, if any."""

    clause: BoundClause
    rows: Ints
    given: Ints | None


class MergeEdit(RowEdit):
    """Applies the first clause that holds to each row."""

    def __init__(self, schema: Schema, source: MergeSource, clauses: MergeClauses, everything: pa.Table) -> None:
        """``everything``: the columns of the source that ``ALL`` takes, under the table's types."""
        parts: list[BooleanExpression] = [source.keys.range(schema)]
        parts += [AlwaysTrue() if clause.row_filter is None else clause.row_filter for clause in clauses.by_source]
        super().__init__(disjunction(parts))
        self._schema, self._source, self._clauses, self._everything = schema, source, clauses, everything
        self._keys = frozenset(schema.find_field((name,)).field_id for name in source.keys.names)
        self._deciding = self._keys
        for clause in (*clauses.matched, *clauses.by_source):
            ids = clause.field_ids
            self._deciding |= schema.field_ids if ids is None else ids & schema.field_ids

    @property
    def keys(self) -> frozenset[int]:
        """The columns of the key."""
        return self._keys

    @property
    def deciding(self) -> frozenset[int]:
        """The columns of the key and of all conditions."""
        return self._deciding

    @property
    def changes_met(self) -> bool:
        """Whether there is a clause for matched rows."""
        return bool(self._clauses.matched)

    @property
    def own_rows(self) -> int:
        """The number of rows of the source."""
        return len(self._source)

    def met(self, batch: pa.RecordBatch) -> Ints:
        """The rows of the source with a key that is in the batch."""
        return distinct(self._source.keys.join(batch)[1])

    def may_change(self, met: Ints) -> bool:
        """Whether a clause may concern a row of the file."""
        return bool(self._clauses.by_source) or (bool(self._clauses.matched) and len(met) > 0)

    def found(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that change."""
        concerned, met = self._concerned(batch)
        return _edited(concerned, met)

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that change, with their new values."""
        concerned, met = self._concerned(batch)
        made = [self._made(batch, each) for each in concerned if not each.clause.deletes]
        found = _edited(concerned, met)
        return EditResult(found.gone, found.updated, pa.concat_batches(made) if made else None, met)

    def _concerned(self, batch: pa.RecordBatch) -> tuple[list[_Concerned], Ints]:
        """The rows that each clause concerns, and the rows of the source that are met."""
        here, given = self._source.keys.join(batch)
        concerned: list[_Concerned] = []
        if self._clauses.matched and len(here):
            seen = self._source.joined(batch.take(pa.array(here)), given)
            chosen = first_that_holds(self._clauses.matched, seen)
            self._refuse_several(batch, here[chosen >= 0])
            for number, clause in enumerate(self._clauses.matched):
                mask = chosen == number
                concerned.append(_Concerned(clause, here[mask], given[mask]))
        if self._clauses.by_source:
            met = np.zeros(batch.num_rows, bool)
            met[here] = True
            alone = np.flatnonzero(~met)
            chosen = first_that_holds(self._clauses.by_source, batch.take(pa.array(alone)))
            for number, clause in enumerate(self._clauses.by_source):
                concerned.append(_Concerned(clause, alone[chosen == number], None))
        return [each for each in concerned if len(each.rows)], distinct(given)

    def _made(self, batch: pa.RecordBatch, each: _Concerned) -> pa.RecordBatch:
        """The new values of the rows of an update."""
        rows = batch.take(pa.array(each.rows))
        if each.clause.assignments is not None:
            seen = rows if each.given is None else self._source.joined(rows, each.given)
            rows = each.clause.assignments.apply(rows, seen)
        else:
            assert each.given is not None
            taken = self._everything.take(pa.array(each.given))
            rows = with_columns(
                rows,
                {
                    rows.schema.get_field_index(name): (pa.field(name, column.type), one_array(column))
                    for name, column in zip(taken.column_names, taken.columns, strict=True)
                },
            )
        return Conforming(self._schema, rows.schema).apply(rows)

    def _refuse_several(self, batch: pa.RecordBatch, rows: Ints) -> None:
        """Refuse a row of the table that several rows of the source would change, since any of them could be meant."""
        repeated = rows[1:][rows[1:] == rows[:-1]]
        if len(repeated):
            key = self._source.keys.shown(batch, int(repeated[0]))
            raise InvalidArgument(f"several rows of the source would change the row of the table with the key {key}")


def _edited(concerned: list[_Concerned], met: Ints) -> EditResult:
    none = np.zeros(0, np.int64)
    gone = np.concatenate([none, *(each.rows for each in concerned)])
    updated = np.concatenate([none, *(each.rows for each in concerned if not each.clause.deletes)])
    return EditResult(np.sort(gone), updated, met=met)
