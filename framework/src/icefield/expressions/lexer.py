"""Cuts the string of a filter into tokens, in one pass."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple, NoReturn

from icefield.errors import InvalidExpression
from icefield.expressions.literals import KEYWORDS, WORD

MAX_STRING: Final = 16 * 1024 * 1024
"""The longest string of a filter, in characters."""

_EXCERPT: Final = 30


class TokenKind(Enum):
    """The kind of a token."""

    NUMBER = "a number"
    STRING = "a string"
    BYTES = "bytes"
    KEYWORD = "a keyword"
    NAME = "a column"
    QUOTED = "a quoted column"
    OPERATOR = "an operator"
    PUNCTUATION = "punctuation"
    END = "the end"


class Token(NamedTuple):
    """A piece of the string. ``string`` is in lower case for keywords and unquoted for strings and names."""

    kind: TokenKind
    string: str
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


def tokens(string: str) -> list[Token]:
    """The tokens of a filter, the last one of kind END. Raises ``InvalidExpression`` with the position."""
    if not isinstance(string, str):
        raise InvalidExpression(f"a filter is a string or an expression, not a {type(string).__name__}")
    if len(string) > MAX_STRING:
        raise InvalidExpression(f"a filter has at most {MAX_STRING} characters; this one has {len(string)}")
    found: list[Token] = []
    position = 0
    while position < len(string):
        match = _TOKEN.match(string, position)
        if match is None:
            _refuse(string, position)
        if match.lastgroup != "space":
            found.append(_token(match, string))
        position = match.end()
    found.append(Token(TokenKind.END, "", len(string)))
    return found


def _token(match: re.Match[str], string: str) -> Token:
    group, start = match.lastgroup or "", match.start()
    content = match.group(group)
    if group == "word":
        lower = content.lower()
        return Token(TokenKind.KEYWORD, lower, start) if lower in KEYWORDS else Token(TokenKind.NAME, content, start)
    if group == "bytes" and (len(content) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", content)):
        fail("X'...' takes pairs of hexadecimal digits", string, start)
    kind, quote = _KINDS[group]
    return Token(kind, content.replace(2 * quote, quote) if quote else content, start)


_KINDS: Final = {
    "number": (TokenKind.NUMBER, ""),
    "string": (TokenKind.STRING, "'"),
    "bytes": (TokenKind.BYTES, ""),
    "double": (TokenKind.QUOTED, '"'),
    "back": (TokenKind.QUOTED, "`"),
    "operator": (TokenKind.OPERATOR, ""),
    "punctuation": (TokenKind.PUNCTUATION, ""),
}
"""The kind of each group, and the quote that is doubled inside it."""

_INSTEAD = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or '<>' between values",
    "[": "a list is written (1, 2)",
}
"""Hints for characters that other languages use, by character."""


def _refuse(string: str, position: int) -> NoReturn:
    quote = string[position]
    if quote in "'\"`":
        fail(f"the quote {quote} is not closed", string, position)
    if quote.isdigit() or quote in "+-":
        fail("not a number", string, position)
    hint = _INSTEAD.get(quote)
    fail(f"unexpected character {quote!r}" + (f" ({hint})" if hint else ""), string, position)


def fail(reason: str, string: str, position: int) -> NoReturn:
    """Raise ``InvalidExpression`` with the position, counted from 1, and the text around it."""
    before = string[max(0, position - _EXCERPT) : position]
    after = string[position : position + _EXCERPT]
    left = "..." if position > _EXCERPT else ""
    right = "..." if len(string) > position + _EXCERPT else ""
    raise InvalidExpression(
        f"cannot read the filter at character {position + 1}: {reason}: {left}{before}⟨here⟩{after}{right}",
        position=position,
    )
