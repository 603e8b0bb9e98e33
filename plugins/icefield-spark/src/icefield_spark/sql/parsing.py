"""Statements as tokens with positions in the string. Parts for Spark keep their original text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from icefield.errors import InvalidArgument
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token as Read
from sqlglot.tokenizer_core import TokenType

_OPENING = {"(": ")", "[": "]"}
_CLOSING = frozenset(_OPENING.values())
_MOST_CHARACTERS = 1 << 20
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_LITERAL = frozenset(
    {
        *_STRINGS,
        TokenType.IDENTIFIER,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
        TokenType.HEREDOC_STRING,
    }
)
"""Quoted tokens: their content is neither a word nor a sign."""


class SqlToken(NamedTuple):
    """A word, literal or sign, and where it begins and ends in the string."""

    token_type: TokenType
    text: str
    start: int
    end: int


class _Tokenizer(Spark.Tokenizer):
    """Spark's tokens, also for statements that sqlglot keeps as one string."""

    COMMANDS: ClassVar[set[TokenType]] = set()


class Statement:
    """One statement: its string and its tokens."""

    def __init__(self, string: str) -> None:
        if len(string) > _MOST_CHARACTERS:
            raise InvalidArgument(f"a statement has at most {_MOST_CHARACTERS} characters, not {len(string)}")
        try:
            # A number with a suffix, such as 1L, arrives as three tokens at one position.
            found = [piece for token in _Tokenizer(dialect=Spark).tokenize(string) for piece in _pieces(token, string)]
        except SqlglotError as error:
            raise InvalidArgument(f"the statement cannot be read: {_first_line(error)}") from error
        while found and found[-1].token_type is TokenType.SEMICOLON:
            found.pop()
        if any(token.token_type is TokenType.SEMICOLON for token in found):
            raise InvalidArgument("give one statement at a time, not several with ';' between them")
        if not found:
            raise InvalidArgument("the statement is empty")
        self.tokens: Sequence[SqlToken] = found
        self.string = string[: found[-1].end + 1]

    def is_word(self, at: int, *words: str) -> bool:
        """Whether the tokens from an index on are these words, in upper or lower case."""
        if at + len(words) > len(self.tokens):
            return False
        return all(
            token.token_type not in _LITERAL and token.text.upper() == word
            for token, word in zip(self.tokens[at : at + len(words)], words, strict=True)
        )

    def between(self, start: int, end: int) -> str:
        """The string from a token up to the token before another."""
        if start >= end:
            return ""
        return self.string[self.tokens[start].start : self.tokens[end - 1].end + 1]


class Cursor:
    """A place in a statement's tokens, from which clauses are taken one by one."""

    def __init__(self, statement: Statement, at: int = 0, end: int | None = None) -> None:
        self.statement = statement
        self.at = at
        self.end = len(statement.tokens) if end is None else end

    @property
    def is_over(self) -> bool:
        """Whether no token is left."""
        return self.at >= self.end

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        return self.at + len(words) <= self.end and self.statement.is_word(self.at, *words)

    def takes(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def takes_one_of(self, *words: str) -> str | None:
        """Take the next token if it is one of these words; return the word, or None."""
        return next((word for word in words if self.takes(word)), None)

    def expect(self, *words: str) -> None:
        """Take these words. Raises ``InvalidArgument`` if other words follow."""
        if not self.takes(*words):
            raise self.unexpected(" ".join(words))

    def expect_end(self) -> None:
        """Raise ``InvalidArgument`` if tokens are left."""
        if not self.is_over:
            raise self.unexpected("the end of the statement")

    def unexpected(self, wanted: str) -> InvalidArgument:
        """The error that names the expected token and the text in its place."""
        if self.is_over:
            return InvalidArgument(f"the statement ends where {wanted} was expected: {self.statement.string:.200}")
        token = self.statement.tokens[self.at]
        rest = self.statement.string[token.start : token.start + 60]
        return InvalidArgument(f"{wanted} was expected in place of: {rest}")

    def name(self, what: str = "a name") -> str:
        """Take one part of a name."""
        if self.is_over:
            raise self.unexpected(what)
        token = self.statement.tokens[self.at]
        if not _is_name(token):
            raise self.unexpected(what)
        self.at += 1
        return token.text

    def names(self, what: str = "a name") -> tuple[str, ...]:
        """Take a name with its parts: ``a.b.`c d```."""
        parts = [self.name(what)]
        while self.takes("."):
            parts.append(self.name(what))
        return tuple(parts)

    def string(self, what: str = "a string") -> str:
        """Take a string literal."""
        if self.is_over or self.statement.tokens[self.at].token_type not in _STRINGS:
            raise self.unexpected(what)
        self.at += 1
        return self.statement.tokens[self.at - 1].text

    def number(self, what: str = "a whole number") -> int:
        """Take a whole number, with or without a sign and a suffix."""
        sign = -1 if self.takes("-") else 1
        if self.is_over or self.statement.tokens[self.at].token_type is not TokenType.NUMBER:
            raise self.unexpected(what)
        token = self.statement.tokens[self.at]
        try:
            value = int(token.text)
        except ValueError as error:
            raise self.unexpected(what) from error
        while not self.is_over and self.statement.tokens[self.at].start == token.start:
            self.at += 1
        return sign * value

    def enclosed(self, what: str = "'('") -> Cursor:
        """Take a pair of parentheses and return a cursor over their content."""
        if not self.sees("("):
            raise self.unexpected(what)
        start = self.at + 1
        self.at = self.closing(self.at) + 1
        return Cursor(self.statement, start, self.at - 1)

    def closing(self, at: int) -> int:
        """The index of the parenthesis that closes the parenthesis at an index."""
        depth = 0
        for place in range(at, self.end):
            kind = self.statement.tokens[place]
            if kind.token_type in _LITERAL:
                continue
            if kind.text in _OPENING:
                depth += 1
            elif kind.text in _CLOSING:
                depth -= 1
                if depth == 0:
                    return place
        raise InvalidArgument(f"a parenthesis is not closed: {self.statement.between(at, self.end):.100}")

    def until(self, *ends: tuple[str, ...]) -> str:
        """Take everything up to one of these words outside of parentheses and CASE, or to the end, as a string."""
        start, cases = self.at, 0
        while not self.is_over:
            if cases == 0 and any(self.sees(*words) for words in ends):
                break
            if self.sees("CASE"):
                cases += 1
            elif self.sees("END") and cases:
                cases -= 1
            token = self.statement.tokens[self.at]
            plain = token.token_type not in _LITERAL
            self.at = self.closing(self.at) + 1 if plain and token.text in _OPENING else self.at + 1
        return self.statement.between(start, self.at)

    def rest(self) -> str:
        """Take the rest, and return its string."""
        start, self.at = self.at, self.end
        return self.statement.between(start, self.end)

    def items(self) -> list[Cursor]:
        """Cursors over the items between commas in the remaining tokens."""
        found = []
        while not self.is_over:
            start = self.at
            self.until((",",))
            if start == self.at:
                raise self.unexpected("something before the comma")
            found.append(Cursor(self.statement, start, self.at))
            if self.takes(",") and self.is_over:
                raise self.unexpected("something after the comma")
        return found


def chains(statement: Statement) -> Iterator[tuple[int, tuple[str, ...]]]:
    """All names of a statement with their parts, as ``a.b.c``, and at which token each begins."""
    tokens, at = statement.tokens, 0
    while at < len(tokens):
        start, parts = at, []
        while at < len(tokens) and _is_name(tokens[at]):
            parts.append(tokens[at].text)
            at += 1
            if at + 1 >= len(tokens) or not statement.is_word(at, ".") or not _is_name(tokens[at + 1]):
                break
            at += 1
        if parts:
            yield start, tuple(parts)
        else:
            at += 1


def _pieces(token: Read, string: str) -> Iterator[SqlToken]:
    """The words of a token of sqlglot, which joins some pairs of words into one token."""
    whole = string[token.start : token.end + 1]
    if token.token_type in _LITERAL or len(whole.split()) < 2:
        yield SqlToken(token.token_type, token.text, token.start, token.end)
        return
    for word in re.finditer(r"\S+", whole):
        yield SqlToken(token.token_type, word.group(), token.start + word.start(), token.start + word.end() - 1)


def _is_name(token: SqlToken) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    plain = token.token_type not in _LITERAL and token.token_type is not TokenType.NUMBER
    return plain and bool(token.text) and token.text.replace("_", "a").isalnum()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
