"""Pieces that several statements have: properties, partition terms, orderings, column types."""

from __future__ import annotations

from typing import cast

from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.errors import PySparkException
from pyspark.sql import types as spark
from pyspark.sql.types import StructType
from sqlglot.tokenizer_core import TokenType

from icefield_spark.sql.parsing import Cursor

PLAIN = {
    "YEAR": "year", "YEARS": "year", "MONTH": "month", "MONTHS": "month", "DAY": "day", "DAYS": "day", "DATE": "day",
    "HOUR": "hour", "HOURS": "hour", "DATE_HOUR": "hour", "IDENTITY": "identity", "VOID": "void",
    "ALWAYSNULL": "void",
}  # fmt: skip
"""Transforms of a column alone, by the names that statements have for them."""

# Spark 3.5 has what is public from 4.0 on under another name.
_parsed = getattr(StructType, "fromDDL", None) or spark._parse_datatype_string
_WITH_WIDTH = {"BUCKET": "bucket", "TRUNCATE": "truncate"}


def properties(cursor: Cursor) -> dict[str, str]:
    """Take ``('a' = 'b', c.d = 1)``."""
    found = {}
    for item in cursor.enclosed().items():
        key = _key(item)
        item.takes("=")
        found[key] = _value(item)
        item.expect_end()
    return found


def keys(cursor: Cursor) -> list[str]:
    """Take ``('a', b.c)``."""
    found = []
    for item in cursor.enclosed().items():
        found.append(_key(item))
        item.expect_end()
    return found


def term(cursor: Cursor) -> tuple[str, str]:
    """Take a column, or a transform of one: ``bucket(16, id)``. Gives column and transform."""
    parts = cursor.names("a column or a transform")
    if len(parts) > 1 or not cursor.sees("("):
        return ".".join(parts), "identity"
    name, arguments = parts[0].upper(), cursor.enclosed().items()
    if name in PLAIN and len(arguments) == 1:
        return _column(arguments[0]), PLAIN[name]
    if name in _WITH_WIDTH and len(arguments) == 2:
        first, second = arguments
        if first.statement.tokens[first.at].token_type is not TokenType.NUMBER:
            first, second = second, first
        return _column(second), f"{_WITH_WIDTH[name]}[{first.number()}]"
    raise InvalidArgument(
        f"'{parts[0]}' is no transform of {len(arguments)} arguments; there are years, months, days and hours of a "
        "column, bucket(n, column) and truncate(width, column)"
    )


def ordering(cursor: Cursor) -> tuple[str, str, str, str | None]:
    """Take ``days(ts) DESC NULLS LAST``: column, transform, direction and the place of nulls."""
    column, transform = term(cursor)
    direction = (cursor.takes_one_of("ASC", "DESC") or "ASC").lower()
    nulls = None
    if cursor.takes("NULLS"):
        nulls = cursor.takes_one_of("FIRST", "LAST")
        if nulls is None:
            raise cursor.unexpected("FIRST or LAST")
    return column, transform, direction, None if nulls is None else f"nulls-{nulls.lower()}"


def column_list(cursor: Cursor) -> tuple[StructType, dict[str, str]]:
    """Take ``(id bigint NOT NULL, n int DEFAULT 1 COMMENT 'x')``: the columns, and the defaults by column.

    What stands in the parentheses may be taken alone.
    """
    pieces, defaults = [], {}
    for item in definitions(cursor):
        name = Cursor(item.statement, item.at, item.end).name("a column")
        piece = item.until(("DEFAULT",))
        if item.takes("DEFAULT"):
            defaults[name] = item.until(("COMMENT",), ("NOT", "NULL"))
            piece = f"{piece} {item.rest()}"
        pieces.append(piece)
    return columns_of(", ".join(pieces)), defaults


def definitions(cursor: Cursor) -> list[Cursor]:
    """Take definitions of columns, with parentheses around them or without: a cursor over each."""
    items = (cursor.enclosed() if cursor.sees("(") else cursor).items()
    found: list[Cursor] = []
    for item in items:
        if found and _is_open(found[-1]):  # the comma is one of struct<a: int, b: int>
            found[-1].end = item.end
        else:
            found.append(item)
    return found


def _is_open(cursor: Cursor) -> bool:
    """Whether a piece of a type has more of '<' than of '>'."""
    tokens = [t for t in cursor.statement.tokens[cursor.at : cursor.end] if t.token_type is not TokenType.STRING]
    signs = "".join(token.text for token in tokens if set(token.text) <= {"<", ">"})
    return signs.count("<") > signs.count(">")


def columns_of(definition: str) -> StructType:
    """The columns of a definition: ``id bigint NOT NULL COMMENT 'x'``, as Spark reads it."""
    try:
        found = cast(StructType, _parsed(definition))
    except PySparkException as error:
        message = str(error).strip().splitlines()[0]
        raise InvalidArgument(f"the columns cannot be understood: {definition:.200}: {message}") from error
    for field in found.fields:
        if set(field.metadata or {}) - {"comment", "__CHAR_VARCHAR_TYPE_STRING"}:
            raise UnsupportedFeature(
                f"column '{field.name}' is given more than a type, NOT NULL, DEFAULT and COMMENT: identity and "
                "generated columns are not Iceberg's"
            )
    return found


def _column(cursor: Cursor) -> str:
    found = ".".join(cursor.names("a column"))
    cursor.expect_end()
    return found


def _key(cursor: Cursor) -> str:
    if not cursor.is_over and cursor.statement.tokens[cursor.at].token_type is TokenType.STRING:
        return cursor.string()
    return cursor.until(("=",), (",",)).strip().strip("`")


def _value(cursor: Cursor) -> str:
    if not cursor.is_over and cursor.statement.tokens[cursor.at].token_type is TokenType.STRING:
        return cursor.string()
    return cursor.rest().strip()
