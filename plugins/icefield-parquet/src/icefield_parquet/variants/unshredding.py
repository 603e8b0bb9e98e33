"""Reconstruction of variants that a file stores shredded.

A shredded variant is a group of ``metadata``, ``value`` and ``typed_value``. ``typed_value`` is a column of the usual
type; ``value`` holds all other values, encoded. Lists have such groups as elements, objects as fields. Spec: Variant
Shredding (Parquet). Rows are reconstructed one by one, which takes some microseconds a value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import VARIANT_ARROW

from icefield_parquet.variants.decoding import variant_names
from icefield_parquet.variants.parts import encode_array, encode_object, object_fields

_NULL: Final = b"\x00"
_LONGEST_SHORT_STRING = 63
_FIXED: Final[list[tuple[pa.DataType, int, str]]] = [
    (pa.int8(), 3, "i1"), (pa.int16(), 4, "<i2"), (pa.int32(), 5, "<i4"), (pa.int64(), 6, "<i8"),
    (pa.float64(), 7, "<f8"), (pa.float32(), 14, "<f4"), (pa.date32(), 11, "<i4"), (pa.time64("us"), 17, "<i8"),
    (pa.timestamp("us", "UTC"), 12, "<i8"), (pa.timestamp("us"), 13, "<i8"), (pa.timestamp("ns", "UTC"), 18, "<i8"),
    (pa.timestamp("ns"), 19, "<i8"), (pa.binary(16), 20, "V16"),
]  # fmt: skip
"""Types of fixed width: the number of each among the primitives of variants, and its format in memory."""

_DECIMALS: Final = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
Encoded = list[bytes | None]
"""An encoded value for each row; None where there is none."""


def unshredded(array: pa.StructArray) -> pa.StructArray:
    """The variants of shredded groups, as structs of ``metadata`` and ``value``.

    Raises ``InvalidArgument`` for groups that hold no variants, ``UnsupportedFeature`` for a type that no variant has.
    """
    if not pa.types.is_binary(array.type.field("metadata").type):
        raise InvalidArgument("the metadata of a shredded variant are no bytes")
    there = array.is_valid().to_pylist() if array.null_count else [True] * len(array)
    metadata = [held or b"" for held in _part(array, "metadata").to_pylist()]
    names = [_ids(held) if valid else {} for held, valid in zip(metadata, there, strict=True)]
    values = _encode(array, names)
    whole = [(value or _NULL) if valid else b"" for value, valid in zip(values, there, strict=True)]
    parts = [pa.array(metadata, pa.binary()), pa.array(whole, pa.binary())]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=mask)


@lru_cache(maxsize=256)
def _ids(metadata: bytes) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(variant_names(metadata))}


def _part(group: pa.StructArray, name: str) -> Any:
    """A field of a group, null where the group is; None where the group has no such field."""
    position = group.type.get_field_index(name)
    return None if position < 0 else group.flatten()[position]


def _encode(group: pa.StructArray, names: Sequence[Mapping[str, int]]) -> Encoded:
    """Encode the value of each group; None for an empty group. ``names`` are the ids of field names, by row."""
    if not pa.types.is_struct(group.type):
        raise InvalidArgument(f"a shredded variant holds {group.type} in the place of a group")
    value, typed = _part(group, "value"), _part(group, "typed_value")
    values: Encoded = [None] * len(group) if value is None else value.to_pylist()
    if typed is None or pa.types.is_null(typed.type):
        return values
    if pa.types.is_struct(typed.type):
        return _objects(typed, values, names)
    found = _lists(typed, names) if _is_list(typed.type) else _primitives(typed)
    return [each if each is not None else rest for each, rest in zip(found, values, strict=True)]


def _objects(typed: pa.StructArray, values: Encoded, names: Sequence[Mapping[str, int]]) -> Encoded:
    fields = [(field.name, _encode(child, names)) for field, child in zip(typed.type, typed.flatten(), strict=True)]
    result: Encoded = []
    for row, (valid, rest) in enumerate(zip(typed.is_valid().to_pylist(), values, strict=True)):
        if not valid:
            result.append(rest)
            continue
        held = {} if rest is None else object_fields(rest)
        for name, encoded in fields:
            part = encoded[row]
            if part is not None:
                if name not in names[row]:
                    raise InvalidArgument(f"the metadata of a variant lacks the shredded field '{name[:100]}'")
                held[names[row][name]] = part
        result.append(encode_object(held, names[row]))
    return result


def _is_list(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _lists(typed: pa.Array, names: Sequence[Mapping[str, int]]) -> Encoded:
    lengths = typed.value_lengths().fill_null(0).to_numpy()
    elements = typed.flatten()
    rows = np.repeat(np.arange(len(typed)), lengths).tolist()
    parts = [part or _NULL for part in _encode(elements, [names[row] for row in rows])]
    ends = [0, *np.cumsum(lengths).tolist()]
    return [
        encode_array(parts[start:end]) if valid else None
        for valid, (start, end) in zip(typed.is_valid().to_pylist(), pairwise(ends), strict=True)
    ]


def _primitives(typed: pa.Array) -> Encoded:
    kind = typed.type
    encode = _encoder(kind)
    if encode is None:
        raise UnsupportedFeature(f"no variant holds {kind}")
    valid = typed.is_valid().to_pylist()
    return [each if there else None for each, there in zip(encode(typed), valid, strict=True)]


def _encoder(kind: pa.DataType) -> Callable[[pa.Array], list[bytes]] | None:
    for fixed, number, layout in _FIXED:
        if kind.equals(fixed):
            return lambda array: _of_width(array, bytes([number << 2]), np.dtype(layout).itemsize)
    if pa.types.is_decimal128(kind):
        number, width = next((number, width) for most, number, width in _DECIMALS if kind.precision <= most)
        header = bytes([number << 2, kind.scale])
        return lambda array: [header + each[:width] for each in _of_width(array, b"", 16)]
    if pa.types.is_boolean(kind):
        return lambda array: [b"\x04" if each else b"\x08" for each in array.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        make = _string if pa.types.is_string(kind) else _binary
        return lambda array: [make(each or b"") for each in array.cast(pa.binary()).to_pylist()]
    return None


def _of_width(array: pa.Array, header: bytes, width: int) -> list[bytes]:
    """Return the raw values of an array of fixed width, each after a header."""
    data = array.buffers()[1]
    if data is None:
        return [header] * len(array)
    raw = data.slice(array.offset * width, len(array) * width).to_pybytes()
    return [header + raw[at : at + width] for at in range(0, len(raw), width)]


def _string(string: bytes) -> bytes:
    if len(string) <= _LONGEST_SHORT_STRING:
        return bytes([len(string) << 2 | 1]) + string
    return bytes([16 << 2]) + struct.pack("<I", len(string)) + string


def _binary(data: bytes) -> bytes:
    return bytes([15 << 2]) + struct.pack("<I", len(data)) + data
