"""Column metrics of a data file by field id, and their collection from record batches.

Spec: "Manifests", the fields 108 to 128 of ``data_file``. A missing id means unknown, never zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.types.arrow.nested import map_entries
from icefield.types.arrow.types import TYPE_KEY, VARIANT_ARROW, child_fields, field_id, is_list_like, unwrapped
from icefield.types.values import GeoPoint


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of one file. The keys of every map are field ids; any map may lack any id.

    ``value_counts`` include nulls and NaNs; ``column_sizes`` are bytes on disk. Bounds are internal values: the least
    and the greatest value that is neither null nor NaN. ``apply_modes`` truncates and encodes them.
    """

    record_count: int
    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, Any] = field(default_factory=dict)
    upper_bounds: dict[int, Any] = field(default_factory=dict)


class MetricsCollector:
    """Collects ``Metrics`` from the record batches of one file, with a few vectorised calls a column and batch.

    ``schema`` carries field ids; columns without an id, and leaves whose ids are ``omitted``, are skipped. Leaves of
    structs have counts and bounds, and a null struct counts as null in each leaf; leaves inside lists and maps have
    counts only. A variant is one leaf with counts; the bounds of points are the corners of their box. Raises
    ``InvalidArgument`` for a batch of another schema.
    """

    def __init__(self, schema: pa.Schema, omitted: Collection[int] = ()) -> None:
        self._rows = 0
        self._columns = [_watcher(column, omitted, bounds=True) for column in schema]

    def update(self, batch: pa.RecordBatch, counted: Collection[int] = ()) -> None:
        """Take in the rows of a batch.

        In the leaf columns at the positions ``counted`` only values and nulls are counted: the caller gets their bounds
        elsewhere.
        """
        if batch.num_columns != len(self._columns):
            raise InvalidArgument(f"a batch of {batch.num_columns} columns where {len(self._columns)} are due")
        self._rows += batch.num_rows
        for at, (watcher, column) in enumerate(zip(self._columns, batch.itercolumns(), strict=True)):
            if isinstance(watcher, _CountsWatcher) and at in counted:
                _CountsWatcher.update(watcher, column)
            elif watcher is not None:
                watcher.update(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)

    def metrics(self) -> Metrics:
        """The metrics collected so far. The writer adds the column sizes."""
        result = Metrics(self._rows)
        for watcher in self._columns:
            if watcher is not None:
                watcher.report(result)
        return result


_SIXTEEN_BYTES: Final = pa.binary(16)
# Arrow compares values of these types by their bytes.
_BYTE_STRINGS: Final = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})
# Byte order and type of a point in well-known binary, with the coordinates that follow.
_POINT_HEADER: Final = 5
_POINT_LAYOUTS: Final = {
    struct.pack("<BI", 1, code): places
    for code, places in ((1, [0, 1]), (1001, [0, 1, 2]), (2001, [0, 1, 3]), (3001, [0, 1, 2, 3]))
}
_SAMPLED_ROWS: Final = 8192
_SAMPLE: Final = 1024


class _Nested:
    """A struct, list or map: ``split`` takes its children out of an array."""

    __slots__ = ("_children", "_split")

    def __init__(self, children: list[_Watcher | None], split: Callable[[pa.Array], list[pa.Array]]) -> None:
        self._children = children
        self._split = split

    def update(self, array: pa.Array) -> None:
        for watcher, child in zip(self._children, self._split(array), strict=True):
            if watcher is not None:
                watcher.update(child)

    def report(self, into: Metrics) -> None:
        for watcher in self._children:
            if watcher is not None:
                watcher.report(into)


def _struct_children(array: pa.Array) -> list[pa.Array]:
    # `flatten` puts the struct's nulls into its children; `field` would show the values below null structs.
    return array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]


class _CountsWatcher:
    """The counts of values and nulls of a leaf, without bounds."""

    __slots__ = ("_field_id", "_nulls", "_values")

    def __init__(self, id_: int) -> None:
        self._field_id = id_
        self._values = 0
        self._nulls = 0

    def update(self, array: pa.Array) -> None:
        self._values += len(array)
        self._nulls += array.null_count

    def report(self, into: Metrics) -> None:
        into.value_counts[self._field_id] = self._values
        into.null_value_counts[self._field_id] = self._nulls


class _BoundsWatcher(_CountsWatcher):
    """A leaf with bounds in the order of its Arrow type: numbers by value, strings and bytes by unsigned bytes."""

    __slots__ = ("_lower", "_upper")

    def __init__(self, id_: int) -> None:
        super().__init__(id_)
        self._lower: Any = None
        self._upper: Any = None

    def update(self, array: pa.Array) -> None:
        super().update(array)
        if array.null_count < len(array):
            extremes = pc.min_max(array)
            self._widen(_internal(extremes["min"]), _internal(extremes["max"]))

    def _widen(self, low: Any, high: Any) -> None:
        if self._lower is None or low < self._lower:
            self._lower = low
        if self._upper is None or high > self._upper:
            self._upper = high

    def report(self, into: Metrics) -> None:
        super().report(into)
        if self._lower is not None:
            into.lower_bounds[self._field_id] = self._lower
            into.upper_bounds[self._field_id] = self._upper


class _Strings(_BoundsWatcher):
    """A leaf of strings or bytes.

    Comparing with two constants is several times as fast as Arrow's minimum and maximum. So each array is compared
    with the bounds of earlier values and of a sample, and only the rows outside them are examined.
    """

    __slots__ = ()

    def update(self, array: pa.Array) -> None:
        _CountsWatcher.update(self, array)
        if len(array) < _SAMPLED_ROWS:
            self._look_at(array)
            return
        self._look_at(array.take(np.linspace(0, len(array) - 1, _SAMPLE, dtype=np.int64)))
        if self._lower is None:
            self._look_at(array)
            return
        for outside in (pc.less(array, self._lower), pc.greater(array, self._upper)):
            if pc.any(outside).as_py():
                self._look_at(array.filter(outside))

    def _look_at(self, array: pa.Array) -> None:
        if array.null_count < len(array):
            extremes = pc.min_max(array)
            self._widen(extremes["min"].as_py(), extremes["max"].as_py())


class _Uuids(_BoundsWatcher):
    """A leaf of 16 bytes, compared as two big-endian integers: Arrow's own minimum takes seven times as long."""

    __slots__ = ()

    def update(self, array: pa.Array) -> None:
        _CountsWatcher.update(self, array)
        values = array.drop_null() if array.null_count else array
        if not len(values):
            return
        pairs = np.frombuffer(values.buffers()[1], "<u8")[2 * values.offset :][: 2 * len(values)].reshape(-1, 2)
        high = pairs[:, 0].byteswap()
        least, greatest = high.min(), high.max()
        low_of_least = pairs[high == least, 1].byteswap().min()
        low_of_greatest = pairs[high == greatest, 1].byteswap().max()
        self._widen(_joined(least, low_of_least), _joined(greatest, low_of_greatest))


def _joined(high: Any, low: Any) -> bytes:
    return (int(high) << 64 | int(low)).to_bytes(16, "big")


class _Floats(_BoundsWatcher):
    """A leaf of floats: NaNs are counted and are no bounds, and -0.0 is below 0.0."""

    __slots__ = ("_has_bounds", "_nans")

    def __init__(self, id_: int, *, bounds: bool) -> None:
        super().__init__(id_)
        self._has_bounds = bounds
        self._nans = 0

    def update(self, array: pa.Array) -> None:
        _CountsWatcher.update(self, array)
        values = array.drop_null().to_numpy()
        if not len(values):
            return
        # These skip NaNs; the result is NaN only if all values are.
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        self._nans += int(np.count_nonzero(np.isnan(values)))
        if self._has_bounds and not math.isnan(low):
            self._widen_floats(values, float(low), float(high))

    def _widen_floats(self, values: Any, low: float, high: float) -> None:
        if low == 0:
            low = -0.0 if bool(np.signbit(values[values == 0]).any()) else 0.0
        if high == 0:
            high = -0.0 if bool(np.signbit(values[values == 0]).all()) else 0.0
        if self._lower is None or _total_order(low) < _total_order(self._lower):
            self._lower = low
        if self._upper is None or _total_order(high) > _total_order(self._upper):
            self._upper = high

    def report(self, into: Metrics) -> None:
        super().report(into)
        into.nan_value_counts[self._field_id] = self._nans


class _Points(_CountsWatcher):
    """A leaf of shapes in well-known binary, bounded by the corners of their box as long as all are points.

    Lines and areas would have to be walked one by one: with them there are no bounds.
    """

    __slots__ = ("_all_points", "_greatest", "_least")

    def __init__(self, id_: int) -> None:
        super().__init__(id_)
        self._all_points = True
        # x, y, z and m; NaN where no shape has the coordinate.
        self._least = np.full(4, np.nan)
        self._greatest = np.full(4, np.nan)

    def update(self, array: pa.Array) -> None:
        super().update(array)
        shapes = array.drop_null() if array.null_count else array
        if not self._all_points or not len(shapes):
            return
        found = _coordinates(shapes)
        if found is None:
            self._all_points = False
            return
        places, values = found
        self._least[places] = np.fmin(self._least[places], np.fmin.reduce(values))
        self._greatest[places] = np.fmax(self._greatest[places], np.fmax.reduce(values))

    def report(self, into: Metrics) -> None:
        super().report(into)
        if self._all_points and not np.isnan(self._least[:2]).any():
            into.lower_bounds[self._field_id] = _corner(self._least)
            into.upper_bounds[self._field_id] = _corner(self._greatest)


def _coordinates(shapes: pa.Array) -> tuple[list[int], Any] | None:
    """The dimensions of points and a row of coordinates for each; None unless all are little-endian, of one layout."""
    offsets = np.frombuffer(shapes.buffers()[1], np.int32)[shapes.offset :][: len(shapes) + 1]
    size = int(offsets[1] - offsets[0])
    if size < _POINT_HEADER or not (np.diff(offsets) == size).all():
        return None
    rows = np.frombuffer(shapes.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(len(shapes), size)
    places = _POINT_LAYOUTS.get(bytes(rows[0, :_POINT_HEADER]))
    if places is None or size != _POINT_HEADER + 8 * len(places):
        return None
    if not (rows[:, :_POINT_HEADER] == rows[0, :_POINT_HEADER]).all():
        return None
    return places, np.ascontiguousarray(rows[:, _POINT_HEADER:]).view("<f8")


def _corner(coordinates: Any) -> GeoPoint:
    x, y, z, m = (None if math.isnan(value) else float(value) for value in coordinates)
    assert x is not None
    assert y is not None
    return GeoPoint(x, y, z, m)


def _total_order(value: float) -> tuple[float, float]:
    return value, math.copysign(1.0, value)


def _internal(scalar: pa.Scalar) -> Any:
    """The internal value of a scalar: the stored integer of a date or time."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


_Watcher = _Nested | _CountsWatcher


def _watcher(column: pa.Field, omitted: Collection[int], *, bounds: bool) -> _Watcher | None:
    """The watcher of a column; None if no leaf in it has an id that is not omitted."""
    arrow_type = unwrapped(column.type)
    if pa.types.is_struct(arrow_type) and not arrow_type.equals(VARIANT_ARROW):
        children = [_watcher(child, omitted, bounds=bounds) for child in child_fields(arrow_type)]
        return _Nested(children, _struct_children) if any(children) else None
    if pa.types.is_map(arrow_type):
        entries = [_watcher(child, omitted, bounds=False) for child in child_fields(arrow_type)]
        return _Nested(entries, lambda array: _struct_children(map_entries(array).flatten())) if any(entries) else None
    if is_list_like(arrow_type):
        element = _watcher(arrow_type.value_field, omitted, bounds=False)
        # `flatten` gives the elements of this slice only, without those below a null list.
        return _Nested([element], lambda array: [array.flatten()]) if element is not None else None
    id_ = field_id(column)
    if id_ is None or id_ in omitted:
        return None
    if pa.types.is_floating(arrow_type):
        return _Floats(id_, bounds=bounds)
    if not bounds or pa.types.is_null(arrow_type) or pa.types.is_struct(arrow_type):
        return _CountsWatcher(id_)
    # The order of the bytes of geometries and geographies has no meaning.
    if (column.metadata or {}).get(TYPE_KEY, b"").startswith((b"geometry", b"geography")):
        return _Points(id_)
    if arrow_type in _BYTE_STRINGS:
        return _Strings(id_)
    return _Uuids(id_) if arrow_type.equals(_SIXTEEN_BYTES) else _BoundsWatcher(id_)
