"""Statements as the settings of a session have them read, in the form that all others read alike."""

from __future__ import annotations

import re

from icefield.errors import UnsupportedFeature
from pyspark.sql import SparkSession
from sqlglot.tokenizer_core import TokenType

from icefield_spark.quoting import constant, quoted
from icefield_spark.sql.parsing import Statement

_ESCAPED = "spark.sql.parser.escapedStringLiterals"
_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"


def read_as(spark: SparkSession, string: str) -> str:
    """A statement whose strings and names mean the same whatever the settings say of backslashes and double quotes.

    Raises ``UnsupportedFeature`` for a string or name that no form holds for certain.
    """
    escaped = "\\" in string and _is_on(spark, _ESCAPED)
    # A default given to ``get`` would come in place of Spark's own, which is true from Spark 4 on.
    names = '"' in string and _is_on(spark, _NAMES) and spark.conf.get("spark.sql.ansi.enabled") == "true"
    joined = ("''" in string or '""' in string) and _joins(spark)
    if not (escaped or names or joined):
        return string
    pieces, at = [], 0
    for token in Statement(string).tokens:
        if token.token_type is not TokenType.STRING:
            continue
        written = string[token.start : token.end + 1]
        if names and written.startswith('"'):
            made = _name(written)
        elif escaped and "\\" in written:
            made = _raw(written)
        elif joined and written[0] * 2 in written[1:-1]:
            made = _joined(written)
        else:
            continue
        pieces += [string[at : token.start], made]
        at = token.end + 1
    return "".join([*pieces, string[at:]])


def _is_on(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


def _joins(spark: SparkSession) -> bool:
    """Whether two quotes end a string and begin the next one, as they do before Spark 4."""
    return spark.version < "4" or _is_on(spark, "spark.sql.legacy.consecutiveStringLiterals.enabled")


def _joined(written: str) -> str:
    """Strings that follow each other at once, as one."""
    pieces = re.findall(r"\\.|''|\"\"|.", written[1:-1], re.DOTALL)
    return written[0] + "".join(each for each in pieces if each != written[0] * 2) + written[0]


def _name(written: str) -> str:
    inside = written[1:-1]
    if "\\" in inside or '"' in inside:
        raise UnsupportedFeature(f"a name in double quotes has a quote or a backslash in it: {written:.100}")
    return quoted(inside)


def _raw(written: str) -> str:
    inside = written[1:-1]
    if written[0] in inside:
        raise UnsupportedFeature(
            f"a string has a quote and a backslash in it while {_ESCAPED} is true: set it to false for {written:.100}"
        )
    return constant(inside)
