"""A table's columns as Glue shows them. Athena and every other engine go by Iceberg's schema."""

from __future__ import annotations

from typing import Any, Final

from icefield.metadata import TableMetadata
from icefield.types import DecimalType, IcebergType, ListType, MapType, NestedField, StructType

_MOST_NAME: Final = 255
_MOST_COMMENT: Final = 255
_MOST_TYPE: Final = 131_072

_NAMES: Final = {
    "long": "bigint",
    "time": "string",
    "uuid": "string",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_nano",
    "timestamptz_ns": "timestamp_nano",
}
"""The types that Iceberg's Java library writes under other names; every other name is Iceberg's own."""


def columns_of(metadata: TableMetadata, comments: dict[str, str]) -> list[dict[str, Any]]:
    """The columns of the current schema, then those of older schemas, as Iceberg's Java library writes them.

    ``comments`` are the present comments by column, which stay where a field has no documentation.
    """
    found: dict[str, dict[str, Any]] = {}
    current = metadata.schema()
    older = [schema for schema in metadata.schemas if schema.schema_id != current.schema_id]
    for schema in (current, *older):
        for field in schema.fields:
            # Hive and Athena do not tell names of another case apart.
            if field.name.lower() not in found and 0 < len(field.name) <= _MOST_NAME:
                comment = field.doc or comments.get(field.name) or ""
                found[field.name.lower()] = _column(field, comment, is_current=schema is current)
    return [*found.values()]


def _column(field: NestedField, comment: str, *, is_current: bool) -> dict[str, Any]:
    string = glue_type(field.field_type)
    column: dict[str, Any] = {
        "Name": field.name,
        "Type": string if len(string) <= _MOST_TYPE else "binary",
        "Parameters": {
            "iceberg.field.id": str(field.field_id),
            "iceberg.field.optional": str(not field.required).lower(),
            "iceberg.field.current": str(is_current).lower(),
        },
    }
    line = " ".join(comment.split())[:_MOST_COMMENT]  # a comment has one line
    return {**column, "Comment": line} if line else column


def glue_type(iceberg_type: IcebergType) -> str:
    """A type as Iceberg's Java library writes it to Glue."""
    match iceberg_type:
        case DecimalType():
            return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
        case StructType():
            parts = (f"{field.name}:{glue_type(field.field_type)}" for field in iceberg_type.fields)
            return f"struct<{','.join(parts)}>"
        case ListType():
            return f"array<{glue_type(iceberg_type.element.field_type)}>"
        case MapType():
            return f"map<{glue_type(iceberg_type.key.field_type)},{glue_type(iceberg_type.value.field_type)}>"
    name = str(iceberg_type)
    if name.startswith(("fixed", "geometry", "geography")):
        return "binary" if name.startswith("fixed") else name.partition("(")[0]
    return _NAMES.get(name, name)
