"""Schemas to and from Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.schema.schema import Schema
from icefield.types.arrow.types import field_id, from_arrow_fields, has_all_ids, to_arrow_field


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The Arrow schema of data with that schema in memory; ids travel as field metadata."""
    return pa.schema(to_arrow_field(field) for field in schema.fields)


def schema_from_arrow(arrow: pa.Schema, *, schema_id: int = 0) -> Schema:
    """The schema that an Arrow schema stands for.

    Ids come from the fields' metadata if all fields have one. Otherwise fresh ids are assigned from 1: to the columns
    first, then to their nested fields. Raises ``InvalidSchema`` for two columns of one name. Raises
    ``UnsupportedFeature``, with a type to cast to, for an Arrow type that no Iceberg type holds without loss.
    """
    fields = list(arrow)
    whole = all(field_id(field) is not None and has_all_ids(field.type) for field in fields)
    next_id: Callable[[], int] | None = None if whole else itertools.count(1).__next__
    return Schema(*from_arrow_fields(fields, next_id), schema_id=schema_id)


def as_schema(schema: Schema | pa.Schema) -> Schema:
    """The schema, converted if it is Arrow's. Raises ``InvalidArgument`` for any other object."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, pa.Schema):
        return schema_from_arrow(schema)
    kind = type(schema)
    # The message names the module, since other table libraries have schemas too.
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise InvalidArgument(f"a schema is an icefield.Schema or a pyarrow.Schema, not {name}")
