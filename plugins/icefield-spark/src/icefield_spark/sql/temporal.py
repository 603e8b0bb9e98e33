"""``VERSION AS OF`` and ``TIMESTAMP AS OF`` after the names of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from icefield_spark.sql.parsing import Cursor, Statement

_KINDS = {"VERSION": "VERSION", "SYSTEM_VERSION": "VERSION", "TIMESTAMP": "TIMESTAMP", "SYSTEM_TIME": "TIMESTAMP"}
_OPERATORS = ("+", "-", "*", "/", "||")


@dataclass(frozen=True, slots=True)
class AsOf:
    """One such clause: where it stands in the string, and the version or time that it gives, as it was written."""

    start: int
    end: int
    is_time: bool
    value: str
    literal: int | str | None
    """The number or string that the value is; None for an expression."""


def as_of_clauses(statement: Statement) -> Mapping[int, AsOf]:
    """The clauses of a statement, by the place in the string at which the name before them ends."""
    found: dict[int, AsOf] = {}
    at = 1
    while at < len(statement.tokens):
        clause, next_at = _clause(statement, at)
        if clause is not None:
            found[statement.tokens[at - 1].end] = clause
        at = next_at
    return found


def without(string: str, clauses: Mapping[int, AsOf]) -> str:
    """The string with blanks in place of the clauses, so that all else stays where it was."""
    for clause in clauses.values():
        string = string[: clause.start] + " " * (clause.end + 1 - clause.start) + string[clause.end + 1 :]
    return string


def _clause(statement: Statement, at: int) -> tuple[AsOf | None, int]:
    cursor = Cursor(statement, at)
    cursor.takes("FOR")
    kind = next((_KINDS[word] for word in _KINDS if cursor.takes(word, "AS", "OF")), None)
    if kind is None:
        return None, at + 1
    start = cursor.at
    value = _value(cursor)
    first, last = statement.tokens[at], statement.tokens[cursor.at - 1]
    made = AsOf(first.start, last.end, kind == "TIMESTAMP", statement.between(start, cursor.at), value)
    return made, cursor.at


def _value(cursor: Cursor) -> int | str | None:
    """Take a value: what it is, where it is one literal."""
    start = cursor.at
    _operand(cursor)
    end = cursor.at
    while cursor.takes_one_of(*_OPERATORS):
        _operand(cursor)
    if cursor.at > end:
        return None
    token = cursor.statement.tokens[start]
    if token.token_type is TokenType.STRING:
        return token.text
    return int(token.text) if token.token_type is TokenType.NUMBER and token.text.isdigit() else None


def _operand(cursor: Cursor) -> None:
    if cursor.is_over:
        raise cursor.unexpected("a version or a time")
    if cursor.takes("INTERVAL"):
        _operand(cursor)
        cursor.name("the unit of an interval")
        return
    if cursor.sees("("):
        cursor.enclosed()
        return
    token = cursor.statement.tokens[cursor.at]
    if token.token_type is TokenType.NUMBER:
        cursor.number()
        return
    if token.token_type is TokenType.STRING:
        cursor.string()
        return
    cursor.names("a version or a time")
    if cursor.sees("("):
        cursor.enclosed()
    elif not cursor.is_over and cursor.statement.tokens[cursor.at].token_type is TokenType.STRING:
        cursor.string()  # TIMESTAMP '...'
