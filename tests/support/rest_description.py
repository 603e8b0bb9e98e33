"""The OpenAPI description of the REST catalog protocol as a judge of requests and answers.

``rest/rest-catalog-open-api.yaml`` is Iceberg's own; its head says where it is from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml
from jsonschema import Draft202012Validator, ValidationError

Parameters = dict[tuple[str, str], dict[str, Any]]
"""The parameters of an operation, by their positions and names; names of headers are in lower case."""

DESCRIPTION = Path(__file__).with_name("rest") / "rest-catalog-open-api.yaml"


@cache
def description() -> dict[str, Any]:
    """Return the whole description."""
    found: dict[str, Any] = yaml.load(DESCRIPTION.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    _with_nulls(found)
    # An integer matches both int and long, and Java's server writes nulls into partitions.
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
    """Return the operation of a request, or None if there is none; the server's configuration sets the ``prefix``."""
    found = _place_of(url, prefix)
    return None if found is None else description()["paths"][found[0]].get(method.lower())


def _place_of(url: str, prefix: str = "") -> tuple[str, dict[str, str]] | None:
    """Return the template of a path, and the values of its parameters."""
    path = urlsplit(url).path
    if prefix and path.startswith(f"/v1/{prefix}/"):
        path = "/v1" + path.removeprefix(f"/v1/{prefix}")
    given = path.split("/")[1:]
    for template in description()["paths"]:
        shape = [part for part in template.split("/")[1:] if part != "{prefix}"]
        if len(shape) == len(given) and all(
            wanted.startswith("{") or wanted == part for wanted, part in zip(shape, given, strict=True)
        ):
            pairs = zip(shape, given, strict=True)
            return template, {wanted[1:-1]: unquote(part) for wanted, part in pairs if wanted.startswith("{")}
    return None


def check_request(method: str, url: str, body: bytes) -> None:
    """Raise ``jsonschema.ValidationError`` for a body that the description does not allow."""
    operation = operation_of(method, url)
    content = _resolved((operation or {}).get("requestBody", {})).get("content", {})
    if "application/json" in content:
        _validate(content["application/json"]["schema"], json.loads(body))


def check_whole_request(method: str, url: str, headers: Mapping[str, str], body: bytes, *, prefix: str = "") -> None:
    """Raise ``ValidationError`` for a request with a path, query, headers or body that is not in the description.

    ``headers``: by names in lower case. HTTP allows headers that an operation does not name; if they are headers of the
    protocol, their values must be valid by the operations that name them.
    """
    place = _place_of(url, prefix)
    operation = operation_of(method, url, prefix=prefix)
    if place is None or operation is None:
        raise ValidationError(f"the description has no {method} {urlsplit(url).path}")
    template, parts = place
    known = _parameters(template, method.lower())
    query = parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=bool(urlsplit(url).query))
    if len(dict(query)) < len(query):
        raise ValidationError(f"a parameter stands in the query twice: {query}")
    for name in dict(query).keys() - {name for where, name in known if where == "query"}:
        raise ValidationError(f"{operation['operationId']} has no parameter {name}")
    protocol = {name: parameter for (where, name), parameter in _all_parameters().items() if where == "header"}
    given = {
        **{("path", name): value for name, value in parts.items()},
        **{("query", name): value for name, value in query},
        **{("header", name): headers[name] for name in protocol if name in headers},
    }
    for key, value in given.items():
        _check_parameter(key[1], known.get(key) or protocol[key[1]], value)
    for where, name in {key for key, each in known.items() if each.get("required")} - given.keys():
        if name != "prefix":
            raise ValidationError(f"{operation['operationId']} needs the parameter {name} in the {where}")
    content = _resolved(operation.get("requestBody", {})).get("content", {})
    if not content and body:
        raise ValidationError(f"{operation['operationId']} has no body")
    if content:
        kind = headers.get("content-type", "").partition(";")[0]
        if kind not in content:
            raise ValidationError(f"{operation['operationId']} has a body of {sorted(content)}, not of '{kind}'")
        if kind == "application/json":
            _validate(content[kind]["schema"], json.loads(body))


@cache
def _parameters(template: str, method: str) -> Parameters:
    item = description()["paths"][template]
    found = (_resolved(each) for each in (*item.get("parameters", ()), *item[method].get("parameters", ())))
    return {(each["in"], each["name"].lower() if each["in"] == "header" else each["name"]): each for each in found}


@cache
def _all_parameters() -> Parameters:
    found: Parameters = {}
    for template, item in description()["paths"].items():
        for method in item.keys() - {"parameters"}:
            found |= _parameters(template, method)
    return found


def _check_parameter(name: str, parameter: dict[str, Any], text: str) -> None:
    """Parse the string of a parameter by its schema, and check the value against the schema."""
    schema = _resolved(parameter.get("schema", {}))
    if not text and parameter["in"] == "path":
        raise ValidationError(f"the parameter {name} is empty")
    value: Any = text
    if schema.get("type") == "integer":
        value = int(text) if text.isdigit() else text
    elif schema.get("type") == "boolean":
        value = {"true": True, "false": False}.get(text, text)
    elif schema.get("type") == "array":
        value = text.split(",")
    _validate(schema, value)


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
        # Some responses name the model itself, but every server, also Java's, sends the model inside an object.
        schema = {"$ref": "#/components/schemas/IcebergErrorResponse"}
    _validator(json.dumps(schema)).validate(value)


@cache
def _validator(schema: str) -> Draft202012Validator:
    """Return a validator that also checks formats, such as the format of UUIDs."""
    whole = {"components": description()["components"], **json.loads(schema)}
    return Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)
