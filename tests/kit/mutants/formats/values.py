"""Formats that change values, or the bounds of values that a float cannot hold, one defect each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from icefield.abc import FormatReader, FormatWriter, OutputStream, ReadRequest, WrittenFile
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema
from icefield.types import StructType

from mutants import Mutant, of
from mutants.formats.handed_on import Batches, Right, Writer, broken_metrics, broken_reading


def _read_values(change: Callable[[pa.DataType, Any], Any]) -> Any:
    """Return a reader that passes each value, at every depth, through a change."""

    def changed(kind: pa.DataType, value: Any) -> Any:
        if value is None:
            return None
        if pa.types.is_struct(kind):
            return change(kind, {field.name: changed(field.type, value[field.name]) for field in kind})
        if pa.types.is_map(kind):
            return change(kind, [(changed(kind.key_type, key), changed(kind.item_type, item)) for key, item in value])
        if pa.types.is_list(kind):
            return change(kind, [changed(kind.value_type, item) for item in value])
        return change(kind, value)

    def read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            columns = [
                pa.array([changed(column.type, value) for value in column.to_pylist()], column.type)
                if _is_plain(column.type)
                else column
                for column in batch.columns
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch

    return broken_reading(read)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Python's values lose nothing of the type."""
    if pa.types.is_nested(kind):
        return all(_is_plain(kind.field(at).type) for at in range(kind.num_fields))
    return pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_integer(kind)


def _trimmed(kind: pa.DataType, value: Any) -> Any:
    return value.rstrip(" ") if pa.types.is_string(kind) else value


def _stripped(kind: pa.DataType, value: Any) -> Any:
    return value.strip() if pa.types.is_string(kind) else value


def _without_zeros(kind: pa.DataType, value: Any) -> Any:
    return value.rstrip(b"\0") if pa.types.is_binary(kind) else value


def _sorted_map(kind: pa.DataType, value: Any) -> Any:
    return sorted(value, key=repr) if pa.types.is_map(kind) else value


def _sorted_list(kind: pa.DataType, value: Any) -> Any:
    return sorted(value, key=repr) if pa.types.is_list(kind) else value


def _swapped(kind: pa.DataType, value: Any) -> Any:
    if not pa.types.is_struct(kind) or kind.num_fields != 2 or kind.field(0).type != kind.field(1).type:
        return value
    one, two = value
    return {one: value[two], two: value[one]}


class TrimmedStrings(Right):
    """Cuts blanks at the end of a string, as CHAR columns do."""

    reader = _read_values(_trimmed)


class StrippedStrings(Right):
    """Cuts all white space at both ends of a string."""

    reader = _read_values(_stripped)


class TrimsZeroBytes(Right):
    """Cuts zero bytes at the end of a value, as a library in C does."""

    reader = _read_values(_without_zeros)


class MapKeysSorted(Right):
    """Sorts the entries of a map by their keys."""

    reader = _read_values(_sorted_map)


class ListsSorted(Right):
    """Sorts the elements of a list, as a set has them."""

    reader = _read_values(_sorted_list)


class SiblingsSwapped(Right):
    """Reads two fields of one type by their place, in another order."""

    reader = _read_values(_swapped)


def _through_float(bound: Any) -> Any:
    """A bound as a float states it, unless it is of another class."""
    if isinstance(bound, Decimal):
        return Decimal(float(bound)).quantize(bound) if abs(bound) < Decimal(10) ** 25 else bound
    return int(float(bound)) if type(bound) is int else bound


def _bounds(metrics: Metrics, kind: type) -> Metrics:
    def changed(bounds: Any) -> Any:
        return {number: _through_float(bound) if type(bound) is kind else bound for number, bound in bounds.items()}

    return replace(metrics, lower_bounds=changed(metrics.lower_bounds), upper_bounds=changed(metrics.upper_bounds))


class DecimalBoundsByFloat(Right):
    """Keeps bounds of decimals as floats."""

    writer = broken_metrics(lambda metrics: _bounds(metrics, Decimal))


class LongBoundsByFloat(Right):
    """Keeps bounds of longs as floats, as a JavaScript number is."""

    writer = broken_metrics(lambda metrics: _bounds(metrics, int))


class _Schemed(Right):
    """States metrics under ``renumbered`` ids."""

    def renumbered(self, schema: Schema) -> dict[int, int]:
        return {}

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        return _Renumbering(super().open_writer(sink, schema, **options), self.renumbered(schema))


class _Renumbering(Writer):
    def __init__(self, inner: FormatWriter, ids: dict[int, int]) -> None:
        super().__init__(inner)
        self.ids = ids

    def close(self) -> WrittenFile:
        written = self.inner.close()
        stated = {
            name: {self.ids.get(number, number): value for number, value in getattr(written.metrics, name).items()}
            for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
        }
        return replace(written, metrics=replace(written.metrics, **stated))


def _pairs(schema: Schema) -> list[tuple[Any, Any]]:
    """Two fields of one type in each top-level struct."""
    structs = [field.field_type for field in schema.fields if isinstance(field.field_type, StructType)]
    fields = [kind.fields for kind in structs if len(kind.fields) == 2]
    return [(one, two) for one, two in fields if one.field_type == two.field_type]


class NestedStatsSwapped(_Schemed):
    """Swaps the metrics of two sibling fields of one type."""

    def renumbered(self, schema: Schema) -> dict[int, int]:
        pairs = [(one.field_id, two.field_id) for one, two in _pairs(schema)]
        return dict(pairs) | {two: one for one, two in pairs}


class NestedStatsByName(_Schemed):
    """Matches the metrics of nested fields by the name alone, in whichever struct it is."""

    def renumbered(self, schema: Schema) -> dict[int, int]:
        by_name: dict[str, list[int]] = {}
        for field in (field for pair in _pairs(schema) for field in pair):
            by_name.setdefault(field.name, []).append(field.field_id)
        pairs = [(ids[0], ids[1]) for ids in by_name.values() if len(ids) == 2]
        return dict(pairs) | {two: one for one, two in pairs}


class NestedStatsByPlace(_Schemed):
    """Numbers the fields of all structs in the order of the schema."""

    def renumbered(self, schema: Schema) -> dict[int, int]:
        ids = [field.field_id for pair in _pairs(schema) for field in pair]
        return dict(zip(ids, sorted(ids), strict=True))


_PRIMITIVE = "test_every_primitive_type_reads_back"
_ORDER = "test_order_and_siblings_are_kept"
_EXACT = "test_bounds_of_exact_numbers_are_exact"
_SIBLINGS = "test_metrics_of_sibling_fields_are_their_own"

MUTANTS: list[Mutant] = of(
    {
        TrimmedStrings: (_PRIMITIVE, "row 6 of 'v' is 'a', not 'a '"),
        StrippedStrings: (_PRIMITIVE, "row 6 of 'v' is 'a', not 'a '"),
        TrimsZeroBytes: (_PRIMITIVE, "row 1 of 'v' is b'', not b'\\x00'"),
        MapKeysSorted: (_ORDER, "entries of a map or elements of a list come sorted"),
        ListsSorted: (_ORDER, "entries of a map or elements of a list come sorted"),
        SiblingsSwapped: (_ORDER, "two fields of one type are taken for each other"),
        DecimalBoundsByFloat: (_EXACT, "lower bound of 2: Decimal('-100000000000000000.00'), there is"),
        LongBoundsByFloat: (_EXACT, "upper bound of 2: 4611686018427387904, there is 4611686018427387905"),
        NestedStatsSwapped: (_SIBLINGS, "nulls of 3: stated 3, there are 1"),
        NestedStatsByName: (_SIBLINGS, "matched by place or by name"),
        NestedStatsByPlace: (_SIBLINGS, "matched by place or by name"),
    }
)
