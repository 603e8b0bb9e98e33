"""A table's columns as Hive stores them. Hive's reader of Iceberg tables, Spark and Trino go by Iceberg's schema."""

from __future__ import annotations

from typing import Final

from icefield import Schema
from icefield.errors import UnsupportedFeature
from icefield.types import DecimalType, IcebergType, ListType, MapType, StructType

from icefield_hive.structs import Record

_MOST_COMMENT: Final = 256
_MOST_TYPE: Final = 32_000  # of Derby's 32,672; the other databases hold more

_NAMES: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with local time zone",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp with local time zone",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "unknown": "void",
}
_WITHOUT_ZONES: Final = {"timestamptz": "timestamp", "timestamptz_ns": "timestamp"}


def columns_of(schema: Schema, *, hive2_compatible: bool) -> list[Record]:
    """Hive's columns of a schema. Raises ``UnsupportedFeature`` for names that Hive does not distinguish."""
    seen: dict[str, str] = {}
    for field in schema.fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise UnsupportedFeature(
                f"columns '{other}' and '{field.name}' differ by case only, which the Hive Metastore cannot hold"
            )
    return [
        {
            "name": field.name,
            "type": _column_type(field.field_type, hive2_compatible),
            "comment": field.doc[:_MOST_COMMENT] if field.doc else None,
        }
        for field in schema.fields
    ]


def hive_type(iceberg_type: IcebergType, *, hive2_compatible: bool = False) -> str:
    """A type as Hive writes it. Types that Hive does not have (fixed, variant, geo) are binary."""
    match iceberg_type:
        case DecimalType():
            return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
        case StructType():
            parts = (
                f"{f.name}:{hive_type(f.field_type, hive2_compatible=hive2_compatible)}" for f in iceberg_type.fields
            )
            return f"struct<{','.join(parts)}>"
        case ListType():
            return f"array<{hive_type(iceberg_type.element.field_type, hive2_compatible=hive2_compatible)}>"
        case MapType():
            key, value = (
                hive_type(part.field_type, hive2_compatible=hive2_compatible)
                for part in (iceberg_type.key, iceberg_type.value)
            )
            return f"map<{key},{value}>"
    name = str(iceberg_type)
    if hive2_compatible and name in _WITHOUT_ZONES:
        return _WITHOUT_ZONES[name]
    return _NAMES.get(name, "binary")


def _column_type(iceberg_type: IcebergType, hive2_compatible: bool) -> str:
    string = hive_type(iceberg_type, hive2_compatible=hive2_compatible)
    return string if len(string) <= _MOST_TYPE else "binary"
