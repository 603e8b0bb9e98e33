"""Pieces that several statements have: properties, partition terms, orderings, column types."""

from __future__ import annotations

from icefield.errors import InvalidArgument
from sqlglot.tokenizer_core import TokenType

from icefield_spark.sql.parsing import Cursor

PLAIN = {
    "YEAR": "year", "YEARS": "year", "MONTH": "month", "MONTHS": "month", "DAY": "day", "DAYS": "day", "DATE": "day",
    "HOUR": "hour", "HOURS": "hour", "DATE_HOUR": "hour", "IDENTITY": "identity", "VOID": "void",
    "ALWAYSNULL": "void",
}  # fmt: skip
"""Transforms of a column alone, by the names that statements have for them."""

_WITH_WIDTH = {"BUCKET": "bucket", "TRUNCATE": "truncate"}


def term(cursor: Cursor) -> tuple[str, str]:
    """Take a column or a transform of a column, such as ``bucket(16, id)``; return column and transform."""
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


def _column(cursor: Cursor) -> str:
    found = ".".join(cursor.names("a column"))
    cursor.expect_end()
    return found
