"""The source of a merge, and the edit that a merge makes to the rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, disjunction
from icefield.schema import Schema
from icefield.transaction.row_level.clauses import BoundClause, first_that_holds
from icefield.transaction.row_level.edits import EditResult, Ints, RowEdit
from icefield.transaction.row_level.key_join import Keys
from icefield.transaction.rows import conformed
from icefield.types import NestedField, StructType
from icefield.types.arrow.pieces import one_array, with_columns
from icefield.types.arrow.types import from_arrow_fields
from icefield.types.values import distinct
from icefield.writing.conforming import Conforming


class MergeSource:
    """The rows that are merged into a table. Conditions and values see them as a struct named ``name``."""

    def __init__(self, rows: pa.Table, on: Mapping[str, str], schema: Schema, name: str) -> None:
        """``on`` maps key columns of the table to columns of the source. Raises ``InvalidArgument``."""
        self.name, self.on = name, dict(on)
        self.rows = rows.combine_chunks()
        columns = rows.column_names
        twice = _twice(columns)
        if twice:
            raise InvalidArgument(f"the source has two columns of the name '{twice[0]}'", column=twice[0])
        known = frozenset(columns)
        missing = [own for own in self.on.values() if own not in known]
        if missing:
            raise InvalidArgument(f"the source has no column '{missing[0]}'; it has {', '.join(columns)}")
        fields = [schema.find_field((each,)) for each in self.on]
        # A null equals nothing, so it is no error in the key of a required column.
        optional = Schema(*(NestedField(each.field_id, each.name, each.field_type) for each in fields))
        keys = rows.select(list(self.on.values())).rename_columns(list(self.on))
        self.keys = Keys(conformed(optional, keys), list(self.on))
        self._struct = one_array(self.rows.to_struct_array())

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def column_names(self) -> list[str]:
        """The names of the source's columns; a key column has the name of its column in the table."""
        own = {source: table for table, source in self.on.items()}
        return [own.get(name, name) for name in self.rows.column_names]

    def named(self) -> pa.Table:
        """The rows under ``column_names``. Raises ``InvalidArgument`` if two columns would get the same name."""
        names = self.column_names
        twice = _twice(names)
        if twice:
            raise InvalidArgument(f"the source has '{twice[0]}' next to the column that is the key '{twice[0]}'")
        return self.rows.rename_columns(names)

    def seen_schema(self, schema: Schema) -> Schema:
        """The table's columns and the source. Raises ``InvalidArgument`` if a column has the source's name."""
        if schema.has_field((self.name,)):
            raise InvalidArgument(
                f"the table has a column '{self.name}', the name by which conditions and values see the source; "
                "choose another one by source_name",
                column=self.name,
            )
        numbers = count(max(schema.highest_field_id, 0) + 1)
        id_ = next(numbers)
        fields = from_arrow_fields(list(self.rows.schema), numbers.__next__)
        return Schema(*schema.fields, NestedField(id_, self.name, StructType(*fields)))

    def joined(self, rows: pa.RecordBatch, given: Ints) -> pa.RecordBatch:
        """Rows of the table, each with a row of the source."""
        return rows.append_column(self.name, self._struct.take(pa.array(given)))

    def alone(self, given: Ints) -> pa.RecordBatch:
        """Rows of the source without rows of the table."""
        return pa.RecordBatch.from_arrays([self._struct.take(pa.array(given))], names=[self.name])


def _twice(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


@dataclass(frozen=True, slots=True)
class _Concerned:
    """The rows of a batch that one clause concerns, with their rows of the source, if any."""

    clause: BoundClause
    rows: Ints
    given: Ints | None


class MergeEdit(RowEdit):
    """Applies the first clause that holds to each row."""

    def __init__(
        self,
        schema: Schema,
        source: MergeSource,
        matched: list[BoundClause],
        by_source: list[BoundClause],
        everything: pa.Table,
    ) -> None:
        """``everything``: the columns of the source that ``ALL`` takes, under the table's types."""
        parts: list[BooleanExpression] = [source.keys.range(schema)]
        parts += [AlwaysTrue() if clause.row_filter is None else clause.row_filter for clause in by_source]
        keys = frozenset(schema.find_field((name,)).field_id for name in source.keys.names)
        deciding = keys
        for clause in (*matched, *by_source):
            ids = clause.field_ids
            deciding |= schema.field_ids if ids is None else ids & schema.field_ids
        super().__init__(
            disjunction(parts), deciding=deciding, keys=keys, own_rows=len(source), changes_met=bool(matched)
        )
        self._schema, self._source, self._everything = schema, source, everything
        self._matched, self._by_source = matched, by_source

    def met(self, batch: pa.RecordBatch) -> Ints:
        """The rows of the source with a key that is in the batch."""
        return distinct(self._source.keys.join(batch)[1])

    def may_change(self, met: Ints) -> bool:
        """Whether a clause may concern a row of the file."""
        return bool(self._by_source) or (bool(self._matched) and len(met) > 0)

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
        if self._matched and len(here):
            seen = self._source.joined(batch.take(pa.array(here)), given)
            chosen = first_that_holds(self._matched, seen)
            self._refuse_several(batch, here[chosen >= 0])
            for number, clause in enumerate(self._matched):
                mask = chosen == number
                concerned.append(_Concerned(clause, here[mask], given[mask]))
        if self._by_source:
            met = np.zeros(batch.num_rows, bool)
            met[here] = True
            alone = np.flatnonzero(~met)
            chosen = first_that_holds(self._by_source, batch.take(pa.array(alone)))
            for number, clause in enumerate(self._by_source):
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
