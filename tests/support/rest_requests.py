"""Requests that a hostile client could send, made from the OpenAPI description of the REST catalog protocol."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from rest_description import description

_MOST_DEEP: Final = 7
_NAMES: Final = ("db", "db", "db", "t", "t", "v", "none", "new")
_HOSTILE_NAMES: Final = (
    "..",
    ".",
    "../../etc/passwd",
    "a/../b",
    "a\\..\\b",
    "%2e%2e",
    "\x00",
    "db\x1f..",
    "\x1f",
    "",
    " ",
    "ü" * 300,
    "x" * 5_000,
    "\u202e",
    "'; DROP TABLE iceberg_tables; --",
    "{prefix}",
    "😀",
)
_STRINGS: Final = (
    *_HOSTILE_NAMES,
    "main",
    "long",
    "append",
    "true",
    "memory://served/none.json",
    "nowhere://served/none.json",
    "file:///etc/hostname",
    "memory://served/../up",
    "0" * 100_000,
    "-1",
    "1e999",
    "2020-13-99",
    "struct<",
    "decimal(99, 98)",
    "fixed[-1]",
    "bucket[0]",
    "00000000-0000-0000-0000-000000000000",
)
_NUMBERS: Final = (0, 1, 2, -1, 3, 1000, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40, 0.5, 1e308, -0.0)
_ODD: Final = (None, True, False, [], {}, [[]], [None], {"": None}, "", 0, -1, 1.5, "x", [{}], {"type": "x"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it goes over the wire."""

    method: str
    path: bytes
    query: bytes
    body: bytes
    headers: Mapping[str, str]


class HostileRequests:
    """Draws requests. The same seed gives the same requests."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._operations = [
            (method, path, {"parameters": [*item.get("parameters", ()), *operation.get("parameters", ())], **operation})
            for path, item in description()["paths"].items()
            for method, operation in item.items()
            if method in ("get", "head", "post", "delete")
        ]

    def one(self) -> Asked:
        """A request that is mostly valid and wrong in some parts."""
        draw = self._draw
        method, template, operation = draw.choice(self._operations)
        path = "/".join(self._part(part) for part in template.split("/") if part != "{prefix}")
        if draw.random() < 0.05:
            path = draw.choice(("/v1", "//", "/v1/../v1/config", path + "/", path + "/..", "/v1/" + "a/" * 2_000, "*"))
        query = "&".join(self._parameter(each) for each in operation["parameters"] if draw.random() < 0.4)
        if draw.random() < 0.05:
            query += "&" + draw.choice(("pageSize=9" * 2_000, "=&=&=", "%", "pageToken=%ff", "&" * 5_000))
        schema = _resolved(operation.get("requestBody", {})).get("content", {}).get("application/json", {})
        body = self._body(schema["schema"]) if "schema" in schema else b"{}" if draw.random() < 0.1 else b""
        headers = {"idempotency-key": draw.choice(("x", "é", "0" * 5_000))} if draw.random() < 0.05 else {}
        if draw.random() < 0.03:
            method = draw.choice(("put", "patch", "options", "post", "get", "delete"))
        return Asked(method.upper(), path.encode("utf-8", "surrogatepass"), query.encode(), body, headers)

    # -- parts

    def _part(self, part: str) -> str:
        if not part.startswith("{"):
            return part
        if self._draw.random() < 0.75:
            known = {"{namespace}": "db", "{table}": "t", "{view}": "v"}
            return known.get(part) or self._draw.choice(_NAMES)
        name = self._draw.choice((*_NAMES, *_HOSTILE_NAMES))
        return quote(name, safe="") if self._draw.random() < 0.8 else quote(name, safe="/.%\\")

    def _parameter(self, given: dict[str, Any]) -> str:
        given = _resolved(given)
        value = self._value(given.get("schema", {}), 0)
        if self._draw.random() < 0.3:
            value = self._draw.choice((*_STRINGS[:-10], *map(str, _NUMBERS)))
        return f"{quote(str(given['name']))}={quote(str(value)[:3_000], safe='')}"

    def _body(self, schema: dict[str, Any]) -> bytes:
        draw = self._draw
        value = self._value(schema, 0)
        for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
            value = self._spoilt(value)
        text = json.dumps(value).encode()
        if draw.random() < 0.15:
            change: Callable[[bytes], bytes] = draw.choice(
                (
                    lambda one: one[: len(one) // 2],
                    lambda one: one.replace(b'"', b"'", 1),
                    lambda one: b"\xff\xfe" + one,
                    lambda one: b"[" * 200_000,
                    lambda one: b'{"a":' * 50_000,
                    lambda one: b"[" * 99 + one + b"]" * 99,
                    lambda one: b"9" * 100_000,
                    lambda one: b"NaN",
                    lambda one: b'"\\ud800"',
                    lambda one: one + one,
                    lambda one: b" " * 100_000 + one,
                )
            )
            return change(text)
        return text

    def _value(self, schema: dict[str, Any], depth: int) -> Any:
        """A value that the description allows, or almost."""
        draw = self._draw
        schema = _resolved(schema)
        if "enum" in schema:
            return draw.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if "allOf" in schema:
            merged: dict[str, Any] = {}
            for part in (*schema["allOf"], {name: found for name, found in schema.items() if name != "allOf"}):
                value = self._value(part, depth) if part else {}
                merged |= value if isinstance(value, dict) else {}
            return merged
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self._value(draw.choice(schema[several]), depth + 1) if depth < _MOST_DEEP else None
        kind = schema.get("type", "object" if "properties" in schema else None)
        kind = draw.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            count = 0 if depth >= _MOST_DEEP else draw.choice((0, 1, 1, 2, 3))
            return [self._value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind == "string":
            return draw.choice(_NAMES if draw.random() < 0.7 else _STRINGS)
        if kind in ("integer", "number"):
            return draw.choice(_NUMBERS[:5] if draw.random() < 0.7 else _NUMBERS)
        return draw.choice((True, False)) if kind == "boolean" else draw.choice(_ODD)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        chosen = {
            name: self._value(each, depth + 1)
            for name, each in schema.get("properties", {}).items()
            if (name in required and self._draw.random() < 0.97) or (depth < _MOST_DEEP and self._draw.random() < 0.4)
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < _MOST_DEEP:
            chosen[self._draw.choice(_STRINGS)] = self._value(more, depth + 1)
        return chosen

    def _spoilt(self, value: Any) -> Any:
        """The value with an invalid part."""
        draw = self._draw
        if isinstance(value, dict) and value and draw.random() < 0.8:
            name = draw.choice([*value])
            return {**value, name: self._spoilt(value[name])}
        if isinstance(value, list) and value and draw.random() < 0.8:
            place = draw.randrange(len(value))
            return [*value[:place], self._spoilt(value[place]), *value[place + 1 :]]
        odd = draw.choice((*_ODD, *_STRINGS, *_NUMBERS, "nested", "long list"))
        if odd == "nested":
            return _nested(draw.choice((10, 60, 95)))
        return list(range(2_000)) if odd == "long list" else odd


def _nested(depth: int) -> Any:
    made: Any = "x"
    for _ in range(depth):
        made = {"type": "not", "child": made}
    return made


def _resolved(given: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in given:
        found: Any = description()
        for part in given["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        given = found
    return given
