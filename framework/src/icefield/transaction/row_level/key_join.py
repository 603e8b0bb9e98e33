"""Joining rows on keys by whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysFalse, BooleanExpression, BoundPredicate, Op, conjunction
from icefield.schema import Schema
from icefield.transaction.rows import one_array
from icefield.types.arrow.nested import times_as_numbers
from icefield.types.values import from_arrow_scalar

Ints = np.ndarray[Any, Any]


class Keys:
    """The keys of given rows, to be met by the rows of batches. A null in a key equals nothing."""

    def __init__(self, rows: pa.Table, names: Sequence[str]) -> None:
        self.names = list(names)
        self.table = rows.select(self.names)
        self._indexed = self._with_row_numbers(self.table, "given")

    def refuse_duplicates(self) -> None:
        """Raise ``InvalidArgument`` when two given rows have the same key: it would not be known which one counts."""
        groups = self.table.drop_null().group_by(self.names).aggregate([([], "count_all")])
        repeated = groups.filter(pc.greater(groups["count_all"], 1))
        if repeated.num_rows:
            example = self.shown(repeated, 0)
            raise InvalidArgument(f"{repeated.num_rows} keys are given more than once, such as {example}")

    def shown(self, rows: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
        """The key of a row, for a message."""
        return {name: _string(rows.column(name)[row]) for name in self.names}

    def range(self, schema: Schema) -> BooleanExpression:
        """The rows of a table between the least and the greatest key, column by column; bound."""
        parts: list[BooleanExpression] = []
        for name in self.names:
            field, column = schema.find_field((name,)), self.table[name]
            bounds = pc.min_max(column) if _is_ordered(column.type) else None
            if column.null_count == len(column):
                return AlwaysFalse()
            if bounds is None:
                continue
            for op, end in ((Op.GT_EQ, "min"), (Op.LT_EQ, "max")):
                value = from_arrow_scalar(field.field_type, bounds[end])
                if value == value:  # NaN bounds nothing
                    parts.append(BoundPredicate(op, field, (field.name,), value))
        return conjunction(parts)

    def join(self, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        """The pairs of rows of the batch and given rows that have the same key."""
        table = pa.Table.from_batches([batch.select(self.names)]).replace_schema_metadata(None)
        here = self._with_row_numbers(table, "here")
        joined = here.join(self._indexed, keys=self._places, join_type="inner", use_threads=False)
        pairs = joined["here"].to_numpy(), joined["given"].to_numpy()
        order = np.argsort(pairs[0], kind="stable")
        return pairs[0][order], pairs[1][order]

    @property
    def _places(self) -> list[str]:
        return [str(place) for place in range(len(self.names))]

    def _with_row_numbers(self, table: pa.Table, name: str) -> pa.Table:
        # Columns are named by their places: no name of the table's can then be that of the row number.
        plain = pa.table([_joinable(column) for column in table.columns], names=self._places)
        return plain.append_column(name, pa.array(np.arange(table.num_rows)))


def differing(left: pa.RecordBatch, left_rows: Ints, right: pa.Table, right_rows: Ints) -> Ints:
    """Which pairs of rows (as places in the given lists) differ in some column. Null equals null, NaN equals NaN."""
    differ = np.zeros(len(left_rows), bool)
    for position in range(left.num_columns):
        one = left.column(position).take(pa.array(left_rows))
        other = one_array(right.column(position).take(pa.array(right_rows)))
        differ |= _unequal(one, other)
    return np.flatnonzero(differ)


def _unequal(one: pa.Array, other: pa.Array) -> Ints:
    if pa.types.is_null(one.type):
        return np.zeros(len(one), bool)
    if pa.types.is_nested(one.type):
        pairs = zip(times_as_numbers(one).to_pylist(), times_as_numbers(other).to_pylist(), strict=True)
        return np.fromiter((repr(a) != repr(b) for a, b in pairs), bool, len(one))  # a NaN prints as any other
    unequal = pc.not_equal(one, other.cast(one.type))
    if pa.types.is_floating(one.type):
        both = pc.and_(pc.is_nan(one), pc.is_nan(other))
        unequal = pc.and_not(unequal, both)
    nulls = pc.xor(one.is_null(), other.is_null())
    return np.asarray(pc.or_(pc.fill_null(unequal, False), nulls))


def _string(scalar: pa.Scalar) -> Any:
    """A value for a message: Python cannot hold every time that a column can."""
    return scalar.cast(pa.string()).as_py() if pa.types.is_temporal(scalar.type) else scalar.as_py()


def _joinable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in a type that joins take."""
    if pa.types.is_null(column.type):
        return column.cast(pa.int8())
    return column


def _is_ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind))
