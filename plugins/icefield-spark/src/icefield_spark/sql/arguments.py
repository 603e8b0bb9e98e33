"""The arguments of procedures: by position and by name, as values of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import SparkSession
from sqlglot.tokenizer_core import TokenType

from icefield_spark.running import run_sql
from icefield_spark.sql.parsing import Cursor

STRING: Final = "string"
INT: Final = "int"
LONG: Final = "bigint"
BOOLEAN: Final = "boolean"
TIME: Final = "timestamp"
MAP: Final = "map<string, string>"
STRINGS: Final = "array<string>"
LONGS: Final = "array<bigint>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a procedure."""

    name: str
    kind: str = STRING
    doc: str = ""
    required: bool = False
    ignored: bool = False
    """Whether it says how Java is to work, and has no effect here."""
    unsupported: str = ""
    """Why it is refused where it asks for something."""
    nulls: bool = False
    """Whether a null may be in it."""


def taken(spark: SparkSession, procedure: str, parameters: Sequence[Parameter], cursor: Cursor) -> dict[str, Any]:
    """The arguments in the parentheses that come next, by name, without omitted arguments.

    Times are ms since 1970 UTC. Raises ``InvalidArgument`` for an unknown or repeated argument.
    """
    known = {each.name: each for each in parameters}
    found: dict[str, str] = {}
    for place, item in enumerate(cursor.enclosed().items()):
        if _is_named(item):
            name = item.name("the name of an argument").lower()
            item.expect("=>")
        elif place < len(parameters):
            name = parameters[place].name
        else:
            raise InvalidArgument(f"{procedure} takes {len(parameters)} arguments at most")
        if name not in known:
            raise InvalidArgument(f"{procedure} has no argument '{name}'; it has {', '.join(known)}")
        if name in found:
            raise InvalidArgument(f"{procedure} is given '{name}' twice")
        found[name] = item.rest()
    return _values(spark, found, known)


def checked(procedure: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that have a value and an effect, by name.

    Raises ``InvalidArgument`` for a missing argument, ``UnsupportedFeature`` for an argument without support.
    """
    found = {}
    for each in parameters:
        value = given.get(each.name)
        if each.unsupported and value not in (None, False):
            raise UnsupportedFeature(f"the argument '{each.name}' is not supported: {each.unsupported}")
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if None in items and not each.nulls:
            raise InvalidArgument(f"the argument '{each.name}' of {procedure} has a null in it")
        if value is not None and not each.ignored:
            found[each.name] = value
    missing = [each.name for each in parameters if each.required and each.name not in found]
    if missing:
        raise InvalidArgument(f"{procedure} needs {', '.join(missing)}")
    return found


def options(
    procedure: str, given: Mapping[str, str], known: Mapping[str, Any], ignored: Sequence[str]
) -> dict[str, Any]:
    """The options of a rewrite as arguments. ``known``: names and types by the names of Java's options."""
    made = {}
    for key, value in given.items():
        if key in ignored:
            continue
        if key not in known:
            raise UnsupportedFeature(f"{procedure} has no option '{key}'; it has {', '.join(sorted(known))}")
        name, kind = known[key]
        try:
            made[name] = _flag(value) if kind is bool else kind(value)
        except ValueError as error:
            raise InvalidArgument(f"option '{key}' is a {kind.__name__}, not '{value}'") from error
    return made


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower() == "true"


def _is_named(item: Cursor) -> bool:
    tokens = item.statement.tokens
    return item.at + 1 < item.end and tokens[item.at + 1].token_type is TokenType.FARROW


def _values(spark: SparkSession, given: Mapping[str, str], known: Mapping[str, Parameter]) -> dict[str, Any]:
    if not given:
        return {}
    columns = []
    for name, value in given.items():
        kind = known[name].kind
        made = f"CAST(({value}) AS {kind})"
        columns.append(f"{f'unix_millis({made})' if kind == TIME else made} AS {name}")
    return run_sql(spark, f"SELECT {', '.join(columns)}").collect()[0].asDict()
