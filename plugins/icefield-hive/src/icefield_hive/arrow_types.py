"""Types that Hive and Spark store in a metastore, as Arrow types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidSchema, UnsupportedFeature

_DEEPEST: Final = 64
_TOKEN: Final = re.compile(r"\s*([<>,:]|\([^)]*\)|`(?:[^`]|``)*`|[^\s<>,:()`]+)")
_UTC: Final = pa.timestamp("us", "UTC")
_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int32(),
    "smallint": pa.int32(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp with local time zone": _UTC,
    "decimal": pa.decimal128(10, 0),
}
_OF_SPARK: Final[Mapping[str, str]] = {
    "byte": "tinyint",
    "short": "smallint",
    "long": "bigint",
    "timestamp": "timestamp with local time zone",
    "timestamp_ntz": "timestamp",
}
"""Hive's names for types that have other names in the JSON of Spark's schemas."""


def of_hive(text: str, *, instants: bool = False) -> pa.DataType:
    """The Arrow type of a type as Hive writes it, such as ``map<string,array<decimal(9,2)>>``.

    Integers of 8 and 16 bits become ``int32``, ``char`` and ``varchar`` strings. With ``instants`` a ``timestamp`` has
    a zone. Raises ``UnsupportedFeature`` for unions, intervals and ``void``, and ``InvalidSchema`` for text that is no
    type.
    """
    return _HiveTypeParser(text, {**_PRIMITIVES, "timestamp": _UTC} if instants else _PRIMITIVES).whole()


def of_spark(schema: str) -> pa.Schema:
    """The Arrow schema of a schema that Spark stored as JSON. Raises as ``of_hive`` does."""
    try:
        return pa.schema(_fields_of_spark(json.loads(schema), 0))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"the metastore holds a malformed schema of Spark: {schema[:200]}") from error


def _fields_of_spark(struct: Mapping[str, Any], depth: int) -> list[pa.Field]:
    return [_field(each["name"], _type_of_spark(each["type"], depth + 1), _comment(each)) for each in struct["fields"]]


def _comment(field: Mapping[str, Any]) -> str | None:
    comment: str | None = (field.get("metadata") or {}).get("comment")
    return comment


def _type_of_spark(kind: Any, depth: int) -> pa.DataType:
    if isinstance(kind, str):
        return of_hive(_OF_SPARK.get(kind, kind))
    if depth > _DEEPEST:
        raise InvalidSchema(f"a type of Spark is nested deeper than {_DEEPEST} levels")
    match kind["type"]:
        case "struct":
            return pa.struct(_fields_of_spark(kind, depth))
        case "array":
            return pa.list_(_type_of_spark(kind["elementType"], depth + 1))
        case "map":
            return pa.map_(_type_of_spark(kind["keyType"], depth + 1), _type_of_spark(kind["valueType"], depth + 1))
    raise UnsupportedFeature(f"Iceberg has no type for Spark's type {kind['type']!r:.100}")


def columns_to_arrow(columns: list[dict[str | int, Any]], *, instants: bool) -> pa.Schema:
    """The Arrow schema of a metastore's columns, with their comments. Raises as ``of_hive`` does, with the column."""
    fields = []
    for column in columns:
        try:
            fields.append(_field(column["name"], of_hive(column["type"], instants=instants), column.get("comment")))
        except (UnsupportedFeature, InvalidSchema) as error:
            raise type(error)(f"column '{column['name']}': {error}") from None
    return pa.schema(fields)


def _field(name: str, kind: pa.DataType, comment: str | None) -> pa.Field:
    return pa.field(name, kind, metadata={"doc": comment} if comment else None)


class _HiveTypeParser:
    """Reads one type from left to right."""

    def __init__(self, text: str, primitives: Mapping[str, pa.DataType]) -> None:
        self._text = text
        self._primitives = primitives
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        if "".join("".join(self._tokens).split()) != "".join(text.split()):
            raise self._malformed()

    def whole(self) -> pa.DataType:
        found = self._type(0)
        if self._at < len(self._tokens):
            raise self._malformed()
        return found

    def _type(self, depth: int) -> pa.DataType:
        if depth > _DEEPEST:
            raise InvalidSchema(f"a type of Hive is nested deeper than {_DEEPEST} levels")
        name = self._next().lower()
        match name:
            case "array":
                self._expect("<")
                found = pa.list_(self._type(depth + 1))
                self._expect(">")
                return found
            case "map":
                self._expect("<")
                key = self._type(depth + 1)
                self._expect(",")
                value = self._type(depth + 1)
                self._expect(">")
                return pa.map_(key, value)
            case "struct":
                return self._struct(depth)
        while self._peek() not in ("<", ">", ",", ":", "") and not self._peek().startswith("("):
            name = f"{name} {self._next().lower()}"  # timestamp with local time zone
        arguments = self._next()[1:-1] if self._peek().startswith("(") else None
        if name == "decimal" and arguments is not None:
            return self._decimal(arguments)
        if name not in self._primitives:
            raise UnsupportedFeature(f"Iceberg has no type for Hive's type '{name}' in {self._text[:200]}")
        return self._primitives[name]

    def _struct(self, depth: int) -> pa.DataType:
        fields: list[tuple[str, pa.DataType]] = []
        self._expect("<")
        while True:
            name = self._next()
            self._expect(":")
            fields.append((name.strip("`").replace("``", "`"), self._type(depth + 1)))
            if self._peek() != ",":
                break
            self._next()
        self._expect(">")
        return pa.struct(fields)

    def _decimal(self, arguments: str) -> pa.DataType:
        try:
            precision, scale = (int(each) for each in f"{arguments},0".split(",")[:2])
            return pa.decimal128(precision, scale)
        except (ValueError, pa.ArrowException):
            raise self._malformed() from None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        if not token:
            raise self._malformed()
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._malformed()

    def _malformed(self) -> InvalidSchema:
        return InvalidSchema(f"the metastore holds a malformed type of Hive: {self._text[:200]}")
