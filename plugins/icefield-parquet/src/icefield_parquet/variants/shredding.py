"""Shredding of variants: values of the column's type go to ``typed_value``, all others stay encoded.

Spec: Variant Shredding (Parquet). ``icefield_parquet.variants.shredded_types`` finds the type, and
``icefield_parquet.variants.unshredding`` reverses the shredding. A column of integers takes narrower integers too,
which the format treats as the same values; every other value keeps its exact type or stays encoded.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument

from icefield_parquet.variants import cells as kind
from icefield_parquet.variants.cells import Cells, Numbers, Variants, bitmap, byte_strings
from icefield_parquet.variants.residues import encoded_residues

_FIXED: Final[dict[pa.DataType, tuple[int, ...]]] = {
    pa.int8(): (kind.INT8,), pa.int16(): (kind.INT8, kind.INT16), pa.int32(): (kind.INT8, kind.INT16, kind.INT32),
    pa.int64(): (kind.INT8, kind.INT16, kind.INT32, kind.INT64), pa.float32(): (kind.FLOAT,),
    pa.float64(): (kind.DOUBLE,), pa.date32(): (kind.DATE,), pa.time64("us"): (kind.TIME,),
    pa.timestamp("us", "UTC"): (kind.TIMESTAMPTZ,), pa.timestamp("us"): (kind.TIMESTAMP,),
    pa.timestamp("ns", "UTC"): (kind.TIMESTAMPTZ_NANOS,), pa.timestamp("ns"): (kind.TIMESTAMP_NANOS,),
}  # fmt: skip
"""The kinds of cells that a column of a fixed-width type holds."""

_INTEGERS: Final = {kind.INT8: 1, kind.INT16: 2, kind.INT32: 4, kind.INT64: 8}
_DECIMALS: Final = {kind.DECIMAL4: 4, kind.DECIMAL8: 8, kind.DECIMAL16: 16}
_MOST_DIGITS: Final = {kind.DECIMAL4: 9, kind.DECIMAL8: 18, kind.DECIMAL16: 38}
_A_DAY: Final = 86_400_000_000
_UUID_BYTES: Final = 16


def shredded(array: pa.StructArray, wanted: pa.StructType, absent: Any = None) -> pa.StructArray:
    """Variants as groups of ``metadata``, ``value`` and ``typed_value``; ``absent`` is as for ``Variants``.

    Raises ``InvalidArgument`` for damaged ones.
    """
    variants = Variants(array, absent)
    metadata = array.field(array.type.get_field_index("metadata")).fill_null(b"")
    parts = [metadata, *_group(variants, len(array), variants.there, variants.roots, wanted)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)


def _group(
    variants: Variants, length: int, places: Numbers, cells: Cells, wanted: pa.StructType
) -> tuple[pa.Array, pa.Array]:
    """``value`` and ``typed_value`` of a group, with the cells at the ascending ``places`` and nothing elsewhere."""
    typed = wanted.field("typed_value").type
    kinds = variants.kinds(cells)
    if pa.types.is_struct(typed):
        fits = kinds == kind.OBJECT
        rest, found = _objects(variants, length, places[fits], cells.take(fits), typed)
        encoded = _encoded(variants, length, places[~fits], cells.take(~fits))
        return pc.coalesce(encoded, rest), found
    if pa.types.is_list(typed):
        fits = kinds == kind.ARRAY
        found = _lists(variants, length, places[fits], cells.take(fits), typed)
    else:
        fits, found = _primitives(variants, length, places, cells, kinds, typed)
    return _encoded(variants, length, places[~fits], cells.take(~fits)), found


def _encoded(variants: Variants, length: int, places: Numbers, cells: Cells) -> pa.Array:
    return _bytes_at(variants.data, length, places, cells.at, cells.sizes)


def _bytes_at(data: Any, length: int, places: Numbers, at: Numbers, sizes: Numbers) -> pa.Array:
    there, all_at, all_sizes = np.zeros(length, bool), np.zeros(length, np.int64), np.zeros(length, np.int64)
    there[places], all_at[places], all_sizes[places] = True, at, sizes
    return byte_strings(data, all_at, all_sizes, there)


def _objects(
    variants: Variants, length: int, places: Numbers, cells: Cells, typed: pa.StructType
) -> tuple[pa.Array, pa.Array]:
    """Return the fields of objects without a column, encoded, and the fields with a column."""
    inside = variants.inside(cells)
    numbers = {name: number for number, name in enumerate(variants.names)}
    order = np.argsort(inside.names, kind="stable")
    ordered = inside.names[order]
    children, rest = [], np.ones(len(order), bool)
    for field in typed:
        number = numbers.get(field.name, -1)
        chosen = order[np.searchsorted(ordered, number) : np.searchsorted(ordered, number, "right")]
        owners = inside.owners[chosen]
        if (owners[1:] == owners[:-1]).any():
            raise InvalidArgument("an object in a variant has two fields of one name")
        rest[chosen] = False
        parts = _group(variants, length, places[owners], inside.cells.take(chosen), field.type)
        children.append(pa.StructArray.from_arrays(list(parts), fields=list(field.type)))
    there = np.zeros(length, bool)
    there[places] = True
    residues = encoded_residues(variants, inside, rest, len(cells))
    positions = np.zeros(length, np.int64)
    positions[places] = np.arange(len(cells))
    spread = residues.take(pa.array(positions, mask=~there))
    return spread, pa.Array.from_buffers(typed, length, [bitmap(there)], children=children)


def _lists(variants: Variants, length: int, places: Numbers, cells: Cells, typed: pa.ListType) -> pa.Array:
    inside = variants.inside(cells)
    counts = np.zeros(length, np.int64)
    counts[places] = np.bincount(inside.owners, minlength=len(cells))
    there = np.zeros(length, bool)
    there[places] = True
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    group = typed.value_type
    parts = _group(variants, len(inside.cells), np.arange(len(inside.cells)), inside.cells, group)
    elements = pa.StructArray.from_arrays(list(parts), fields=list(group))
    return pa.Array.from_buffers(typed, length, [bitmap(there), pa.py_buffer(offsets)], children=[elements])


def _primitives(
    variants: Variants, length: int, places: Numbers, cells: Cells, kinds: Numbers, typed: pa.DataType
) -> tuple[Any, pa.Array]:
    """Which cells fit a column, and the column."""
    if typed in _FIXED:
        return _of_width(variants, length, places, cells, kinds, typed)
    if pa.types.is_boolean(typed):
        fits = (kinds == kind.TRUE) | (kinds == kind.FALSE)
        truths = np.zeros(length, bool)
        truths[places] = kinds == kind.TRUE
        return fits, pa.Array.from_buffers(typed, length, [_there(length, places[fits]), bitmap(truths)])
    if pa.types.is_decimal128(typed):
        return _decimals(variants, length, places, cells, kinds, typed)
    if isinstance(typed, pa.BaseExtensionType):
        fits = kinds == kind.UUID
        held = np.zeros((length, _UUID_BYTES), np.uint8)
        held[places[fits]] = _read(variants.data, cells.at[fits] + 1, _UUID_BYTES)
        storage = pa.Array.from_buffers(
            typed.storage_type, length, [_there(length, places[fits]), pa.py_buffer(held.reshape(-1))]
        )
        return fits, pa.ExtensionArray.from_storage(typed, storage)
    fits = kinds == (kind.STRING if pa.types.is_string(typed) else kind.BINARY)
    found = _bytes_at(variants.data, length, places[fits], *variants.payloads(cells.take(fits)))
    if not pa.types.is_string(typed):
        return fits, found
    try:
        return fits, found.cast(typed)
    except pa.ArrowInvalid:
        strings = [_string(each) for each in found.to_pylist()]  # some are not UTF-8: these stay as they are
        fits &= np.array([string is not None for string in strings], bool)[places]
        return fits, pa.array(strings, typed)


def _string(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _there(length: int, places: Numbers) -> pa.Buffer:
    there = np.zeros(length, bool)
    there[places] = True
    return bitmap(there)


def _read(data: Any, at: Numbers, width: int) -> Any:
    """Return ``width`` bytes at each position, as rows of a matrix."""
    return data[at[:, None] + np.arange(width)]


def _of_width(
    variants: Variants, length: int, places: Numbers, cells: Cells, kinds: Numbers, typed: pa.DataType
) -> tuple[Any, pa.Array]:
    width = typed.bit_width // 8
    found = np.zeros(len(cells), f"<i{width}")
    fits = np.isin(kinds, _FIXED[typed])
    for each in _FIXED[typed]:
        here = kinds == each
        size = _INTEGERS.get(each, width)
        found[here] = _read(variants.data, cells.at[here] + 1, size).view(f"<i{size}").reshape(-1)
    if pa.types.is_time(typed):
        fits &= (found >= 0) & (found < _A_DAY)  # readers take any other time for damage
    held = np.zeros(length, found.dtype)
    held[places] = found
    return fits, pa.Array.from_buffers(typed, length, [_there(length, places[fits]), pa.py_buffer(held)])


def _decimals(
    variants: Variants, length: int, places: Numbers, cells: Cells, kinds: Numbers, typed: pa.Decimal128Type
) -> tuple[Any, pa.Array]:
    """Decimals of exactly the column's scale, within its precision: 1.5 and 1.50 are different values."""
    scaled, unscaled = unscaled_decimals(variants, cells, kinds)
    fits = (scaled == typed.scale) & within(unscaled, typed.precision)
    held = np.zeros((length, 2), np.int64)
    held[places] = unscaled
    return fits, pa.Array.from_buffers(typed, length, [_there(length, places[fits]), pa.py_buffer(held.reshape(-1))])


def unscaled_decimals(variants: Variants, cells: Cells, kinds: Numbers) -> tuple[Numbers, Any]:
    """The scale of each cell's decimal, -1 for others, and its digits as two halves of an integer, the lower first.

    A decimal with more digits than its kind allows does not count as one.
    """
    scales, unscaled = np.full(len(cells), -1, np.int64), np.zeros((len(cells), 2), np.int64)
    for each, width in _DECIMALS.items():
        here = np.flatnonzero(kinds == each)
        raw = _read(variants.data, cells.at[here] + 2, width)
        if width == 2 * 8:
            unscaled[here] = raw.view("<i8")
        else:
            low = raw.view(f"<i{width}").reshape(-1).astype(np.int64)
            unscaled[here, 0], unscaled[here, 1] = low, low >> 63
        scales[here] = variants.data[cells.at[here] + 1]
        sound = within(unscaled[here], _MOST_DIGITS[each]) & (scales[here] <= _MOST_DIGITS[each])
        scales[here[~sound]] = -1
    return scales, unscaled


def within(unscaled: Any, digits: int) -> Any:
    """Return a mask of integers with at most ``digits`` digits."""
    most = pa.scalar(10**digits - 1, pa.decimal128(38, 0))
    least = pa.scalar(1 - 10**digits, pa.decimal128(38, 0))
    data = pa.py_buffer(np.ascontiguousarray(unscaled).reshape(-1))
    integers = pa.Array.from_buffers(pa.decimal128(38, 0), len(unscaled), [None, data])
    fits = pc.and_(pc.less_equal(integers, most), pc.greater_equal(integers, least))
    return fits.to_numpy(zero_copy_only=False)
