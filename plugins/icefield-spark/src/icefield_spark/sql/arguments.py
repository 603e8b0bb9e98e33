"""The arguments of procedures: by position and by name, as values of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield_maintenance import OperationOption, options_of
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


_KINDS: Final = {
    "string": STRING,
    "names": STRINGS,
    "integer": INT,
    "count": INT,
    "id": LONG,
    "flag": BOOLEAN,
    "time-or-age": TIME,
    "pair": MAP,
}
"""The types of arguments for the kinds of options in the records of maintenance."""


def parameters_of(record: type) -> dict[str, Parameter]:
    """The parameters of a procedure for the options of an operation, by the names in ``CALL``."""
    return {
        each.description.argument: Parameter(
            each.description.argument,
            LONGS if each.description.kind == "id" and each.default == () else _KINDS[each.description.kind],
            _sentence(each.description.doc),
            required=each.is_required,
        )
        for each in options_of(record)
        if each.description.argument
    }


def keywords_of(record: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of an operation for the arguments of a procedure, without arguments that are no options."""
    names = {each.description.argument: each.name for each in options_of(record) if each.description.argument}
    return {names[argument]: value for argument, value in given.items() if argument in names}


def entries_of(record: type) -> dict[str, OperationOption]:
    """The options of an operation that the map ``options`` of a procedure takes, by their keys."""
    return {each.description.entry: each for each in options_of(record) if each.description.entry}


def _sentence(doc: str) -> str:
    """The documentation of an option as a part of the description of a procedure."""
    return doc[:1].lower() + doc[1:].removesuffix(".")


def options(procedure: str, given: Mapping[str, str], record: type, ignored: Sequence[str]) -> dict[str, Any]:
    """The options of a rewrite as keywords of the operation. ``given``: values by the names of Java's options."""
    made = {}
    known = entries_of(record)
    for key, value in given.items():
        if key in ignored:
            continue
        if key not in known:
            raise UnsupportedFeature(f"{procedure} has no option '{key}'; it has {', '.join(sorted(known))}")
        kind = known[key].description.kind
        parse, noun = _PARSERS.get(kind, (str, "str"))
        try:
            made[known[key].name] = parse(value)
        except ValueError as error:
            raise InvalidArgument(f"option '{key}' is a {noun}, not '{value}'") from error
    return made


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower() == "true"


_PARSERS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "count": (int, "int"),
    "integer": (int, "int"),
    "id": (int, "int"),
    "number": (float, "float"),
    "flag": (_flag, "bool"),
}
"""The functions for values in the map ``options``, and the names of their types, by kind."""


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
