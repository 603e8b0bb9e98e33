"""Internal values of types: their ranges, decimals by their unscaled integer, and the defaults of fields.

An internal value is bool, int, float, ``decimal.Decimal`` (of exactly the type's scale), str or bytes. A date is
int days, a time int microseconds, a timestamp int micro- or nanoseconds from the epoch, and a uuid 16 bytes. A struct,
a list and a map are tuples (of values, of elements, of key-value pairs). Null is None.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Final

from icefield.errors import InvalidArgument
from icefield.types.nested import NestedField, StructType
from icefield.types.primitive import DateType, DecimalType, IcebergType, TimestampNanoType, shown
from icefield.types.values.calendar import INT64, MICROS_PER_DAY, format_date

_EXACT: Final = Context(prec=100)
"""Python's default context rounds at 28 digits; decimals here have up to 38."""


def out_of_range(iceberg_type: IcebergType, value: Any, above: bool) -> InvalidArgument:
    """The error for a value beyond the range of a type."""
    return InvalidArgument(f"out of range for type {iceberg_type}: {shown(value)}", out_of_range=1 if above else -1)


def within(iceberg_type: IcebergType, value: Any, number: int, bounds: tuple[int, int]) -> int:
    """The number that a given value stands for. Raises ``InvalidArgument`` if it is out of the bounds."""
    if not bounds[0] <= number <= bounds[1]:
        raise out_of_range(iceberg_type, value, number > bounds[1])
    return number


def null_checked(field: NestedField, internal: Any) -> Any:
    """The internal value of a field. Raises ``InvalidArgument`` for null where the field is required."""
    if internal is None and field.required:
        raise InvalidArgument(f"null where field '{field.name}' is required", field_id=field.field_id)
    return internal


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal is at ``scale``. Raises ``InvalidArgument`` if digits would be lost."""
    sign, digits, exponent = value.as_tuple()
    number: int
    if not isinstance(exponent, int):
        raise InvalidArgument(f"not a finite decimal: {shown(value)}")
    shift = exponent + scale
    number = int("".join(map(str, digits))) if digits else 0
    if number and not -60 <= shift <= 60:
        size = {"inexact": True} if shift < 0 else {"out_of_range": -1 if sign else 1}
        raise InvalidArgument(f"decimal {shown(value)} does not fit a scale of {scale}", **size)
    if shift >= 0:
        number *= int(10**shift)
    else:
        number, rest = divmod(number, int(10**-shift))
        if rest:
            raise InvalidArgument(f"decimal {shown(value)} has more than {scale} digits after the point", inexact=True)
    return -number if sign else number


def decimal_from_unscaled(number: int, scale: int) -> Decimal:
    """The decimal that is ``number`` times 10 to the minus ``scale``, with exactly that scale."""
    return Decimal(number).scaleb(-scale, _EXACT)


def decimal_of_type(iceberg_type: DecimalType, value: Any, number: Decimal) -> Decimal:
    """The decimal of the type that a given value stands for. Raises ``InvalidArgument`` if it has none."""
    exact = unscaled(number, iceberg_type.scale)
    most = 10**iceberg_type.precision - 1
    return decimal_from_unscaled(within(iceberg_type, value, exact, (-most, most)), iceberg_type.scale)


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
    midnight = internal * MICROS_PER_DAY * (1000 if isinstance(new, TimestampNanoType) else 1)
    if not INT64[0] <= midnight <= INT64[1]:
        above = 1 if midnight > 0 else -1
        raise InvalidArgument(f"out of range for type {new}: {format_date(internal)}", out_of_range=above)
    return midnight
