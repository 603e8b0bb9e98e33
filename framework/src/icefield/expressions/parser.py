r"""The string form of a filter: SQL's comparisons of columns with literals.

    comparison   x = 5   x == 5   x != 5   x <> 5   x < 5   x <= 5   x > 5   x >= 5   5 < x   x [not] between 1 and 5
    sets         kind in ('a', 'b')   kind not in ('a', 'b')
    tests        x is null   x is not null   x is nan   x is not nan
    booleans     flag   not flag   (a boolean column by itself: flag = true)
    prefixes     name like 'a%'   name not like 'a%'   (a last % is the only wildcard; \%, \_ and \\ escape)
    logic        and   or   not   ( )   true   false
    columns      id   address.city   "a b"   `a b`   "a b".c   (a quote inside is doubled,
                 a dot inside belongs to the name)
    literals     5   -1.5 (exact)   1.5e0 (a float)   'it''s'   X'00ff'   true   false
                 dates, times, timestamps and UUIDs as a string: '2024-01-01', '12:30:00', '2024-01-01T12:30:00+00:00';
                 DATE, TIME, TIMESTAMP or UUID may stand before them

Keywords are read in any case. Length and depth are bounded. ``parse(str(expression)) == expression``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from icefield.errors import InvalidExpression
from icefield.expressions.expressions import MAX_DEPTH, AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Op, Or
from icefield.expressions.lexer import Token, TokenKind, fail, tokens
from icefield.expressions.literals import MAX_DIGITS, Literal
from icefield.expressions.predicates import (
    PREDICATES,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotStartsWith,
    Reference,
    StartsWith,
)

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.compute as pc

Filter: TypeAlias = "BooleanExpression | str | pc.Expression | pl.Expr"
"""An expression, its string, or an expression of a library that a plugin translates."""

_COMPARISONS: Final = {
    "=": Op.EQ, "==": Op.EQ, "!=": Op.NOT_EQ, "<>": Op.NOT_EQ,
    "<": Op.LT, "<=": Op.LT_EQ, ">": Op.GT, ">=": Op.GT_EQ,
}  # fmt: skip
_TYPED_STRINGS: Final = frozenset({"date", "time", "timestamp", "timestamptz", "uuid"})


def parse(string: str) -> BooleanExpression:
    """The expression that a string stands for.

    Raises ``InvalidExpression``, with ``position`` (from 0) and the place in its message.
    """
    return _FilterParser(string).whole()


def as_expression(given: str | BooleanExpression) -> BooleanExpression:
    """An expression unchanged, or the expression that a string stands for."""
    return given if isinstance(given, BooleanExpression) else parse(given)


class _FilterParser:
    """Recursive descent over the tokens; only parentheses recurse, and they are counted."""

    def __init__(self, string: str) -> None:
        self._string = string
        self._tokens = tokens(string)
        self._next = 0
        self._open = 0

    def whole(self) -> BooleanExpression:
        expression = self._or()
        if self._token.kind is not TokenKind.END:
            self._expected("'and', 'or' or the end")
        return expression

    # --- the tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _accept(self, string: str, kind: TokenKind = TokenKind.KEYWORD) -> bool:
        token = self._token
        if token.kind is kind and token.string == string:
            self._next += 1
            return True
        return False

    def _expect(self, string: str, kind: TokenKind = TokenKind.PUNCTUATION) -> None:
        if not self._accept(string, kind):
            self._expected(f"'{string}'")

    def _expected(self, what: str) -> NoReturn:
        token = self._token
        found = "the end" if token.kind is TokenKind.END else f"{token.kind.value} {token.string[:40]!r}"
        fail(f"expected {what}, found {found}", self._string, token.position)

    # --- logic

    def _or(self) -> BooleanExpression:
        parts = [self._and()]
        while self._accept("or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else self._built(Or, parts)

    def _and(self) -> BooleanExpression:
        parts = [self._not()]
        while self._accept("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else self._built(And, parts)

    def _not(self) -> BooleanExpression:
        count = 0
        while self._accept("not"):
            count += 1
        expression = self._primary()
        for _ in range(count):
            expression = self._built(Not, [expression])
        return expression

    def _built(self, kind: type[And] | type[Or] | type[Not], parts: list[BooleanExpression]) -> BooleanExpression:
        try:
            return kind(*parts)
        except InvalidExpression as error:
            fail(error.message, self._string, self._token.position)

    def _primary(self) -> BooleanExpression:
        start = self._token
        if self._accept("(", TokenKind.PUNCTUATION):
            self._open += 1
            if self._open > MAX_DEPTH:
                fail(f"parentheses are nested deeper than {MAX_DEPTH} levels", self._string, start.position)
            expression = self._or()
            self._expect(")")
            self._open -= 1
            return expression
        if start.kind in (TokenKind.NAME, TokenKind.QUOTED):
            return self._literal_comparison() if self._is_typed_string() else self._predicate()
        if start.kind is TokenKind.KEYWORD and start.string in ("true", "false"):
            following = self._tokens[self._next + 1]
            if following.kind is not TokenKind.OPERATOR:
                self._next += 1
                return AlwaysTrue() if start.string == "true" else AlwaysFalse()
        return self._literal_comparison()

    # --- predicates

    def _literal_comparison(self) -> BooleanExpression:
        """Parse a comparison that begins with the literal: ``5 < x``."""
        value = self._literal("an expression")
        op = self._comparison()
        name = self._name()
        return PREDICATES[op.flipped](name, value)

    def _predicate(self) -> BooleanExpression:
        name = self._name()
        if self._token.kind is TokenKind.OPERATOR:
            op = self._comparison()
            return PREDICATES[op](name, self._literal("a literal"))
        if self._accept("is"):
            return self._test(name)
        if self._at_end_of_operand():
            return EqualTo(name, True)
        negative = self._accept("not")
        if self._accept("in"):
            values = self._literals()
            return NotIn(name, values) if negative else In(name, values)
        if self._accept("like"):
            return self._like(name, negative)
        if self._accept("between"):
            low = self._literal("a literal")
            self._expect("and", TokenKind.KEYWORD)
            high = self._literal("a literal")
            if negative:
                return Or(LessThan(name, low), GreaterThan(name, high))
            return And(GreaterThanOrEqual(name, low), LessThanOrEqual(name, high))
        self._expected("'in', 'like' or 'between'" if negative else "a comparison, 'is', 'in', 'like' or 'between'")

    def _at_end_of_operand(self) -> bool:
        """Whether the operand ends here, with nothing to compare the column with."""
        kind, string, _ = self._token
        return (
            kind is TokenKind.END
            or (kind is TokenKind.PUNCTUATION and string == ")")
            or (kind is TokenKind.KEYWORD and string in ("and", "or"))
        )

    def _comparison(self) -> Op:
        if self._token.kind is not TokenKind.OPERATOR:
            self._expected("a comparison")
        return _COMPARISONS[self._take().string]

    def _test(self, name: Reference) -> BooleanExpression:
        op = Op.NOT_NULL if self._accept("not") else Op.IS_NULL
        if self._accept("null"):
            return PREDICATES[op](name)
        if self._accept("nan"):
            return PREDICATES[Op.IS_NAN if op is Op.IS_NULL else Op.NOT_NAN](name)
        self._expected("'null' or 'nan'")

    def _like(self, name: Reference, negative: bool) -> BooleanExpression:
        token = self._token
        if token.kind is not TokenKind.STRING:
            self._expected("a pattern such as 'a%'")
        self._next += 1
        string, is_prefix = self._pattern(token)
        if is_prefix:
            return NotStartsWith(name, string) if negative else StartsWith(name, string)
        return NotEqualTo(name, string) if negative else EqualTo(name, string)

    def _pattern(self, token: Token) -> tuple[str, bool]:
        """The string of a pattern without its escapes, and whether the pattern ends with a %."""
        pattern, pieces, at = token.string, [], 0
        while at < len(pattern):
            char = pattern[at]
            if char == "\\" and pattern[at + 1 : at + 2] in ("\\", "%", "_"):
                at += 1
                pieces.append(pattern[at])
            elif char == "%" and at == len(pattern) - 1:
                return "".join(pieces), True
            elif char in "%_":
                fail(
                    f"LIKE has one wildcard, a % at the end; write \\{char} for the character itself",
                    self._string,
                    token.position,
                )
            else:
                pieces.append(char)
            at += 1
        return "".join(pieces), False

    # --- names and literals

    def _name(self) -> Reference:
        parts = [self._name_part()]
        while self._accept(".", TokenKind.PUNCTUATION):
            parts.append(self._name_part())
        return Reference(tuple(parts))

    def _name_part(self) -> str:
        if self._token.kind not in (TokenKind.NAME, TokenKind.QUOTED):
            hint = ' (a keyword is quoted: "...")' if self._token.kind is TokenKind.KEYWORD else ""
            self._expected(f"a column{hint}")
        return self._take().string

    def _is_typed_string(self) -> bool:
        """Whether a typed string such as ``DATE '2024-01-01'`` comes next."""
        token = self._token
        if token.kind is not TokenKind.NAME or token.string.lower() not in _TYPED_STRINGS:
            return False
        return self._tokens[self._next + 1].kind is TokenKind.STRING

    def _literals(self) -> list[Literal]:
        self._expect("(")
        if self._accept(")", TokenKind.PUNCTUATION):
            return []
        values = [self._literal("a literal")]
        while self._accept(",", TokenKind.PUNCTUATION):
            values.append(self._literal("a literal"))
        self._expect(")")
        return values

    def _literal(self, what: str) -> Literal:
        if self._is_typed_string():
            self._next += 1
        token = self._token
        match token.kind:
            case TokenKind.STRING:
                value: Literal = token.string
            case TokenKind.NUMBER:
                value = self._number(token)
            case TokenKind.BYTES:
                value = bytes.fromhex(token.string)
            case TokenKind.KEYWORD if token.string in ("true", "false"):
                value = token.string == "true"
            case TokenKind.KEYWORD if token.string in ("null", "nan"):
                self._expected(f"{what} ({token.string} equals nothing: use 'is {token.string}')")
            case TokenKind.QUOTED:
                self._expected(f"{what} (a string is put in single quotes)")
            case _:
                self._expected(what)
        self._next += 1
        return value

    def _number(self, token: Token) -> Literal:
        if len(token.string) > 2 * MAX_DIGITS + 3:
            fail(f"a number has at most {MAX_DIGITS} digits", self._string, token.position)
        if "e" in token.string.lower():
            return float(token.string)
        return Decimal(token.string) if "." in token.string else int(token.string)
