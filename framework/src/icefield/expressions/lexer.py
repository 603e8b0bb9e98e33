"""Cuts the text of a filter into tokens, in one pass."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple, NoReturn

from icefield.errors import InvalidExpression
from icefield.expressions.text import KEYWORDS, WORD

MAX_TEXT: Final = 16 * 1024 * 1024
"""The longest text of a filter, in characters."""

_EXCERPT: Final = 30


class Kind(Enum):
    """What a token is."""

    NUMBER = "a number"
    STRING = "a text"
    BYTES = "bytes"
    KEYWORD = "a keyword"
    NAME = "a column"
    QUOTED = "a quoted column"
    OPERATOR = "an operator"
    PUNCTUATION = "punctuation"
    END = "the end"


class Token(NamedTuple):
    """A piece of the text. ``text`` is in lower case for keywords and unquoted for strings and names."""

    kind: Kind
    text: str
    position: int


_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w$]))
  | [xX]'(?P<bytes>[^']*)'
  | '(?P<string>[^']*(?:''[^']*)*)'
  | "(?P<double>[^"]*(?:""[^"]*)*)"
  | `(?P<back>[^`]*(?:``[^`]*)*)`
  | (?P<operator><=|>=|<>|!=|==|=|<|>)
  | (?P<punctuation>[().,])
  | (?P<word>{WORD})
    """,
    re.VERBOSE,
)


def tokens(text: str) -> list[Token]:
    """The tokens of a filter, the last one of kind END. Raises ``InvalidExpression`` with the position."""
    if not isinstance(text, str):
        raise InvalidExpression(f"a filter is a text or an expression, not a {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise InvalidExpression(f"a filter has at most {MAX_TEXT} characters; this one has {len(text)}")
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse(text, position)
        if match.lastgroup != "space":
            found.append(_token(match, text))
        position = match.end()
    found.append(Token(Kind.END, "", len(text)))
    return found


def _token(match: re.Match[str], text: str) -> Token:
    group, start = match.lastgroup or "", match.start()
    content = match.group(group)
    match group:
        case "number":
            return Token(Kind.NUMBER, content, start)
        case "string":
            return Token(Kind.STRING, content.replace("''", "'"), start)
        case "bytes":
            if len(content) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", content):
                fail("X'...' takes pairs of hexadecimal digits", text, start)
            return Token(Kind.BYTES, content, start)
        case "double":
            return Token(Kind.QUOTED, content.replace('""', '"'), start)
        case "back":
            return Token(Kind.QUOTED, content.replace("``", "`"), start)
        case "operator":
            return Token(Kind.OPERATOR, content, start)
        case "punctuation":
            return Token(Kind.PUNCTUATION, content, start)
    lower = content.lower()
    return Token(Kind.KEYWORD, lower, start) if lower in KEYWORDS else Token(Kind.NAME, content, start)


_INSTEAD = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or '<>' between values",
    "[": "a list is written (1, 2)",
}
"""What is written in place of a sign that other languages have."""


def _refuse(text: str, position: int) -> NoReturn:
    quote = text[position]
    if quote in "'\"`":
        fail(f"the quote {quote} is not closed", text, position)
    if quote.isdigit() or quote in "+-":
        fail("not a number", text, position)
    hint = _INSTEAD.get(quote)
    fail(f"unexpected character {quote!r}" + (f" ({hint})" if hint else ""), text, position)


def fail(reason: str, text: str, position: int) -> NoReturn:
    """Raise ``InvalidExpression`` naming the place: its number, from 1, and what stands there."""
    before = text[max(0, position - _EXCERPT) : position]
    after = text[position : position + _EXCERPT]
    left = "..." if position > _EXCERPT else ""
    right = "..." if len(text) > position + _EXCERPT else ""
    raise InvalidExpression(
        f"cannot read the filter at character {position + 1}: {reason}: {left}{before}⟨here⟩{after}{right}",
        position=position,
    )
