"""A schema with every kind of nesting, changes of schemas that begin with it, and a check of any change."""

from icefield.errors import InvalidSchema
from icefield.schema import Schema
from icefield.schema.evolution import SchemaUpdate
from icefield.types import ListType, MapType, NestedField, StructType, promotion_allowed
from icefield.types.values import promote

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


def check_evolution(before: Schema, after: Schema, *, last_column_id: int, format_version: int) -> None:
    """Check that ``after`` may follow ``before`` as a table's schema, however it was made.

    Raises ``InvalidSchema`` if a field changed its ``initial-default``, its type beyond promotion or its parent
    struct, or if a new field has an id that was assigned before. Spec: Schema Evolution.
    """
    for id_, field in after.id_to_field.items():
        old = before.id_to_field.get(id_)
        name = after.find_column_name(id_)
        if old is None:
            if id_ <= last_column_id:
                raise InvalidSchema(f"new field '{name}' has id {id_}, which was given before", field_id=id_)
            continue
        if before.parent_of(id_) != after.parent_of(id_):
            raise InvalidSchema(f"field '{name}' cannot move into or out of a struct", field_id=id_)
        same_kind = type(old.field_type) is type(field.field_type) and field.field_type.is_nested
        if not same_kind and not promotion_allowed(old.field_type, field.field_type, format_version):
            raise InvalidSchema(
                f"field '{name}' cannot change from {old.field_type} to {field.field_type}", field_id=id_
            )
        if promote(old.field_type, field.field_type, old.initial_default) != field.initial_default:
            raise InvalidSchema(f"the initial default of field '{name}' cannot change", field_id=id_)
