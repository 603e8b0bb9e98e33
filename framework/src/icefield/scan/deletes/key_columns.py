"""The columns by which equality deletes find rows: where they are in a schema, and those that were dropped since.

Spec: "Equality Delete Files": a column that was dropped still counts, one that was added later reads as its default or
as null in older files, and a promoted one is compared as what it was promoted to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

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
    unknown = next((id_ for id_ in missing if id_ not in dropped), None)
    if unknown is not None:
        raise InvalidMetadata(f"rows are deleted by the values of field {unknown}, which no schema of the table has")
    return Schema(*_grafted(schema.fields, [dropped[id_] for id_ in missing])) if missing else schema


def columns_of(schema: Schema, rows: pa.RecordBatch, ids: Sequence[int]) -> list[pa.Array]:
    """Columns of rows under a schema, at any depth below structs; null where a struct around them is."""
    found = dict(_found(schema.fields, rows.columns, frozenset(ids)))
    return [found[id_] for id_ in ids]


def _found(
    fields: Sequence[NestedField], columns: Sequence[pa.Array], ids: frozenset[int]
) -> Iterator[tuple[int, pa.Array]]:
    for field, column in zip(fields, columns, strict=False):
        if field.field_id in ids:
            yield field.field_id, column
        if isinstance(field.field_type, StructType) and not ids.isdisjoint(ids_in(field)):
            yield from _below(field.field_type.fields, column, ids)


def _below(
    fields: Sequence[NestedField], struct: pa.StructArray, ids: frozenset[int]
) -> Iterator[tuple[int, pa.Array]]:
    places = [place for place, field in enumerate(fields) if not ids.isdisjoint(ids_in(field))]
    children = [struct.field(place) for place in places]
    if struct.null_count:
        # All children at once: each operation on a struct takes time for every field of it.
        names = list(map(str, places))
        children = pa.StructArray.from_arrays(children, names, mask=struct.is_null()).flatten()
    yield from _found([fields[place] for place in places], children, ids)


def _schema_id(schema: Schema) -> int:
    return schema.schema_id


def _grafted(fields: Sequence[NestedField], added: Sequence[NestedField]) -> list[NestedField]:
    """Fields with those of others that they lack, which get names that nobody has and may be null."""
    made = list(fields)
    places = {field.field_id: place for place, field in enumerate(fields)}
    for field in added:
        place = places.get(field.field_id)
        if place is None:
            places[field.field_id] = len(made)
            made.append(replace(field, name=f"{field.name} (dropped {field.field_id})", required=False))
            continue
        here = made[place]
        if isinstance(here.field_type, StructType) and isinstance(field.field_type, StructType):
            inside = StructType(*_grafted(here.field_type.fields, field.field_type.fields))
            made[place] = replace(here, field_type=inside)
    return made
