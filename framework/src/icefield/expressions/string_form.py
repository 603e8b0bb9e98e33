"""The string form of names and predicates in filters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from icefield.expressions.operators import Op

KEYWORDS: Final = frozenset({"and", "or", "not", "is", "in", "like", "between", "null", "nan", "true", "false"})
WORD: Final = r"[^\W\d][\w$]*"
"""An identifier that needs no quotes."""

_WORD = re.compile(WORD)


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
