"""``IDENTIFIER('…')``: a name that is given as a string."""

from __future__ import annotations

from icefield.errors import InvalidArgument, UnsupportedFeature
from sqlglot.tokenizer_core import TokenType

from icefield_spark.quoting import quoted
from icefield_spark.sql.parsing import Cursor, Statement

_WORD = "IDENTIFIER"


def with_names(string: str) -> str:
    """A statement in which names stand in place of ``IDENTIFIER('…')``, wherever Spark takes that for a name.

    Raises ``UnsupportedFeature`` where it is given no string: what it names would be known to Spark alone.
    """
    if _WORD not in string.upper():
        return string
    statement = Statement(string)
    pieces, at = [], 0
    for place in range(len(statement.tokens) - 1):
        if not statement.is_word(place, _WORD, "("):
            continue
        cursor = Cursor(statement, place + 1)
        inside = cursor.enclosed()
        if (
            inside.is_over
            or statement.tokens[inside.at].token_type is not TokenType.STRING
            or inside.end - inside.at > 1
        ):
            if place and statement.is_word(place - 1, "."):
                continue  # a table that is called so, and its columns
            raise UnsupportedFeature(
                f"IDENTIFIER takes a string here, not {statement.between(inside.at, inside.end):.100}: write the name "
                "itself; what is called so stands in backticks"
            )
        pieces += [string[at : statement.tokens[place].start], quoted(*_parts(inside.string()))]
        at = statement.tokens[cursor.at - 1].end + 1
    return "".join([*pieces, string[at:]])


def _parts(name: str) -> tuple[str, ...]:
    try:
        cursor = Cursor(Statement(name))
        parts = cursor.names()
        cursor.expect_end()
    except InvalidArgument as error:
        raise InvalidArgument(f"IDENTIFIER is given '{name:.100}', which is no name: {error}") from error
    return parts
