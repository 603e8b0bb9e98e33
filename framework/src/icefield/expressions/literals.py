"""Literals, the Python values that a filter may hold, and the string form of literals, names and predicates.

A literal is kept as one of ``bool``, ``int``, ``Decimal``, ``float``, ``str`` and ``bytes``; dates, times, timestamps
and UUIDs become their ISO string, which binding reads for the type of the column. So every literal can be written down
and read back.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidExpression
from icefield.expressions.expressions import Op

Literal = bool | int | Decimal | float | str | bytes

MAX_DIGITS: Final = 1000
"""The maximum number of digits of a number, on either side of the decimal point."""

_MAX_BITS: Final = (10**MAX_DIGITS).bit_length()

_NULLS: Final = frozenset({"NAType", "NaTType"})  # of pandas
KEYWORDS: Final = frozenset({"and", "or", "not", "is", "in", "like", "between", "null", "nan", "true", "false"})
WORD: Final = r"[^\W\d][\w$]*"
"""An identifier that needs no quotes."""

_WORD = re.compile(WORD)


def literal(value: Any) -> Literal:
    """The literal that a Python, NumPy or Arrow value stands for.

    Raises ``InvalidExpression`` for null and NaN (each has its own predicate) and for values that no column can hold.
    """
    if value is None or type(value).__name__ in _NULLS:
        raise InvalidExpression("null equals nothing: use 'is null' or 'is not null'")
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
    raise InvalidExpression(f"a {type(value).__name__} cannot be compared with a column")


def _checked(value: Literal) -> Literal:
    if isinstance(value, bool | bytes):
        return bool(value) if isinstance(value, bool) else bytes(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidExpression(f"a string in a filter is not valid Unicode: {error.reason}") from None
        return str(value)
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
            if math.isinf(value):
                return "1e999" if value > 0 else "-1e999"
            string = repr(value)
            return string if "e" in string else f"{string}e0"
        case Decimal():
            return f"{value:f}"
        case bytes():
            return f"X'{value.hex()}'"
    return quoted(value)


def quoted(string: str) -> str:
    """A string in single quotes, with inner quotes doubled."""
    return "'" + string.replace("'", "''") + "'"


def shown(value: Literal) -> str:
    """A literal for a message: never longer than a line."""
    string = literal_string(value)
    return string if len(string) <= 80 else f"{string[:77]}..."


def name_string(name: str | tuple[str, ...]) -> str:
    """A column's full name or path, with quotes around the parts that need them."""
    return ".".join(map(_part_string, name.split(".") if isinstance(name, str) else name))


def _part_string(part: str) -> str:
    if _WORD.fullmatch(part) and part.lower() not in KEYWORDS:
        return part
    return '"' + part.replace('"', '""') + '"'


def predicate_string(op: Op, name: str | tuple[str, ...], literals: Iterable[str]) -> str:
    """A predicate on the column with that full name or path; ``literals`` are in string form."""
    subject = name_string(name)
    if op.is_unary:
        return f"{subject} {op.value}"
    if op.is_set:
        return f"{subject} {op.value} ({', '.join(literals)})"
    return f"{subject} {op.value} {next(iter(literals))}"


def like_pattern(prefix: str) -> str:
    """The pattern of LIKE that matches the strings with that prefix."""
    return re.sub(r"([\\%_])", r"\\\1", prefix) + "%"
