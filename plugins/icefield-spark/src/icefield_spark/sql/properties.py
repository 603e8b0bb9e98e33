"""The properties of a table as Spark shows them, with properties computed from its metadata."""

from __future__ import annotations

from icefield import Schema
from icefield.metadata import TableMetadata
from icefield.partitioning import SortField

from icefield_spark.quoting import spelt
from icefield_spark.transforms import parted

MADE_PROPERTIES = frozenset({"sort-order", "identifier-fields", "current-snapshot-id", "format"})
"""Computed properties: shown, but not settable. ``SHOW CREATE TABLE`` prints them, too."""


def shown_properties(metadata: TableMetadata) -> dict[str, str]:
    """The properties of a table, and its format, version, snapshot, order and key, as in Iceberg's Java runtime."""
    current, schema = metadata.current_snapshot(), metadata.schema()
    order = ", ".join(_sort_key(schema, each) for each in metadata.sort_order().fields)
    keys = ",".join(sorted(schema.find_column_name(each) or "" for each in schema.identifier_field_ids))
    return {
        **metadata.properties,
        **({"sort-order": order} if order else {}),
        **({"identifier-fields": f"[{keys}]"} if keys else {}),
        "format-version": str(metadata.format_version),
        "current-snapshot-id": "none" if current is None else str(current.snapshot_id),
        "format": f"iceberg/{metadata.properties.get('write.format.default', 'parquet')}",
    }


def _sort_key(schema: Schema, field: SortField) -> str:
    """A sort field as Iceberg's Java runtime describes it: the width of a truncation comes last there."""
    source = source_sql(schema, field.source_id, str(field.source_id))
    name, width = parted(field.transform)
    term = f"{name}({width}, {source})" if name == "bucket" else f"{name}({source}, {width})"
    term = source if name == "identity" else term if width else f"{name}s({source})"
    return f"{term} {field.direction.name} {field.null_order.name.replace('_', ' ')}"


def source_sql(schema: Schema, field_id: int, otherwise: str) -> str:
    """A source of a transform as a statement writes it."""
    known = schema.find_column_name(field_id) is not None
    return spelt(*schema.name_path(field_id)) if known else spelt(otherwise)
