"""The source columns of partition and sort fields: the allowed columns, their values, and their ids in JSON."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icefield.base import compute as pc
from icefield.base.limits import MAX_NAME_LENGTH
from icefield.errors import InvalidArgument, InvalidMetadata, InvalidSchema
from icefield.partitioning.transforms import Transform, UnknownTransform, parse_transform
from icefield.schema import Schema
from icefield.types import NestedField

_LARGEST_ID: Final = 2**31 - 1


def check_source(source_id: int, transform: Transform, schema: Schema, what: str) -> NestedField:
    """The column of that id, if it may be transformed for partitioning or sorting. Raises ``InvalidSchema``."""
    source = schema.id_to_field.get(source_id)
    if source is None:
        raise InvalidSchema(f"the source of {what} is column {source_id}, which the schema does not have")
    name = schema.find_column_name(source_id)
    if not source.field_type.is_primitive:
        raise InvalidSchema(f"the source of {what} is '{name}' of type {source.field_type}; it must be primitive")
    if schema.is_repeated(source_id):
        raise InvalidSchema(f"the source of {what} is '{name}', which is inside a list or map")
    if not transform.can_transform(source.field_type):
        raise InvalidSchema(f"{what}: transform {transform} does not apply to '{name}' of type {source.field_type}")
    return source


def source_column(schema: Schema, source_id: int, data: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The values of a column that may be nested in structs; null where a struct around it is.

    Raises ``InvalidArgument`` when ``data`` lacks it.
    """
    path = list(schema.accessor_path(source_id))
    position = data.schema.get_field_index(path[0])
    if position < 0:
        raise InvalidArgument(f"the data has no column '{path[0]}'", field_id=source_id)
    column = data.column(position)
    try:
        return pc.struct_field(column, path[1:]) if path[1:] else column
    except (pa.ArrowException, KeyError) as error:
        raise InvalidArgument(f"the data has no column '{'.'.join(path)}': {error}", field_id=source_id) from None


def source_ids_to_json(source_ids: tuple[int, ...]) -> dict[str, Any]:
    """``source-id``, or ``source-ids`` for a transform of several columns (format version 3)."""
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def source_ids_from_json(item: dict[str, Any], what: str) -> tuple[int, ...]:
    """The source ids of a partition or sort field. Raises ``InvalidMetadata``."""
    if "source-ids" not in item:
        return (int_from_json(item, "source-id", what),)
    ids = item["source-ids"]
    if not isinstance(ids, list) or not ids or not all(_is_id(number) for number in ids):
        raise InvalidMetadata(f"{what}: source-ids is not an array of ids")
    return tuple(ids)


def transform_from_json(item: dict[str, Any], source_ids: tuple[int, ...], what: str) -> Transform:
    """The transform of a partition or sort field. Raises ``InvalidMetadata``."""
    string = item.get("transform")
    if not isinstance(string, str):
        raise InvalidMetadata(f"{what} has no transform")
    if len(string) > MAX_NAME_LENGTH:
        raise InvalidMetadata(f"{what} has a transform of more than {MAX_NAME_LENGTH:,} characters")
    if len(source_ids) > 1:
        # A known name means a transform of one column, so it cannot mean this transform.
        return UnknownTransform(string)
    try:
        return parse_transform(string)
    except InvalidArgument as error:
        raise InvalidMetadata(f"{what}: {error}") from None


def int_from_json(item: dict[str, Any], key: str, what: str) -> int:
    """A field that holds an id. Raises ``InvalidMetadata`` when it is missing or no int of 4 bytes."""
    number = item.get(key)
    if not _is_id(number):
        raise InvalidMetadata(f"{what} has no valid {key}: {number!r:.40}")
    return int(number)  # type: ignore[arg-type]


def _is_id(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _LARGEST_ID
