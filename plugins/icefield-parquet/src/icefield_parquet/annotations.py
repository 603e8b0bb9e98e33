"""Checks of column annotations: the physical types that each may annotate, and the verdict on each column.

pyarrow ignores an annotation that does not fit its column, and truncates values to the width that an annotation
promises. Here a misfit is an error, as the format demands, and the stored values are kept.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Final, NamedTuple

from icefield.errors import InvalidFile, UnsupportedFeature

from icefield_parquet.thrift import I32, TRUE, Fields, read_int, read_struct, write_int, write_struct

# The fields of an element of the schema.
TYPE, LENGTH, REPETITION, NAME, CONVERTED, SCALE, PRECISION, FIELD_ID, LOGICAL = 1, 2, 3, 4, 6, 7, 8, 9, 10

_INT32, _INT64, _BINARY, _FIXED = 1, 2, 6, 7
_PHYSICAL: Final = ("boolean", "int32", "int64", "int96", "float", "double", "binary", "fixed_len_byte_array")

# The members of the union of logical types.
STRING, ENUM, DECIMAL, DATE, TIME, TIMESTAMP, INTEGER, JSON, BSON, UUID, FLOAT16 = 1, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15
VARIANT, GEOMETRY, GEOGRAPHY = 16, 17, 18
_PLAIN: Final = {
    STRING: ("STRING", _BINARY),
    ENUM: ("ENUM", _BINARY),
    DATE: ("DATE", _INT32),
    TIMESTAMP: ("TIMESTAMP", _INT64),
    JSON: ("JSON", _BINARY),
    BSON: ("BSON", _BINARY),
    GEOMETRY: ("GEOMETRY", _BINARY),
    GEOGRAPHY: ("GEOGRAPHY", _BINARY),
}
_SIZED: Final = {UUID: ("UUID", 16), FLOAT16: ("FLOAT16", 2)}
MILLIS, MICROS, NANOS = 1, 2, 3
_UNIT_NAMES: Final = {MILLIS: "MILLIS", MICROS: "MICROS", NANOS: "NANOS"}

# The old annotations.
UTF8, OLD_ENUM, OLD_DECIMAL = 0, 4, 5
_OLD_TIMES: Final = {(TIME, MILLIS): 7, (TIME, MICROS): 8, (TIMESTAMP, MILLIS): 9, (TIMESTAMP, MICROS): 10}
_OLD_SMALL_INTEGERS: Final = frozenset({11, 12, 15, 16})
_MOST_INT32_DIGITS, _MOST_INT64_DIGITS = 9, 18


class Verdict(NamedTuple):
    """The verdict on a column's annotations: an error, a warning, or replacement annotations.

    ``instead`` holds the fields that replace the annotations of the element; None leaves the element unchanged.
    """

    error: type[InvalidFile | UnsupportedFeature] | None = None
    reason: str = ""
    instead: tuple[tuple[int, tuple[int, bytes]], ...] | None = None


FINE: Final = Verdict()
_BARE: Final = Verdict(instead=())
_STRING: Final = Verdict(instead=((CONVERTED, (I32, write_int(UTF8))),))


def judge(fields: Fields) -> Verdict:
    """Judge an element of a schema. Raises ``ValueError`` for a malformed element."""
    if TYPE not in fields or (CONVERTED not in fields and LOGICAL not in fields):
        return FINE
    logical = fields.get(LOGICAL)
    if logical is not None:
        return _judge_logical(_int(fields, TYPE), _int(fields, LENGTH), logical[1])
    old = _int(fields, CONVERTED)
    if old in _OLD_SMALL_INTEGERS:
        return _BARE if _int(fields, TYPE) == _INT32 else FINE
    if old == OLD_ENUM:
        return _STRING if _int(fields, TYPE) == _BINARY else FINE
    if old == OLD_DECIMAL:
        precision, scale = _int(fields, PRECISION), _int(fields, SCALE)
        return _decimal(_int(fields, TYPE), _int(fields, LENGTH), precision, scale)
    return FINE


def _int(fields: Fields, number: int) -> int:
    found = fields.get(number)
    return read_int(found[1]) if found is not None and found[0] == I32 else 0


@lru_cache(maxsize=512)
def _judge_logical(physical: int, length: int, data: bytes) -> Verdict:
    union, _ = read_struct(data, 0)
    if len(union) != 1:
        return FINE
    ((kind, (_, held)),) = union.items()
    if kind in _PLAIN:
        name, wanted = _PLAIN[kind]
        if physical != wanted:
            return _wrong(name, physical)
        if kind == TIMESTAMP and _unit(held) not in _UNIT_NAMES:
            return _unknown_unit(name)
        return _STRING if kind == ENUM else FINE
    if kind in _SIZED:
        name, size = _SIZED[kind]
        return FINE if (physical, length) == (_FIXED, size) else _wrong(name, physical, length)
    if kind == DECIMAL:
        fields, _ = read_struct(held, 0)
        return _decimal(physical, length, _int(fields, 2), _int(fields, 1))
    if kind == TIME:
        return _time(physical, held)
    return _integer(physical, held) if kind == INTEGER else FINE


def _time(physical: int, held: bytes) -> Verdict:
    unit = _unit(held)
    if unit not in _UNIT_NAMES:
        return _unknown_unit("TIME")
    wanted = _INT32 if unit == MILLIS else _INT64
    return FINE if physical == wanted else _wrong(f"TIME in {_UNIT_NAMES[unit]}", physical)


def _unit(held: bytes) -> int:
    """The unit of a time or a timestamp; 0 where there is none."""
    fields, _ = read_struct(held, 0)
    union, _ = read_struct(fields[2][1], 0) if 2 in fields else ({}, 0)
    return next(iter(union), 0)


def _integer(physical: int, held: bytes) -> Verdict:
    fields, _ = read_struct(held, 0)
    (width,) = struct.unpack("b", fields[1][1]) if 1 in fields else (0,)
    name = f"INTEGER({width}, {'signed' if 2 in fields and fields[2][0] == TRUE else 'unsigned'})"
    if width not in (8, 16, 32, 64):
        return Verdict(InvalidFile, f"{name} is no annotation of the format")
    if physical != (_INT64 if width == 64 else _INT32):
        return _wrong(name, physical)
    return _BARE if width < 32 else FINE


def _decimal(physical: int, length: int, precision: int, scale: int) -> Verdict:
    name = f"DECIMAL({precision}, {scale})"
    if precision < 1 or not 0 <= scale <= precision:
        return Verdict(InvalidFile, f"{name} is no annotation of the format")
    if physical == _BINARY:
        return FINE
    if physical == _FIXED and length > 0:
        return FINE if precision <= most_digits(length) else _wrong(name, physical, length)
    if physical == _INT64 and precision <= _MOST_INT32_DIGITS:
        return Verdict(reason=f"{name} on an int64, where an int32 would do")
    most = {_INT32: _MOST_INT32_DIGITS, _INT64: _MOST_INT64_DIGITS}.get(physical, 0)
    return FINE if precision <= most else _wrong(name, physical)


def most_digits(length: int) -> int:
    """Return how many decimal digits fit in ``length`` bytes of two's complement."""
    if length > 1_000:
        return int((8 * length - 1) * math.log10(2))
    return len(str(2 ** (8 * length - 1) - 1)) - 1


def _wrong(name: str, physical: int, length: int = 0) -> Verdict:
    held = _PHYSICAL[physical] if 0 <= physical < len(_PHYSICAL) else f"type {physical}"
    return Verdict(InvalidFile, f"{name} may not annotate {held}{f'({length})' if length else ''}")


def _unknown_unit(name: str) -> Verdict:
    return Verdict(UnsupportedFeature, f"{name} in a unit that this version does not know")


def old_annotation(fields: Fields) -> int | None:
    """The old annotation that a time or timestamp must have next to the new one, if any; local ones as well."""
    if LOGICAL not in fields:
        return None
    union, _ = read_struct(fields[LOGICAL][1], 0)
    ((kind, (_, held)),) = union.items()
    return _OLD_TIMES.get((kind, _unit(held))) if kind in (TIME, TIMESTAMP) else None


def kind_of(data: bytes) -> int:
    """The member of the union that a logical type is stored as."""
    union, _ = read_struct(data, 0)
    return next(iter(union), 0)


def logical_type(kind: int, fields: Fields) -> bytes:
    """The union of logical types with that member."""
    return write_struct({kind: (12, write_struct(fields))})
