"""Schemas to and from Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.schema.schema import Schema
from icefield.types.arrow.types import (
    child_fields,
    field_id,
    from_arrow_fields,
    has_all_ids,
    unwrapped,
)
from icefield.types.nested import MAX_NESTING_DEPTH


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The Arrow schema of data with that schema in memory; ids travel as field metadata."""
    return schema.to_arrow()


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


def as_schema(schema: Any, format_version: int | None = None) -> Schema:
    """The schema of a ``Schema``, of Arrow's, or of anything that exports one. Raises ``InvalidArgument``.

    With a ``format_version``, Arrow's times become types of that version: below 3, timestamps have microseconds.
    """
    if isinstance(schema, Schema):
        return schema
    if not isinstance(schema, pa.Schema) and hasattr(schema, "__arrow_c_schema__"):
        schema = pa.schema(schema)
    if isinstance(schema, pa.Schema):
        if format_version is not None:
            schema = pa.schema([each.with_type(_with_times(each.type, format_version)) for each in schema])
        return schema_from_arrow(schema)
    kind = type(schema)
    # The message names the module, since other table libraries have schemas too.
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise InvalidArgument(f"a schema is an icefield.Schema or a pyarrow.Schema, not {name}")


def _with_times(kind: pa.DataType, format_version: int, depth: int = 0) -> pa.DataType:
    """The type with microseconds in place of nanoseconds that the format version cannot hold, at any depth."""
    plain = unwrapped(kind)
    if pa.types.is_timestamp(plain) and plain.unit == "ns" and format_version < 3:
        return pa.timestamp("us", plain.tz)
    if pa.types.is_time(plain):
        return pa.time64("us")
    if isinstance(plain, pa.BaseExtensionType) or not (children := child_fields(plain)) or depth > MAX_NESTING_DEPTH:
        return kind
    children = [each.with_type(_with_times(each.type, format_version, depth + 1)) for each in children]
    if pa.types.is_struct(plain):
        return pa.struct(children)
    return pa.map_(*children) if pa.types.is_map(plain) else pa.list_(*children)
