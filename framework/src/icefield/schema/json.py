"""Types and schemas as JSON objects. Spec: Appendix C, schemas.

JSON from a table is untrusted: kinds are checked, and errors name the place of the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from icefield.base.limits import MAX_NAME_LENGTH
from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema.schema import Schema
from icefield.types import (
    MAX_NESTING_DEPTH,
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    parse_type,
)
from icefield.types.values import promote, value_from_json, value_to_json

T = TypeVar("T")


def type_to_json(iceberg_type: IcebergType) -> Any:
    """The JSON of a type: a string, or an object for a nested one."""
    match iceberg_type:
        case StructType():
            return {"type": "struct", "fields": [_field_to_json(field) for field in iceberg_type.fields]}
        case ListType():
            return {
                "type": "list",
                "element-id": iceberg_type.element_id,
                "element-required": iceberg_type.element_required,
                "element": type_to_json(iceberg_type.element_type),
            }
        case MapType():
            return {
                "type": "map",
                "key-id": iceberg_type.key_id,
                "key": type_to_json(iceberg_type.key_type),
                "value-id": iceberg_type.value_id,
                "value-required": iceberg_type.value_required,
                "value": type_to_json(iceberg_type.value_type),
            }
    return str(iceberg_type)


def _field_to_json(field: NestedField) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.field_type),
    }
    if field.doc is not None:
        written["doc"] = field.doc
    for key, default in (("initial-default", field.initial_default), ("write-default", field.write_default)):
        if default is not None:
            own_fields = isinstance(field.field_type, StructType) and default == ()
            written[key] = {} if own_fields else value_to_json(field.field_type, default)
    return written


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The JSON object of a schema. Raises ``InvalidArgument`` for a default without JSON form, such as NaN."""
    written: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        written["identifier-field-ids"] = list(schema.identifier_field_ids)
    written["fields"] = [_field_to_json(field) for field in schema.fields]
    return written


def schema_from_json(obj: Any, place: str = "schema") -> Schema:
    """The schema of a JSON object; its id is 0 without ``schema-id`` (version 1). Raises as ``type_from_json`` does."""
    check_json(isinstance(obj, dict), place, "is not an object")
    check_json(obj.get("type", "struct") == "struct", place, "is not of type struct")
    schema_id = _get(obj, "schema-id", int, place, default=0)
    identifiers = obj.get("identifier-field-ids") or []
    sound = isinstance(identifiers, list) and all(_is(id_, int) for id_ in identifiers)
    check_json(sound, place, "identifier-field-ids is not a list of integers")
    struct = _struct_from_json(obj, place, 0)
    try:
        return Schema(*struct.fields, schema_id=schema_id, identifier_field_ids=identifiers)
    except InvalidSchema as error:
        raise InvalidSchema(f"{place}: {error.message}", **error.data) from None


def type_from_json(obj: Any, place: str = "type", depth: int = 0) -> IcebergType:
    """Parse the JSON of a type. Messages of errors begin with ``place``.

    Raises ``UnsupportedFeature`` for an unknown type and ``InvalidSchema`` for every other fault, such as more than
    100 levels.
    """
    try:
        if isinstance(obj, str):
            return parse_type(obj)
    except IcefieldError as error:
        kind = UnsupportedFeature if isinstance(error, UnsupportedFeature) else InvalidSchema
        raise kind(f"{place}: {error.message}", **error.data) from None
    check_json(depth < MAX_NESTING_DEPTH, place, f"is nested deeper than {MAX_NESTING_DEPTH} levels")
    check_json(isinstance(obj, dict), place, "is neither a string nor an object")
    match obj.get("type"):
        case "struct":
            return _struct_from_json(obj, place, depth)
        case "list":
            element = type_from_json(obj.get("element"), f"{place}.element", depth + 1)
            required = _get(obj, "element-required", bool, place)
            return _made(place, ListType, _get(obj, "element-id", int, place), element, required)
        case "map":
            key = type_from_json(obj.get("key"), f"{place}.key", depth + 1)
            value = type_from_json(obj.get("value"), f"{place}.value", depth + 1)
            key_id, value_id = _get(obj, "key-id", int, place), _get(obj, "value-id", int, place)
            return _made(place, MapType, key_id, key, value_id, value, _get(obj, "value-required", bool, place))
    raise UnsupportedFeature(f"{place}: unknown type: {obj.get('type')!r:.80}")


def _struct_from_json(obj: dict[str, Any], place: str, depth: int) -> StructType:
    fields = _get(obj, "fields", list, place)
    return _made(place, StructType, *(_field_from_json(field, place, i, depth) for i, field in enumerate(fields)))


def _field_from_json(obj: Any, parent: str, position: int, depth: int) -> NestedField:
    place = f"{parent}.fields[{position}]"
    check_json(isinstance(obj, dict), place, "is not an object")
    name = _get(obj, "name", str, place)
    check_json(len(name) <= MAX_NAME_LENGTH, place, f"'name' has more than {MAX_NAME_LENGTH:,} characters")
    place = f"{parent}.{name[:100]}"
    field_id = _get(obj, "id", int, place)
    required = _get(obj, "required", bool, place)
    doc = _get(obj, "doc", str, place, default=None)
    field_type = type_from_json(obj.get("type"), place, depth + 1)
    initial = _default_from_json(field_type, obj.get("initial-default"), "initial_default", f"{place}.initial-default")
    write = _default_from_json(field_type, obj.get("write-default"), "write_default", f"{place}.write-default")
    return _made(place, NestedField, field_id, name, field_type, required, doc, initial, write)


def _default_from_json(field_type: IcebergType, value: Any, which: str, place: str) -> Any:
    if value is None:
        return None
    try:
        if isinstance(field_type, StructType):
            return _struct_default(field_type, value, which)
        if isinstance(field_type, (TimestampType, TimestampNanoType)) and isinstance(value, str) and "T" not in value:
            # Written before the column was promoted from date.
            return promote(DateType(), field_type, value_from_json(DateType(), value))
        return value_from_json(field_type, value)
    except InvalidArgument as error:
        raise InvalidSchema(f"{place}: {error.message}", **error.data) from None


def _struct_default(field_type: StructType, value: Any, which: str) -> tuple[Any, ...]:
    """The default of a struct: ``()`` for an empty object, else the stored values or the fields' own defaults."""
    if value == {}:
        return ()
    optional = [NestedField(field.field_id, field.name, field.field_type) for field in field_type.fields]
    stored = value_from_json(StructType(*optional), value)
    return tuple(
        own if own is not None else getattr(field, which) for field, own in zip(field_type.fields, stored, strict=True)
    )


def _made(place: str, make: Callable[..., T], *arguments: Any) -> T:
    try:
        return make(*arguments)
    except InvalidSchema as error:
        raise InvalidSchema(f"{place}: {error.message}", **error.data) from None


_REQUIRED: Any = object()


def _get(obj: dict[str, Any], key: str, kind: type, place: str, default: Any = _REQUIRED) -> Any:
    value = obj.get(key)
    if value is None and default is not _REQUIRED:
        return default
    check_json(_is(value, kind), place, f"'{key}' is {'missing' if value is None else 'not of kind ' + kind.__name__}")
    return value


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def check_json(sound: bool, place: str, reason: str) -> None:
    """Raise ``InvalidSchema``, with the place and the reason, for JSON that is not sound."""
    if not sound:
        raise InvalidSchema(f"{place}: {reason}")
