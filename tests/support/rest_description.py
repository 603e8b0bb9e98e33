"""The OpenAPI description of the REST catalog protocol as a judge of requests and answers.

``rest/rest-catalog-open-api.yaml`` is Iceberg's own; its head says where it is from.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from jsonschema import Draft202012Validator

DESCRIPTION = Path(__file__).with_name("rest") / "rest-catalog-open-api.yaml"


@cache
def description() -> dict[str, Any]:
    """The whole of it."""
    found: dict[str, Any] = yaml.load(DESCRIPTION.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    _with_nulls(found)
    # An integer is an int and a long at once; and partitions hold nulls, which Java's server writes.
    value = found["components"]["schemas"]["PrimitiveTypeValue"]
    value["anyOf"] = [*value.pop("oneOf"), {"type": "null"}]
    return found


def _with_nulls(schema: Any) -> None:
    """Write ``nullable``, a word of older descriptions that JSON Schema does not know, as a type."""
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _with_nulls(child)
    if isinstance(schema, dict) and schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]


def operation_of(method: str, url: str, *, prefix: str = "") -> dict[str, Any] | None:
    """The operation that a request asks for, where the description has it; ``prefix`` is what the server asked for."""
    given = [part for part in urlsplit(url).path.split("/")[1:] if part != prefix or not prefix]
    for template, methods in description()["paths"].items():
        shape = [part for part in template.split("/")[1:] if part != "{prefix}"]
        if len(shape) == len(given) and all(
            wanted.startswith("{") or wanted == part for wanted, part in zip(shape, given, strict=True)
        ):
            found: dict[str, Any] | None = methods.get(method.lower())
            return found
    return None


def check_request(method: str, url: str, body: bytes) -> None:
    """Raise ``jsonschema.ValidationError`` for a body that the description does not allow."""
    operation = operation_of(method, url)
    content = _resolved((operation or {}).get("requestBody", {})).get("content", {})
    if "application/json" in content:
        _validate(content["application/json"]["schema"], json.loads(body))


def check_answer(method: str, url: str, status: int, body: bytes) -> None:
    """Raise ``jsonschema.ValidationError``, or ``AssertionError`` for a status that the description does not know."""
    operation = operation_of(method, url)
    assert operation is not None, f"the description has no {method} {url}"
    known = {str(key): value for key, value in operation["responses"].items()}
    answer = known.get(str(status)) or known.get(f"{status // 100}XX")
    assert answer is not None, f"{operation['operationId']} does not know the status {status}: {sorted(known)}"
    content = _resolved(answer).get("content", {})
    if "application/json" in content and method != "HEAD":
        _validate(content["application/json"]["schema"], json.loads(body))
    else:
        assert not body, f"{operation['operationId']} answers {status} without a body"


def _resolved(given: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in given:
        found: Any = description()
        for part in given["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        given = found
    return given


def _validate(schema: dict[str, Any], value: Any) -> None:
    if schema.get("$ref") == "#/components/schemas/ErrorModel":
        # Some answers name the model itself, where every server, Java's too, sends it inside of an object.
        schema = {"$ref": "#/components/schemas/IcebergErrorResponse"}
    Draft202012Validator({"components": description()["components"], **schema}).validate(value)
