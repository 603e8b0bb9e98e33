"""Variants: semi-structured values in their binary encoding, version 1, and their bounds.

A variant is two byte strings: ``metadata``, the dictionary of its field names, and ``value``. Spec: Variant
encoding (Parquet); bounds of a variant column, Appendix D.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.types.primitive import IcebergType
from icefield.types.values.binary import value_from_bytes
from icefield.types.values.internal import decimal_from_unscaled
from icefield.types.values.python import to_python

_MAX_DEPTH: Final = 100
_SHORT_STRING, _OBJECT, _ARRAY = 1, 2, 3

_FIXED_WIDTH: Final[dict[int, tuple[IcebergType, int]]] = {
    5: (iceberg.IntegerType(), 4),
    6: (iceberg.LongType(), 8),
    7: (iceberg.DoubleType(), 8),
    11: (iceberg.DateType(), 4),
    12: (iceberg.TimestamptzType(), 8),
    13: (iceberg.TimestampType(), 8),
    14: (iceberg.FloatType(), 4),
    17: (iceberg.TimeType(), 8),
    18: (iceberg.TimestamptzNanoType(), 8),
    19: (iceberg.TimestampNanoType(), 8),
    20: (iceberg.UUIDType(), 16),
}
_SMALL_INTEGERS: Final = {3: 1, 4: 2}
_DECIMALS: Final = {8: (9, 4), 9: (18, 8), 10: (38, 16)}
_SIZED: Final[dict[int, IcebergType]] = {15: iceberg.BinaryType(), 16: iceberg.StringType()}


class VariantLeaf(NamedTuple):
    """A primitive value inside a variant: its type and its internal value."""

    field_type: IcebergType
    internal: Any


def variant_to_python(metadata: bytes, value: bytes) -> Any:
    """The Python object of a variant: dicts, lists, and leaves in the form of ``to_python``.

    Raises ``InvalidArgument`` for bytes that are no variant, or a variant nested deeper than 100 levels.
    """
    return _shown(_VariantDecoder(metadata, value).decode(0, 0))


def variant_names(metadata: bytes) -> list[str]:
    """The field names that a variant's metadata holds, in the order of their ids. Raises ``InvalidArgument``."""
    return _dictionary(metadata)[0]


def variant_bounds_from_bytes(data: bytes) -> dict[str, VariantLeaf]:
    """The bounds of the fields of a variant column by their path, such as ``$['a']['b']``; ``$`` is the root.

    Raises ``InvalidArgument`` for bytes that are no such bounds.
    """
    _, length = _dictionary(data)
    fields = _VariantDecoder(data[:length], data[length:]).decode(0, 0)
    if not isinstance(fields, dict) or not all(isinstance(leaf, VariantLeaf) for leaf in fields.values()):
        raise InvalidArgument("bounds of a variant are no object of primitive values")
    return fields


def _shown(decoded: Any) -> Any:
    if isinstance(decoded, dict):
        return {name: _shown(item) for name, item in decoded.items()}
    if isinstance(decoded, list):
        return [_shown(item) for item in decoded]
    return to_python(decoded.field_type, decoded.internal)


def _number(data: bytes, start: int, size: int) -> int:
    if start < 0 or start + size > len(data):
        raise InvalidArgument("a variant ends too early")
    return int.from_bytes(data[start : start + size], "little")


def _dictionary(metadata: bytes) -> tuple[list[str], int]:
    """The names in a variant's metadata, and how many bytes it has."""
    header = _number(metadata, 0, 1)
    if header & 0x0F != 1:
        raise InvalidArgument(f"a variant has version {header & 0x0F}, not 1")
    size = (header >> 6) + 1
    count = _number(metadata, 1, size)
    begin = 1 + size * (count + 2)
    if begin > len(metadata):
        raise InvalidArgument("a variant ends too early")
    offsets = [_number(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
    if offsets != sorted(offsets) or begin + offsets[-1] > len(metadata):
        raise InvalidArgument("the names of a variant are outside its metadata")
    try:
        names = [metadata[begin + a : begin + b].decode() for a, b in pairwise(offsets)]
    except UnicodeDecodeError:
        raise InvalidArgument("a name in a variant is not UTF-8") from None
    return names, begin + offsets[-1]


class _VariantDecoder:
    def __init__(self, metadata: bytes, value: bytes) -> None:
        self.names, _ = _dictionary(metadata)
        self.data = value
        # Offsets of a damaged variant may lead to the same bytes many times; a valid one has no more values than bytes.
        self.left = len(value)

    def decode(self, at: int, depth: int) -> Any:
        self.left -= 1
        if depth > _MAX_DEPTH or self.left < 0:
            raise InvalidArgument(f"a variant is nested deeper than {_MAX_DEPTH} levels or refers to itself")
        first = _number(self.data, at, 1)
        kind, header = first & 3, first >> 2
        if kind == _OBJECT:
            return self.object(at + 1, header, depth)
        if kind == _ARRAY:
            return self.array(at + 1, header, depth)
        if kind == _SHORT_STRING:
            return VariantLeaf(iceberg.StringType(), value_from_bytes(iceberg.StringType(), self.take(at + 1, header)))
        return self.primitive(at + 1, header)

    def take(self, start: int, length: int) -> bytes:
        if start + length > len(self.data):
            raise InvalidArgument("a variant ends too early")
        return self.data[start : start + length]

    def primitive(self, at: int, kind: int) -> VariantLeaf:
        if kind == 0:
            return VariantLeaf(iceberg.UnknownType(), None)
        if kind in (1, 2):
            return VariantLeaf(iceberg.BooleanType(), kind == 1)
        if kind in _SMALL_INTEGERS:
            return VariantLeaf(
                iceberg.IntegerType(), int.from_bytes(self.take(at, _SMALL_INTEGERS[kind]), "little", signed=True)
            )
        if kind in _FIXED_WIDTH:
            field_type, width = _FIXED_WIDTH[kind]
            return VariantLeaf(field_type, value_from_bytes(field_type, self.take(at, width)))
        if kind in _DECIMALS:
            return self.decimal(at, *_DECIMALS[kind])
        if kind in _SIZED:
            return VariantLeaf(
                _SIZED[kind], value_from_bytes(_SIZED[kind], self.take(at + 4, _number(self.data, at, 4)))
            )
        raise InvalidArgument(f"a variant has a primitive of unknown kind {kind}")

    def decimal(self, at: int, precision: int, width: int) -> VariantLeaf:
        scale = _number(self.data, at, 1)
        unscaled = int.from_bytes(self.take(at + 1, width), "little", signed=True)
        if scale > precision or abs(unscaled) >= 10**precision:
            raise InvalidArgument("a decimal in a variant has too many digits")
        return VariantLeaf(iceberg.DecimalType(precision, scale), decimal_from_unscaled(unscaled, scale))

    def object(self, at: int, header: int, depth: int) -> dict[str, Any]:
        count_size = 4 if header & 0x10 else 1
        count = _number(self.data, at, count_size)
        id_size, ids = (header >> 2 & 3) + 1, at + count_size
        starts = self.starts(ids + count * id_size, count, (header & 3) + 1)
        decoded = {}
        for i, start in enumerate(starts):
            name = _number(self.data, ids + i * id_size, id_size)
            if name >= len(self.names):
                raise InvalidArgument("a field of a variant has no name in its metadata")
            decoded[self.names[name]] = self.decode(start, depth + 1)
        return decoded

    def array(self, at: int, header: int, depth: int) -> list[Any]:
        count_size = 4 if header & 4 else 1
        count = _number(self.data, at, count_size)
        return [self.decode(start, depth + 1) for start in self.starts(at + count_size, count, (header & 3) + 1)]

    def starts(self, at: int, count: int, size: int) -> list[int]:
        """Where the values of an object or array begin; ``at`` is where their offsets do."""
        values = at + (count + 1) * size
        if values > len(self.data):
            raise InvalidArgument("a variant ends too early")
        return [values + _number(self.data, at + i * size, size) for i in range(count)]
