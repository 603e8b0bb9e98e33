"""Columns read through pyorc: a Python object for each value, with timestamps of any year.

Only ``out_of_range_timestamps`` imports this module, since pyorc is an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyorc
from icefield.abc import InputFile

from icefield_orc.schema import TIMESTAMPS, Node, TypeKind

_NANOS = 1_000_000_000
Values = Callable[[Any], Any]


class _Nanoseconds(pyorc.converters.ORCConverter):
    """Timestamps as nanoseconds from 1970, in Python's own integers, which have no bounds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: Any) -> int:
        return seconds * _NANOS + nanoseconds

    @staticmethod
    def to_orc(obj: Any, timezone: Any) -> Any:
        raise TypeError("only for reading")


class _Days(pyorc.converters.ORCConverter):
    """Dates as days from 1970, for years outside the range of Python's dates."""

    @staticmethod
    def from_orc(days: int) -> int:
        return days

    @staticmethod
    def to_orc(obj: Any) -> Any:
        raise TypeError("only for reading")


_CONVERTERS = {
    pyorc.TypeKind.TIMESTAMP: _Nanoseconds,
    pyorc.TypeKind.TIMESTAMP_INSTANT: _Nanoseconds,
    pyorc.TypeKind.DATE: _Days,
}


def read_columns(source: InputFile, root: Node, stripe: int, positions: Sequence[int]) -> list[pa.Array]:
    """As ``out_of_range_timestamps.read_columns``."""
    held = sorted(set(positions))
    source.seek(0)
    try:
        reader = pyorc.Reader(cast(BinaryIO, source), column_indices=held, converters=_CONVERTERS)
        rows = reader.read_stripe(stripe).read()
    except pyorc.ORCError as error:
        raise ValueError(str(error)) from error
    found = {at: _array(root.children[at], [row[rank] for row in rows]) for rank, at in enumerate(held)}
    return [found[at] for at in positions]


def _array(node: Node, values: list[Any]) -> pa.Array:
    convert = _values(node)
    return pa.array([None if value is None else convert(value) for value in values], _held_type(node))


def _values(node: Node) -> Values:
    """Return the conversion of pyorc's values to values that Arrow accepts for ``_held_type``."""
    if node.kind in TIMESTAMPS:
        return (lambda nanos: nanos) if _unit(node) == "ns" else (lambda nanos: nanos // 1000)
    inner = [_values(child) for child in node.children]
    if node.kind == TypeKind.STRUCT:
        return lambda row: tuple(None if value is None else make(value) for make, value in zip(inner, row, strict=True))
    if node.kind == TypeKind.LIST:
        return lambda items: [None if value is None else inner[0](value) for value in items]
    if node.kind == TypeKind.MAP:
        of_key, of_value = inner
        return lambda entries: [
            (of_key(key), None if value is None else of_value(value)) for key, value in entries.items()
        ]
    return lambda value: value


def _held_type(node: Node) -> pa.DataType:
    """The Arrow type of the stored values: only a timestamp's unit is taken from the type attributes."""
    inner = [_held_type(child) for child in node.children]
    if node.kind == TypeKind.STRUCT:
        return pa.struct([pa.field(child.name, held) for child, held in zip(node.children, inner, strict=True)])
    if node.kind == TypeKind.LIST:
        return pa.list_(inner[0])
    if node.kind == TypeKind.MAP:
        return pa.map_(*inner)
    if node.kind in TIMESTAMPS:
        return pa.timestamp(_unit(node), node.data_type.tz)
    if node.kind == TypeKind.BINARY:
        return pa.binary()
    if pa.types.is_time64(node.data_type):
        return pa.int64()
    return node.data_type


def _unit(node: Node) -> str:
    return str(node.data_type.unit)
