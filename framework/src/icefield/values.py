"""Single values: what a user writes, what Python shows, and the internal value between them.

An internal value is bool, int, float, ``decimal.Decimal`` (of exactly the type's scale), str or bytes; a date is
int days, a time int microseconds, a timestamp int micro- or nanoseconds from the epoch, a uuid 16 bytes, a struct,
a list and a map tuples (of values, of elements, of key-value pairs). Null is None.

This module hands on the names of those that do the work: ``values_convert`` (users' objects), ``values_binary``,
``values_arrays`` and ``values_json`` (the forms of Appendix D), ``values_scalars`` (Arrow).
"""

from __future__ import annotations

from typing import Any

from icefield.errors import InvalidArgument
from icefield.types import (
    DateType,
    IcebergType,
    NestedField,
    StructType,
    TimestampNanoType,
)
from icefield.values_arrays import from_bytes_array, to_bytes_array
from icefield.values_binary import (
    GeoPoint,
    decimal_from_unscaled,
    from_bytes,
    geo_point_from_bytes,
    geo_point_to_bytes,
    to_bytes,
    unscaled,
)
from icefield.values_convert import to_internal, to_python
from icefield.values_json import from_json, to_json
from icefield.values_scalars import (
    constant_array,
    from_arrow_array,
    from_arrow_scalar,
    to_arrow_array,
    to_arrow_scalar,
)
from icefield.values_text import (
    INT64,
    MICROS_PER_DAY,
    format_date,
)
from icefield.values_variant import VariantLeaf, variant_bounds_from_bytes, variant_to_python

__all__ = [
    "GeoPoint",
    "VariantLeaf",
    "constant_array",
    "decimal_from_unscaled",
    "from_arrow_array",
    "from_arrow_scalar",
    "from_bytes",
    "from_bytes_array",
    "from_json",
    "geo_point_from_bytes",
    "geo_point_to_bytes",
    "initial_value",
    "promote",
    "to_arrow_array",
    "to_arrow_scalar",
    "to_bytes",
    "to_bytes_array",
    "to_internal",
    "to_json",
    "to_python",
    "unscaled",
    "variant_bounds_from_bytes",
    "variant_to_python",
    "write_value",
]


def initial_value(field: NestedField) -> Any:
    """The internal value of a field in rows older than it: its ``initial-default``, or None.

    The default ``()`` of a struct becomes the initial defaults of its fields. Spec: Default values.
    """
    return _default_value(field, "initial_default")


def write_value(field: NestedField) -> Any:
    """The internal value of a field that a writer was given no values for: its ``write-default``, or None."""
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
