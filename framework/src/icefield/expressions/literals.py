"""Literals: the Python values that a filter may hold, their equality and their string form.

A literal is kept as one of ``bool``, ``int``, ``Decimal``, ``float``, ``str`` and ``bytes``; dates, times, timestamps
and UUIDs become their ISO string, which binding reads for the type of the column. So every literal can be written down
and read back.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidExpression

Literal = bool | int | Decimal | float | str | bytes

MAX_DIGITS: Final = 1000
"""The maximum number of digits of a number, on either side of the decimal point."""

_MAX_BITS: Final = (10**MAX_DIGITS).bit_length()


def literal(value: Any) -> Literal:
    """The literal that a Python, NumPy or Arrow value stands for.

    Raises ``InvalidExpression`` for null and NaN (each has its own predicate) and for values that no column can hold.
    """
    if isinstance(value, bool | str | bytes | int | float | Decimal):
        return _checked(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, np.datetime64):
        return literal(str(value) if not np.isnat(value) else None)
    if isinstance(value, np.generic):
        return literal(value.item())
    if isinstance(value, pa.Scalar):
        return literal(value.as_py())
    if value is None:
        raise InvalidExpression("null equals nothing: use 'is null' or 'is not null'")
    raise InvalidExpression(f"a {type(value).__name__} cannot be compared with a column")


def _checked(value: Literal) -> Literal:
    if isinstance(value, bool | bytes):
        return bool(value) if isinstance(value, bool) else bytes(value)
    if isinstance(value, str):
        return _checked_string(str(value))
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidExpression("NaN equals nothing: use 'is nan' or 'is not nan'")
        return float(value)
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise InvalidExpression(f"a number in a filter has at most {MAX_DIGITS} digits")
        return int(value)
    if not value.is_finite():
        raise InvalidExpression(f"{value} is not a number that a column can hold")
    _, digits, exponent = value.as_tuple()
    if max(len(digits), abs(int(exponent)), abs(value.adjusted())) > MAX_DIGITS:
        raise InvalidExpression(f"a number in a filter has at most {MAX_DIGITS} digits")
    return value


def _checked_string(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidExpression(f"a string in a filter is not valid Unicode: {error.reason}") from None
    return value


def literal_key(value: Literal) -> tuple[str, Hashable]:
    """Equal for literals that mean the same: exact numbers by value, the rest by kind and value."""
    kind = type(value)
    return ("number" if kind is int or kind is Decimal else kind.__name__, value)


def literal_string(value: Literal) -> str:
    """A literal as the string form writes it. As in SQL, ``1.5`` is an exact number and ``1.5e0`` a float."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float_string(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return f"X'{value.hex()}'"
    return quoted(value)


def quoted(string: str) -> str:
    """A string in single quotes, with inner quotes doubled."""
    return "'" + string.replace("'", "''") + "'"


def _float_string(value: float) -> str:
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    string = repr(value)
    return string if "e" in string else f"{string}e0"


def shown(value: Literal) -> str:
    """A literal for a message: never longer than a line."""
    string = literal_string(value)
    return string if len(string) <= 80 else f"{string[:77]}..."
