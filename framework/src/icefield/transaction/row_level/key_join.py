"""Joins rows on keys by whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysFalse, BooleanExpression, BoundPredicate, Op, conjunction, disjunction
from icefield.schema import Schema
from icefield.types import NestedField
from icefield.types.arrow.nested import times_as_numbers
from icefield.types.arrow.pieces import one_array
from icefield.types.values import distinct, from_arrow_scalar

Ints = np.ndarray[Any, Any]

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF: Final = np.uint64(32)
_SLOTS_A_KEY: Final = 16
_FEWEST_BITS, _MOST_BITS = 16, 25


class Keys:
    """The keys of given rows, to be joined with the rows of batches. A null in a key equals nothing.

    Floats are equal as in SQL joins: NaN equals NaN, and -0.0 equals 0.0.
    """

    def __init__(self, rows: pa.Table, names: Sequence[str]) -> None:
        self.names = list(names)
        self.table = _settled(rows.select(self.names))
        self._index = _NumberIndex.of(self.table)
        self._indexed = self._with_row_numbers(self.table, "given")

    def refuse_duplicates(self) -> None:
        """Raise ``InvalidArgument`` when two given rows have the same key, since either could be meant."""
        if self._index is not None and self._index.is_unique:
            return
        groups = self.table.drop_null().group_by(self.names).aggregate([([], "count_all")])
        repeated = groups.filter(pc.greater(groups["count_all"], 1))
        if repeated.num_rows:
            example = self.shown(repeated, 0)
            raise InvalidArgument(f"{repeated.num_rows} keys are given more than once, such as {example}")

    def shown(self, rows: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
        """The key of a row, for a message."""
        return {name: _string(rows.column(name)[row]) for name in self.names}

    def range(self, schema: Schema) -> BooleanExpression:
        """A bound filter for the rows between the least and the greatest key, column by column."""
        parts: list[BooleanExpression] = []
        for name in self.names:
            field, column = schema.find_field((name,)), self.table[name]
            if column.null_count == len(column):
                return AlwaysFalse()
            if not (pa.types.is_null(column.type) or pa.types.is_fixed_size_binary(column.type)):
                parts.append(_between_ends(field, column))
        return conjunction(parts)

    def join(self, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        """The pairs of rows of the batch and given rows that have the same key, in the order of the batch's rows."""
        table = _settled(pa.Table.from_batches([batch.select(self.names)]).replace_schema_metadata(None))
        if self._index is None or table.schema.types != self.table.schema.types:
            return self._joined(table, self._indexed)
        here, given = self._index.candidates(table)
        if not len(here) or self._index.is_exact:
            return here, given
        # Only candidates are joined: Arrow would build a hash table of all given rows for each batch.
        rows, others = distinct(here), distinct(given)
        pairs = self._joined(table.take(pa.array(rows)), self._indexed.take(pa.array(others)))
        return rows[pairs[0]], pairs[1]

    def _joined(self, table: pa.Table, indexed: pa.Table) -> tuple[Ints, Ints]:
        here = self._with_row_numbers(table, "here")
        joined = here.join(indexed, keys=self._places, join_type="inner", use_threads=False)
        pairs = joined["here"].to_numpy(), joined["given"].to_numpy()
        order = np.argsort(pairs[0], kind="stable")
        return pairs[0][order], pairs[1][order]

    @property
    def _places(self) -> list[str]:
        return [str(place) for place in range(len(self.names))]

    def _with_row_numbers(self, table: pa.Table, name: str) -> pa.Table:
        # Columns are named by their positions, so that no name collides with the name of the row number.
        # Arrow cannot join on columns of the type null.
        columns = [column.cast(pa.int8()) if pa.types.is_null(column.type) else column for column in table.columns]
        plain = pa.table(columns, names=self._places)
        return plain.append_column(name, pa.array(np.arange(table.num_rows)))


class _NumberIndex:
    """The columns of a key that are whole numbers, dates or times, hashed once to find candidates in a batch.

    A bit for each hash excludes most rows before their hashes are looked up.
    """

    def __init__(self, table: pa.Table, places: list[int]) -> None:
        """``places``: the positions of the columns in the table of keys."""
        columns = [table.column(place) for place in places]
        self.is_exact = len(places) == table.num_columns
        """Whether the key has no other column."""
        self._places = places
        self._words = [_words(column) for column in columns]
        whole = np.flatnonzero(_all_known(columns))
        hashes = _hashed([words[whole] for words in self._words])
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._given = hashes[order], whole[order]
        self.is_unique = bool((self._hashes[1:] != self._hashes[:-1]).all())
        """Whether no two given rows have the same hash, so that none are equal."""
        bits = min(_MOST_BITS, max(_FEWEST_BITS, int(_SLOTS_A_KEY * len(hashes)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(1 << bits, bool)
        self._marked[hashes >> self._shift] = True

    @classmethod
    def of(cls, table: pa.Table) -> _NumberIndex | None:
        """The index of the keys in a table; None if the key has no column of numbers."""
        places = [place for place, column in enumerate(table.columns) if _is_number(column.type)]
        return cls(table, places) if places else None

    def candidates(self, table: pa.Table) -> tuple[Ints, Ints]:
        """The pairs of rows and given rows that are equal in these columns, in the order of the rows."""
        columns = [table.column(place) for place in self._places]
        words = [_words(column) for column in columns]
        hashes = _hashed(words)
        hits = self._marked[hashes >> self._shift]
        if any(column.null_count for column in columns):
            hits &= _all_known(columns)
        rows = np.flatnonzero(hits)
        here, given = self._same_hashes(rows, hashes[rows])
        equal = np.ones(len(here), bool)
        for own, other in zip(words, self._words, strict=True):
            equal &= own[here] == other[given]
        return here[equal], given[equal]

    def _same_hashes(self, rows: Ints, hashes: Ints) -> tuple[Ints, Ints]:
        first = np.searchsorted(self._hashes, hashes, "left")
        if self.is_unique and len(self._hashes):
            near = np.minimum(first, len(self._hashes) - 1)
            same = self._hashes[near] == hashes
            return rows[same], self._given[near[same]]
        counts = np.searchsorted(self._hashes, hashes, "right") - first
        here = np.repeat(rows, counts)
        begin = np.cumsum(counts) - counts
        return here, self._given[np.repeat(first - begin, counts) + np.arange(len(here))]


def differing(left: pa.RecordBatch, left_rows: Ints, right: pa.Table, right_rows: Ints) -> Ints:
    """The pairs of rows (as indices of the given lists) that differ in a column. Null equals null, NaN equals NaN."""
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


def _settled(table: pa.Table) -> pa.Table:
    """Keys with one NaN and one zero, so that floats are equal where their bits are."""
    columns = table.columns
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = columns[place]
            nan, zero = pa.scalar(float("nan"), field.type), pa.scalar(0.0, field.type)
            # -0.0 and 0.0 add up to 0.0; no other number changes.
            columns[place] = pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
    return pa.table(columns, schema=table.schema)


def _between_ends(field: NestedField, column: pa.ChunkedArray) -> BooleanExpression:
    """A filter for the rows between the least and the greatest of some values. At least one value is not null."""
    path, parts = (field.name,), list[BooleanExpression]()
    if pa.types.is_floating(column.type):
        is_nan = pc.fill_null(pc.is_nan(column), False)
        if pc.any(is_nan).as_py():
            parts.append(BoundPredicate(Op.IS_NAN, field, path))
            column = column.filter(pc.invert(is_nan))
    if column.null_count < len(column):
        ends = pc.min_max(column)
        least, greatest = (from_arrow_scalar(field.field_type, ends[end]) for end in ("min", "max"))
        low = BoundPredicate(Op.GT_EQ, field, path, least)
        parts.append(conjunction([low, BoundPredicate(Op.LT_EQ, field, path, greatest)]))
    return disjunction(parts)


def _string(scalar: pa.Scalar) -> Any:
    """A value for a message: a time becomes a string, since Python cannot represent every time of a column."""
    return scalar.cast(pa.string()).as_py() if pa.types.is_temporal(scalar.type) else scalar.as_py()


def _is_number(kind: pa.DataType) -> bool:
    """Whether equal values are equal integers of one width."""
    return pa.types.is_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def _words(column: pa.ChunkedArray) -> Ints:
    """Numbers as integers, with zero in the place of a null."""
    array = one_array(column)
    if not pa.types.is_integer(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    words: Ints = (array.fill_null(0) if array.null_count else array).to_numpy()
    return words


def _all_known(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """A mask of the rows without a null in any column."""
    known = np.ones(len(columns[0]), bool)
    for column in columns:
        if column.null_count:
            known &= column.is_valid().to_numpy()
    return known


def _hashed(columns: Sequence[Ints]) -> Ints:
    """A hash of each row; its upper bits depend on all columns."""
    total = columns[0].astype(np.uint64)
    total *= _MIX
    for words in columns[1:]:
        total ^= total >> _HALF
        total ^= words.astype(np.uint64)
        total *= _MIX
    return total
