"""The column statistics of an ORC file: counts and bounds by field id."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from icefield.toolkit import Metrics, decimal_from_unscaled

from icefield_orc.protobuf import blob, integer, items, zigzag
from icefield_orc.schema import TIMESTAMPS, Node, TypeKind
from icefield_orc.tail import Tail

_INTEGERS = frozenset({TypeKind.BYTE, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG})
_STRINGS = frozenset({TypeKind.STRING, TypeKind.VARCHAR})
_MILLI_NANOS = 1_000_000
_MOST_PLACES = 100


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column's statistics: the number of values that are not null, and bounds as internal values.

    An absent statistic is None. A bound may be wider than the values, never narrower. ``no_nan`` is true only if no
    value is NaN.
    """

    values: int | None = None
    lower: Any = None
    upper: Any = None
    no_nan: bool = False


def decode(data: bytes, node: Node) -> ColumnStatistics:
    """Statistics of one column. Raises ``ValueError`` for damaged bytes."""
    fields = dict(items(data))
    values = integer(fields[1]) if 1 in fields else None
    lower, upper = (None, None) if values == 0 else _bounds(fields, node)
    return ColumnStatistics(values, lower, upper, _without_nan(fields, node))


def file_metrics(tail: Tail, root: Node) -> Metrics:
    """Counts and bounds of a whole file, as far as its footer states them."""
    metrics = Metrics(tail.rows)
    for child in root.children:
        _gather(child, tail, metrics)
    return metrics


def _gather(node: Node, tail: Tail, metrics: Metrics) -> None:
    """Add the metrics of a column or a struct's field; elements of lists and maps are not counted by rows."""
    if node.kind == TypeKind.STRUCT and not node.opaque:
        for child in node.children:
            _gather(child, tail, metrics)
        return
    if node.field_id is None or node.opaque or node.kind in (TypeKind.LIST, TypeKind.MAP):
        return
    if node.column >= len(tail.statistics) or not tail.postscript.sound_statistics:
        return
    stated = decode(tail.statistics[node.column], node)
    if stated.values is not None and stated.values <= tail.rows:
        metrics.value_counts[node.field_id] = tail.rows
        metrics.null_value_counts[node.field_id] = tail.rows - stated.values
    if stated.lower is not None:
        metrics.lower_bounds[node.field_id] = stated.lower
    if stated.upper is not None:
        metrics.upper_bounds[node.field_id] = stated.upper


def _bounds(fields: dict[int, int | bytes], node: Node) -> tuple[Any, Any]:
    kind = node.kind
    if kind in _INTEGERS and 2 in fields:
        inner = _pair(fields[2])
        return tuple(None if value is None else zigzag(integer(value)) for value in inner)  # type: ignore[return-value]
    if kind in (TypeKind.FLOAT, TypeKind.DOUBLE) and 3 in fields:
        return _float_bounds(fields[3])
    if kind in _STRINGS and 4 in fields:
        return _string_bounds(fields[4])
    if kind == TypeKind.DECIMAL and 6 in fields:
        return _decimal_bounds(fields[6], node.data_type)
    if kind == TypeKind.DATE and 7 in fields:
        inner = _pair(fields[7])
        return tuple(None if value is None else zigzag(integer(value)) for value in inner)  # type: ignore[return-value]
    if kind in TIMESTAMPS and 9 in fields:
        return _timestamp_bounds(fields[9], node.data_type.unit)
    return None, None


def _pair(value: int | bytes) -> tuple[int | bytes | None, int | bytes | None]:
    inner = dict(items(blob(value)))
    return inner.get(1), inner.get(2)


def _float_bounds(value: int | bytes) -> tuple[float | None, float | None]:
    """Bounds of floats. A NaN among the values leaves no sound bound, and a zero may be of either sign."""
    bounds = [None if raw is None else struct.unpack("<d", blob(raw))[0] for raw in _pair(value)]
    if any(bound is not None and bound != bound for bound in bounds):
        return None, None
    lower, upper = bounds
    return (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)


def _without_nan(fields: dict[int, int | bytes], node: Node) -> bool:
    """Whether there is surely no NaN: the sum of the values, where it is stated, would be NaN as well."""
    if node.kind not in (TypeKind.FLOAT, TypeKind.DOUBLE) or 3 not in fields:
        return False
    raw = dict(items(blob(fields[3]))).get(3)
    if raw is None:
        return False
    (total,) = struct.unpack("<d", blob(raw))
    return bool(total == total)


def _string_bounds(value: int | bytes) -> tuple[str | None, str | None]:
    """Bounds of strings; long bounds are stored truncated, and the upper one is raised after that."""
    inner = dict(items(blob(value)))
    lower, upper = (inner.get(exact, inner.get(cut)) for exact, cut in ((1, 4), (2, 5)))
    return tuple(None if raw is None else blob(raw).decode("utf-8") for raw in (lower, upper))  # type: ignore[return-value]


def _decimal_bounds(value: int | bytes, data_type: pa.Decimal128Type) -> tuple[Decimal | None, Decimal | None]:
    strings = [None if raw is None else blob(raw).decode("ascii") for raw in _pair(value)]
    made = [None if string is None or len(string) > 80 else Decimal(string) for string in strings]
    unscaled = [None if number is None else _unscaled(number, data_type.scale) for number in made]
    if any(number is not None and exact is None for number, exact in zip(made, unscaled, strict=True)):
        return None, None
    lower, upper = (None if exact is None else decimal_from_unscaled(exact, data_type.scale) for exact in unscaled)
    return lower, upper


def _unscaled(number: Decimal, scale: int) -> int | None:
    """The unscaled value of a decimal at a scale; None if it has more places.

    It is computed with integers, since Python's decimals round to 28 digits.
    """
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > _MOST_PLACES:
        return None
    shift = exponent + scale
    whole = int("".join(map(str, digits)))
    found, rest = (whole * 10**shift, 0) if shift >= 0 else divmod(whole, 10**-shift)
    return None if rest else -found if sign else found


def _timestamp_bounds(value: int | bytes, unit: str) -> tuple[int | None, int | None]:
    """Bounds of timestamps: milliseconds in UTC, with nanoseconds next to them in newer files.

    Without nanoseconds the bounds are as wide as the millisecond. Milliseconds that are not in UTC give no bounds.
    Before 1970 writers disagree about the second that a fraction belongs to, and round either way: there the bounds are
    a second wider.
    """
    inner = {number: integer(raw) for number, raw in items(blob(value))}
    if 3 not in inner or 4 not in inner:
        return None, None
    first, last = zigzag(inner[3]), zigzag(inner[4])
    low = first * _MILLI_NANOS + _nanos(inner.get(5), 0) if first > 0 else (first - 1000) * _MILLI_NANOS
    high = (last if last > 0 else last + 1000) * _MILLI_NANOS + _nanos(inner.get(6), _MILLI_NANOS - 1)
    return (low, high) if unit == "ns" else (low // 1000, high // 1000)


def _nanos(stored: int | None, absent: int) -> int:
    """Decode nanoseconds below a millisecond. The file stores the number plus one; 0 stands for an absent value."""
    return absent if not stored or stored > _MILLI_NANOS else stored - 1
