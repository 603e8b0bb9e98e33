"""The columns by which equality deletes find rows: where they are in a schema, and those that were dropped since.

Spec: "Equality Delete Files": a column that was dropped still counts, one that was added later reads as its default or
as null in older files, and a promoted one is compared as what it was promoted to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidMetadata
from icefield.schema import Schema
from icefield.schema.fields import ids_in, prune
from icefield.types import NestedField, StructType


def dropped_fields(schema: Schema, schemas: Iterable[Schema]) -> dict[int, NestedField]:
    """The fields that a schema lacks and others of its table have, by id, as the latest of these had them.

    Each comes with what is around it, and without what is next to it.
    """
    known, found = set(schema.field_ids), dict[int, NestedField]()
    for other in sorted(schemas, key=_schema_id, reverse=True):
        for column in other.fields:
            for id_ in set(ids_in(column)) - known:
                pruned = prune(column, frozenset({id_}))
                if pruned is not None:
                    found[id_] = pruned
        known |= other.field_ids
    return found


def with_dropped(schema: Schema, dropped: Mapping[int, NestedField], ids: Collection[int]) -> Schema:
    """A table's schema with those of the fields that it has no more; ``dropped`` is what ``dropped_fields`` gives.

    Raises ``InvalidMetadata`` for a field that no schema of the table has.
    """
    missing = sorted(set(ids) - schema.field_ids)
    fields: Sequence[NestedField] = schema.fields
    for id_ in missing:
        if id_ not in dropped:
            raise InvalidMetadata(f"rows are deleted by the values of field {id_}, which no schema of the table has")
        fields = _grafted(fields, [dropped[id_]])
    return Schema(*fields) if missing else schema


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
