"""The equality columns of delete files, in the current schema or dropped since.

Spec: "Equality Delete Files". Dropped columns still apply. In older files, a column that was added later has its
default or null. Promoted columns are compared as their new type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import pyarrow as pa

from icefield.errors import InvalidMetadata
from icefield.schema import Schema
from icefield.schema.fields import ids_in, prune
from icefield.types import NestedField, StructType


def dropped_fields(schema: Schema, schemas: Iterable[Schema]) -> dict[int, NestedField]:
    """The fields by id that a schema lacks, from the latest other schema of the table with the field.

    Each field keeps its enclosing structs, without their other fields.
    """
    known, found = set(schema.field_ids), dict[int, NestedField]()
    for other in sorted(schemas, key=attrgetter("schema_id"), reverse=True):
        for column in other.fields:
            for id_ in set(ids_in(column)) - known:
                pruned = prune(column, frozenset({id_}))
                if pruned is not None:
                    found[id_] = pruned
        known |= other.field_ids
    return found


def with_dropped(schema: Schema, dropped: Mapping[int, NestedField], ids: Collection[int]) -> Schema:
    """A table's schema with the dropped fields among ``ids``; ``dropped`` is the result of ``dropped_fields``.

    Raises ``InvalidMetadata`` for a field that no schema of the table has.
    """
    missing = sorted(set(ids) - schema.field_ids)
    unknown = next((id_ for id_ in missing if id_ not in dropped), None)
    if unknown is not None:
        raise InvalidMetadata(f"rows are deleted by the values of field {unknown}, which no schema of the table has")
    return Schema(*_grafted(schema.fields, [dropped[id_] for id_ in missing])) if missing else schema


def columns_of(schema: Schema, rows: pa.RecordBatch, ids: Sequence[int]) -> list[pa.Array]:
    """Columns of rows under a schema, also inside structs; values are null if an enclosing struct is null."""
    found = dict(_found(schema.fields, rows.columns, frozenset(ids)))
    return [found[id_] for id_ in ids]


def _found(
    fields: Sequence[NestedField], columns: Sequence[pa.Array], ids: frozenset[int]
) -> Iterator[tuple[int, pa.Array]]:
    for field, column in zip(fields, columns, strict=False):
        if field.field_id in ids:
            yield field.field_id, column
        if isinstance(field.field_type, StructType) and not ids.isdisjoint(ids_in(field)):
            below = field.field_type.fields
            places = [place for place, child in enumerate(below) if not ids.isdisjoint(ids_in(child))]
            children = [column.field(place) for place in places]
            if column.null_count:
                # All children at once, because the cost of a struct operation grows with the number of fields.
                names = list(map(str, places))
                children = pa.StructArray.from_arrays(children, names, mask=column.is_null()).flatten()
            yield from _found([below[place] for place in places], children, ids)


def _grafted(fields: Sequence[NestedField], added: Sequence[NestedField]) -> list[NestedField]:
    """Add missing fields to a list of fields. Added fields are optional and have unique names."""
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
