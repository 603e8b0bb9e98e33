"""Default values of fields, and the internal values of types.

An internal value is bool, int, float, ``decimal.Decimal`` (of exactly the type's scale), str or bytes. A date is
int days, a time int microseconds, a timestamp int micro- or nanoseconds from the epoch, and a uuid 16 bytes. A struct,
a list and a map are tuples (of values, of elements, of key-value pairs). Null is None.
"""

from __future__ import annotations

from typing import Any

from icefield.errors import InvalidArgument
from icefield.types.nested import NestedField, StructType
from icefield.types.primitive import DateType, IcebergType, TimestampNanoType
from icefield.types.values.calendar import INT64, MICROS_PER_DAY, format_date


def initial_value(field: NestedField) -> Any:
    """The internal value of a field in rows older than it: its ``initial-default``, or None.

    The default ``()`` of a struct becomes the initial defaults of its fields. Spec: Default values.
    """
    return _default_value(field, "initial_default")


def write_value(field: NestedField) -> Any:
    """The internal value of a field without values from the caller of a write: its ``write-default``, or None."""
    return _default_value(field, "write_default")


def _default_value(field: NestedField, which: str) -> Any:
    default = getattr(field, which)
    if isinstance(field.field_type, StructType) and default == ():
        return tuple(_default_value(child, which) for child in field.field_type.fields)
    return default


def promote(old: IcebergType, new: IcebergType, internal: Any) -> Any:
    """The internal value under ``new`` of a value under ``old``, which was promoted to it.

    Only a date changes: it becomes its midnight. Raises ``InvalidArgument`` when that is out of range.
    """
    if internal is None or not isinstance(old, DateType) or isinstance(new, DateType):
        return internal
    unit = MICROS_PER_DAY * (1000 if isinstance(new, TimestampNanoType) else 1)
    midnight = internal * unit
    if not INT64[0] <= midnight <= INT64[1]:
        above = 1 if midnight > 0 else -1
        raise InvalidArgument(f"out of range for type {new}: {format_date(internal)}", out_of_range=above)
    return midnight
