"""Formats that are wrong for uncommon types, tables and requests, one defect each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FormatAbility, FormatReader, ManifestFormatReader, ManifestReadRequest, ReadRequest, Split
from icefield.metadata.metrics import Metrics
from icefield.toolkit import child_fields
from json_lines import JsonLinesReader

from mutants import Mutant, of
from mutants.formats import by_rows
from mutants.formats.handed_on import Batches, Reader, Right, broken_metrics, broken_reading

# -- types


def _with_nested(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A type with a change applied to its inner fields."""
    fields = [change(field.with_type(_with_nested(field.type, change))) for field in child_fields(kind)]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(*fields)
    return pa.list_(fields[0]) if pa.types.is_list(kind) else kind


def _read_leaves(change: Callable[[pa.Array, bool], pa.Array]) -> Any:
    """Return a reader that applies a change to each leaf. The change also gets whether the leaf is nested."""

    def changed(array: pa.Array, inside: bool) -> pa.Array:
        kind = array.type
        if pa.types.is_struct(kind):
            children = [changed(child, True) for child in array.flatten()]
            return pa.StructArray.from_arrays(children, fields=[*kind], mask=array.is_null()) if children else array
        if pa.types.is_map(kind) or pa.types.is_list(kind):
            values = [changed(child, True) for child in _values(array)]
            child = pa.StructArray.from_arrays(values, fields=child_fields(kind)) if len(values) > 1 else values[0]
            buffers = array.buffers()[:2]
            return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [child])
        return change(array, inside)

    def read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            columns = [changed(column, False) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch

    return broken_reading(read)


def _values(array: pa.Array) -> list[pa.Array]:
    return [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]


def _in_microseconds(array: pa.Array, inside: bool) -> pa.Array:
    if not (pa.types.is_timestamp(array.type) and array.type.unit == "ns"):
        return array
    coarse = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    return coarse.cast(array.type)


def _without_negative_zero(array: pa.Array, inside: bool) -> pa.Array:
    if not pa.types.is_binary(array.type):
        return array
    return pa.array([value and value.replace(bytes(7) + b"\x80", bytes(8)) for value in array.to_pylist()], array.type)


def _negated_inside(array: pa.Array, inside: bool) -> pa.Array:
    if inside and pa.types.is_floating(array.type):
        return pc.negate(array)
    return array


class KeepsMicroseconds(Right):
    """Stores timestamps of nanoseconds in microseconds."""

    reader = _read_leaves(_in_microseconds)


class RewritesGeometries(Right):
    """Parses geometries and writes them anew with a library that turns -0.0 into 0.0."""

    reader = _read_leaves(_without_negative_zero)


class ConvertsColumnsAlone(Right):
    """Stores floats in another form, and converts back only columns, not nested fields."""

    reader = _read_leaves(_negated_inside)


class StoresStructsAsText(Right):
    """States that structs are strings, as a format that stores them as JSON may do."""

    class reader(Reader):
        @property
        def schema(self) -> pa.Schema:
            return pa.schema([_as_text(field) for field in self.inner.schema])

        def read(self, request: ReadRequest) -> Batches:
            schema = self.inner.schema
            wanted = pa.schema([schema.field(name) for name in request.columns.names])
            for batch in self.inner.read(replace(request, columns=wanted)):
                columns = [
                    pa.array([None if row is None else str(row) for row in column.to_pylist()], pa.string())
                    if pa.types.is_struct(column.type)
                    else column
                    for column in batch.columns
                ]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _as_text(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_struct(field.type) else field


# -- any table


class SkipsRowsOfNulls(Right):
    """Leaves out rows of nulls, as readers of CSV leave out empty lines."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            kept = np.zeros(batch.num_rows, bool)
            for column in batch.columns:
                kept |= np.asarray(column.is_valid())
            yield batch.filter(pa.array(kept)) if batch.num_columns else batch

    reader = broken_reading(_read)


class CountsOneNullTooMany(Right):
    """Counts one null too many in each column."""

    writer = broken_metrics(
        lambda metrics: replace(
            metrics, null_value_counts={number: count + 1 for number, count in metrics.null_value_counts.items()}
        )
    )


class OverlapsSplits(Right):
    """Reads the block after a split as well."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        split = request.split and Split(request.split.start, request.split.length + 1_000)
        yield from inner.read(replace(request, split=split))

    reader = broken_reading(_read)


# -- filters


class TakesNanForABound(by_rows.Right):
    """Gives -inf as the bounds of a block with NaN, so that filters skip the block."""

    class reader(JsonLinesReader):
        def block_metrics(self) -> Sequence[Metrics]:
            return [self._broken(metrics) for metrics in super().block_metrics()]

        def _broken(self, metrics: Metrics) -> Metrics:
            if any(metrics.nan_value_counts.values()):
                bounds = dict.fromkeys(metrics.nan_value_counts, float("-inf"))
                return replace(metrics, lower_bounds={**metrics.lower_bounds, **bounds}, upper_bounds=bounds)
            return metrics


class TakesNegativeZeroForLess(by_rows.Right):
    """Gives a number just below zero as a bound for zero, so that filters for 0.0 skip the block."""

    class reader(JsonLinesReader):
        def block_metrics(self) -> Sequence[Metrics]:
            found = super().block_metrics()
            return [replace(each, **{side: _below(getattr(each, side)) for side in _BOUNDS}) for each in found]


_BOUNDS = ("lower_bounds", "upper_bounds")


def _below(bounds: Any) -> Any:
    return {number: -5e-324 if isinstance(bound, float) and bound == 0 else bound for number, bound in bounds.items()}


# -- deleted rows


class _Skips(Right):
    abilities = Right.abilities | {FormatAbility.SKIPS}


class DeclaresSkipsAndReadsAll(_Skips):
    """Declares an ability that it does not have."""


class SkipsBatchesWithDeletedRows(_Skips):
    """Skips a whole batch if one of its rows is deleted."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        first = 0
        deleted = np.asarray([] if request.skipped_rows is None else request.skipped_rows, np.int64)
        for batch in inner.read(request):
            if not np.any((deleted >= first) & (deleted < first + batch.num_rows)):
                yield batch
            first += batch.num_rows

    reader = broken_reading(_read)


class CountsPositionsWithoutDeletedRows(_Skips):
    """Gives positions that do not count deleted rows."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        first = row = 0
        deleted = np.asarray([] if request.skipped_rows is None else request.skipped_rows, np.int64)
        for batch in inner.read(request):
            kept = ~np.isin(np.arange(first, first + batch.num_rows), deleted)
            first += batch.num_rows
            batch = batch.filter(pa.array(kept))
            yield by_rows.positioned(batch, range(row, row + batch.num_rows)) if request.positions else batch
            row += batch.num_rows

    reader = broken_reading(_read)


# -- manifests


class CountsPositionsThroughAllFiles(Right):
    """Numbers the rows of several files that are read together as if they were one file."""

    def read_together(
        self, readers: Sequence[ManifestFormatReader], request: ManifestReadRequest
    ) -> list[list[pa.RecordBatch]]:
        row, found = 0, []
        for batches in super().read_together(readers, request):
            numbered = []
            for batch in batches:
                numbered.append(by_rows.positioned(batch, range(row, row + batch.num_rows)))
                row += batch.num_rows
            found.append(numbered)
        return found


class PreparingTakesRowsAway(Right):
    """Decodes the first batch ahead, and forgets it."""

    class reader(Reader):
        prepared = False

        def prepare(self, limit: int) -> None:
            self.prepared = True

        def read(self, request: ReadRequest) -> Batches:
            batches = self.inner.read(request)
            if self.prepared:
                next(batches, None)
            yield from batches


class PreparedRowsComeTwice(PreparingTakesRowsAway):
    """Gives the batch that was decoded ahead, and decodes it again."""

    class reader(PreparingTakesRowsAway.reader):
        def read(self, request: ReadRequest) -> Batches:
            for batch in self.inner.read(request):
                if self.prepared:
                    yield batch
                self.prepared = False
                yield batch


_FILTER = "test_a_filter_passes_over_nan_and_negative_zero_rightly"
_DELETED = "test_deleted_rows_may_be_skipped_and_no_others"
_PREPARED = "test_what_was_prepared_is_read_as_it_is"

MUTANTS: list[Mutant] = of(
    {
        KeepsMicroseconds: ("test_every_primitive_type_reads_back", "of 'v' is"),
        RewritesGeometries: ("test_every_type_of_version_3_reads_back", "row 1 of 'v' is b'\\x01\\x01"),
        ConvertsColumnsAlone: ("test_every_type_reads_back_at_every_place", "is converted at the top level only"),
        StoresStructsAsText: ("test_a_schema_that_does_not_fit_is_refused", "states another type than the file has"),
        SkipsRowsOfNulls: ("test_any_table_reads_back", "0 rows came back of 1 that were written"),
        CountsOneNullTooMany: ("test_metrics_of_any_table_are_true", "stated 1, there are 0"),
        OverlapsSplits: ("test_any_table_is_read_in_any_splits", "1 of 1 rows come twice"),
        TakesNanForABound: (_FILTER, "left out rows that match: 50 to 99"),
        TakesNegativeZeroForLess: (_FILTER, "the filter 'v = 0.0' left out rows that match: 50 to "),
        DeclaresSkipsAndReadsAll: (_DELETED, "20,000 rows are read of which 20,000 are deleted"),
        SkipsBatchesWithDeletedRows: (_DELETED, "rows are missing that are not deleted, row 1 first"),
        CountsPositionsWithoutDeletedRows: (_DELETED, "`_pos` of row 1 is 0 where 1 rows are deleted"),
        CountsPositionsThroughAllFiles: (
            "test_positions_begin_at_0_in_each_of_files_read_together",
            "`_pos` of row 0 is 50",
        ),
        PreparingTakesRowsAway: (_PREPARED, "rows came back of 3,000 that were written"),
        PreparedRowsComeTwice: (_PREPARED, "rows came back of 3,000 that were written"),
    }
)
