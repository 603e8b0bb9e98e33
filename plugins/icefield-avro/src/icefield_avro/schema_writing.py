"""Conversion of a table's schema to the Avro schema that Icefield writes.

Follows Appendix A of the table spec ("Avro"). Nested records, maps and fixed types have the same names as in other
writers (``r2``, ``k117_v118``, ``decimal_9_2``, ``uuid_fixed``); only the ids carry meaning.
"""

from __future__ import annotations

import math
import re
from decimal import Context
from typing import Any, Final

from icefield.errors import UnsupportedFeature
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

from icefield_avro.schema_reading import NAME_KEY

DEFAULT_RECORD_NAME: Final = "table"

_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_EXACT: Final = Context(prec=60)
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_]")


def _time(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


_PLAIN: Final[dict[type[IcebergType], Any]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    GeometryType: "bytes",
    GeographyType: "bytes",
    UnknownType: "null",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: _time("time-micros"),
    TimestampType: _time("timestamp-micros") | {"adjust-to-utc": False},
    TimestamptzType: _time("timestamp-micros") | {"adjust-to-utc": True},
    TimestampNanoType: _time("timestamp-nanos") | {"adjust-to-utc": False},
    TimestamptzNanoType: _time("timestamp-nanos") | {"adjust-to-utc": True},
}


def legal_name(name: str) -> str:
    """A name that Avro allows: any other character becomes ``_x`` and its code in hex, a leading digit gets a ``_``."""
    if _LEGAL.match(name):
        return name
    escaped = _ILLEGAL.sub(lambda match: f"_x{ord(match.group()):X}", name)
    return escaped if _LEGAL.match(escaped) else f"_{escaped}"


def decimal_size(precision: int) -> int:
    """The fewest bytes that hold every unscaled value of that precision, in two's complement."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def avro_schema(schema: Schema, record_name: str = DEFAULT_RECORD_NAME) -> dict[str, Any]:
    """The Avro schema of a table's schema, as a JSON object. Raises ``UnsupportedFeature``."""
    return _Builder().record(schema.fields, legal_name(record_name))


class _Builder:
    """Remembers which named types are defined: a second use consists only of the name."""

    def __init__(self) -> None:
        self.defined: set[str] = set()

    def record(self, fields: tuple[NestedField, ...], name: str) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "record", "name": name, "fields": []}
        self.defined.add(name)
        taken: set[str] = set()
        for field in fields:
            legal = legal_name(field.name)
            while legal in taken:
                legal = f"{legal}_{field.field_id}"
            taken.add(legal)
            out["fields"].append(self._field(field, legal))
        return out

    def _field(self, field: NestedField, name: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": name, "type": self.of(field.field_type, field.field_id)}
        if field.doc is not None:
            out["doc"] = field.doc
        default = _default(field)
        if isinstance(field.field_type, UnknownType):
            out["default"] = None
        elif default is not None:
            # Avro takes a union's default from its first branch.
            out |= {"type": out["type"] if field.required else [out["type"], "null"], "default": default}
        elif not field.required:
            out |= {"type": ["null", out["type"]], "default": None}
        out["field-id"] = field.field_id
        if name != field.name:
            out[NAME_KEY] = field.name
        return out

    def of(self, type_: IcebergType, field_id: int) -> Any:
        """The schema of a type; ``field_id`` is that of the field, element or value that has it."""
        plain = _PLAIN.get(type(type_))
        if plain is not None:
            return plain
        match type_:
            case DecimalType():
                size = decimal_size(type_.precision)
                name = f"decimal_{type_.precision}_{type_.scale}"
                logical = {"logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
                return self._fixed(name, size, logical)
            case UUIDType():
                return self._fixed("uuid_fixed", 16, {"logicalType": "uuid"})
            case FixedType():
                return self._fixed(f"fixed_{type_.length}", type_.length, {})
            case StructType():
                return self.record(type_.fields, self._unused(f"r{field_id}"))
            case ListType():
                items = self._optional(type_.element)
                return {"type": "array", "items": items, "element-id": type_.element_id}
            case MapType():
                return self._map(type_)
            case VariantType():
                parts = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
                name = self._unused(f"r{field_id}")
                return {"type": "record", "name": name, "logicalType": "variant", "fields": parts}
        raise UnsupportedFeature(f"Avro holds no {type_}")

    def _unused(self, name: str) -> str:
        while name in self.defined:
            name += "_"
        self.defined.add(name)
        return name

    def _fixed(self, name: str, size: int, logical: dict[str, Any]) -> Any:
        if name in self.defined:
            return name
        self.defined.add(name)
        return {"type": "fixed", "name": name, "size": size} | logical

    def _optional(self, field: NestedField) -> Any:
        inner = self.of(field.field_type, field.field_id)
        return inner if field.required or inner == "null" else ["null", inner]

    def _map(self, type_: MapType) -> dict[str, Any]:
        ids = {"key-id": type_.key_id, "value-id": type_.value_id}
        if isinstance(type_.key_type, StringType):
            return {"type": "map", "values": self._optional(type_.value)} | ids
        name = self._unused(f"k{type_.key_id}_v{type_.value_id}")
        key = {"name": "key", "type": self.of(type_.key_type, type_.key_id), "field-id": type_.key_id}
        value = {"name": "value", "type": self._optional(type_.value)}
        if not type_.value.required and value["type"] != "null":
            value["default"] = None
        value["field-id"] = type_.value_id
        return {
            "type": "array",
            "items": {"type": "record", "name": name, "fields": [key, value]},
            "logicalType": "map",
        }


def _default(field: NestedField) -> Any:
    """Return the Avro default for the field's initial default; None without one, and for nested types."""
    value = field.initial_default
    if value is None:
        return None
    match field.field_type:
        case DecimalType():
            unscaled = int(value.scaleb(field.field_type.scale, _EXACT))
            size = decimal_size(field.field_type.precision)
            return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
        case UUIDType() | FixedType() | BinaryType():
            return bytes(value).decode("latin-1")
        case BooleanType() | StringType():
            return value
        case FloatType() | DoubleType():
            return float(value) if math.isfinite(value) else None  # JSON has no other
        case StructType() | ListType() | MapType() | VariantType() | GeometryType() | GeographyType() | UnknownType():
            return None
    return int(value)
