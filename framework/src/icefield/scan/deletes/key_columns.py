"""The columns by which equality deletes find rows: where they lie in a schema, and those that were dropped since.

Spec: "Equality Delete Files": a column that was dropped still counts, one that was added later reads as its default or
as null in older files, and a promoted one is compared as what it was promoted to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidMetadata
from icefield.schema import Schema
from icefield.schema.fields import prune
from icefield.types import NestedField, StructType


def with_dropped(schema: Schema, schemas: Mapping[int, Schema], ids: Collection[int]) -> Schema:
    """A table's schema with those of the fields that it has no more, as its latest schemas had them.

    Raises ``InvalidMetadata`` for a field that no schema of the table has.
    """
    fields = list(schema.fields)
    for id_ in sorted(set(ids) - schema.field_ids):
        latest = max((each for each in schemas.values() if id_ in each.field_ids), key=_schema_id, default=None)
        if latest is None:
            raise InvalidMetadata(f"rows are deleted by the values of field {id_}, which no schema of the table has")
        pruned = [found for field in latest.fields if (found := prune(field, frozenset({id_}))) is not None]
        fields = _grafted(fields, pruned)
    return schema if schema.field_ids >= set(ids) else Schema(*fields)


def column_of(schema: Schema, rows: pa.RecordBatch, id_: int) -> pa.Array:
    """A column of rows under a schema, at any depth below structs; null where a struct around it is."""
    steps = _steps(schema.fields, id_)
    column = rows.column(steps[0])
    return column if len(steps) == 1 else pc.struct_field(column, steps[1:])


def _steps(fields: Sequence[NestedField], id_: int) -> list[int]:
    """The places that lead to a field; empty when it is not below structs alone."""
    for place, field in enumerate(fields):
        if field.field_id == id_:
            return [place]
        if isinstance(field.field_type, StructType) and (below := _steps(field.field_type.fields, id_)):
            return [place, *below]
    return []


def _schema_id(schema: Schema) -> int:
    return schema.schema_id


def _grafted(fields: Sequence[NestedField], added: Sequence[NestedField]) -> list[NestedField]:
    """Fields with those of others that they lack, which get names that nobody has and may be null."""
    made = list(fields)
    places = {field.field_id: place for place, field in enumerate(fields)}
    for field in added:
        place = places.get(field.field_id)
        if place is None:
            made.append(replace(field, name=f"{field.name} (dropped {field.field_id})", required=False))
            continue
        here = made[place]
        if isinstance(here.field_type, StructType) and isinstance(field.field_type, StructType):
            inside = StructType(*_grafted(here.field_type.fields, field.field_type.fields))
            made[place] = replace(here, field_type=inside)
    return made
