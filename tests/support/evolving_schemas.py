"""A schema with every kind of nesting, and changes of schemas that begin with it."""

from icefield.schema import Schema
from icefield.schema.evolution import SchemaUpdate
from icefield.types import ListType, MapType, NestedField, StructType

POINT = StructType(NestedField(11, "x", "int"), NestedField(12, "y", "int"))


def example():
    return Schema(
        NestedField(1, "id", "long", required=True, doc="key"),
        NestedField(2, "place", StructType(NestedField(3, "lat", "float"), NestedField(4, "lon", "float"))),
        NestedField(5, "points", ListType(10, POINT)),
        NestedField(6, "tags", MapType(7, "string", 8, StructType(NestedField(9, "since", "date")))),
        identifier_field_ids=[1],
    )


def update(schema=None, **keys):
    schema = example() if schema is None else schema
    return SchemaUpdate(schema, **{"last_column_id": schema.highest_field_id, "format_version": 2, **keys})


def single(kind, **keys):
    return Schema(NestedField(1, "a", kind, **keys))
