"""Schemas of Parquet files: the leaves of a file to read, the storage types of a file to write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.toolkit import FIELD_ID_KEY, child_fields, field_id, to_arrow_field
from icefield.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
    UUIDType,
    VariantType,
)

from icefield_parquet.geo import shape_type


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column of a file: its position among the column chunks, and where it is.

    ``repeated`` is true inside a list or a map, where statistics do not speak of rows.
    """

    index: int
    field: pa.Field
    repeated: bool

    @property
    def field_id(self) -> int | None:
        return field_id(self.field)


def leaves(fields: Iterator[pa.Field] | pa.Schema | pa.StructType) -> list[Leaf]:
    """Every leaf in the order of the file's column chunks, which is depth first."""
    found: list[Leaf] = []
    for field in fields:
        _collect(field, False, found)
    return found


def _children(data_type: pa.DataType) -> list[pa.Field]:
    return child_fields(data_type) if data_type.num_fields else []


def leaf_count(data_type: pa.DataType) -> int:
    """How many column chunks hold a type."""
    children = _children(data_type)
    return sum(leaf_count(child.type) for child in children) if children or pa.types.is_struct(data_type) else 1


def _collect(field: pa.Field, repeated: bool, found: list[Leaf]) -> None:
    children = _children(field.type)
    is_struct = pa.types.is_struct(field.type)
    if not children and not is_struct:
        found.append(Leaf(len(found), field, repeated))
    repeated = repeated or not is_struct
    for child in children:
        _collect(child, repeated, found)


def leaf_paths(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Iterate over the paths of leaves in a file with these fields, as pyarrow's writer names columns."""
    for field in fields:
        place = above + field.name
        if pa.types.is_struct(field.type):
            yield from leaf_paths(field.type, place + ".")
        elif pa.types.is_map(field.type):
            yield from leaf_paths(_children(field.type), place + ".key_value.")
        elif _children(field.type):
            yield from leaf_paths(_children(field.type), place + ".list.")
        else:
            yield place


def select_leaves(file_schema: pa.Schema, wanted: pa.Schema) -> list[list[int]]:
    """For each field of ``wanted``, a part of ``file_schema``, the column chunks to read.

    Fields are matched by name among their siblings, never by a dotted path, so a dot in a name has no meaning. If
    several siblings have the name, the sibling with the same id matches. Raises ``InvalidArgument`` for a field that is
    not in the file.
    """
    return _select(list(file_schema), 0, list(wanted))


def _starts(fields: list[pa.Field], first: int = 0) -> list[int]:
    starts = []
    for field in fields:
        starts.append(first)
        first += leaf_count(field.type)
    return starts


def _select(siblings: list[pa.Field], first: int, wanted: list[pa.Field]) -> list[list[int]]:
    """The column chunks to read for each wanted field; ``first`` is the first chunk of the first sibling."""
    starts = _starts(siblings, first)
    return [
        _select_below(siblings[position].type, starts[position], field.type)
        for position, field in zip(counterparts(siblings, wanted), wanted, strict=True)
    ]


def counterparts(siblings: list[pa.Field], wanted: list[pa.Field]) -> list[int]:
    """The position of each wanted field among the siblings: by name, and also by id if several siblings have the name.

    Raises ``InvalidArgument`` for a name that no sibling has.
    """
    first: dict[str, int] = {}
    for position, field in enumerate(siblings):
        first.setdefault(field.name, position)
    exact: dict[tuple[str, int | None], int] = {}
    for position, field in enumerate(siblings) if len(first) < len(siblings) else ():
        exact.setdefault((field.name, field_id(field)), position)
    missing = next((field.name for field in wanted if field.name not in first), None)
    if missing is not None:
        raise InvalidArgument(f"the file has no column '{missing}'")
    if not exact:
        return [first[field.name] for field in wanted]
    return [exact.get((field.name, field_id(field)), first[field.name]) for field in wanted]


def _select_below(held: pa.DataType, first: int, wanted: pa.DataType) -> list[int]:
    children, asked = _children(held), _children(wanted)
    is_struct = pa.types.is_struct(held)
    if not children:
        return [] if is_struct else [first]
    if not is_struct:
        # An element, a key and a value are found by position: their names vary between Parquet files.
        pairs = zip(children, _starts(children, first), asked, strict=True)
        return [index for child, start, want in pairs for index in _select_below(child.type, start, want.type)]
    return [index for indices in _select(children, first, asked) for index in indices]


def storage_schema(schema: Schema, shredded: Mapping[int, pa.DataType] | None = None) -> pa.Schema:
    """The Arrow schema that a file of ``schema`` is written with, with a field id at each level.

    UUIDs and shapes have Arrow's extension types, so that pyarrow writes their annotations. A field of type unknown is
    left out, since it has no values. If nothing else would be left (an element, a key, a value, the only fields of a
    struct), it is kept as a column of nulls. The fields of a variant have no ids. ``shredded`` gives, by field id, the
    types of variants that do not have just two fields.
    """
    return pa.schema(_stored_fields(schema.fields, shredded or {}))


def _stored_fields(fields: tuple[NestedField, ...], shredded: Mapping[int, pa.DataType]) -> list[pa.Field]:
    known = [field for field in fields if not isinstance(field.field_type, UnknownType)]
    return [_stored_field(field, shredded) for field in known or fields]


def _stored_field(field: NestedField, shredded: Mapping[int, pa.DataType]) -> pa.Field:
    return pa.field(
        field.name,
        _stored_type(field.field_type, field, shredded),
        nullable=not field.required,
        metadata={FIELD_ID_KEY: str(field.field_id).encode()},
    )


def _stored_type(kind: IcebergType, field: NestedField, shredded: Mapping[int, pa.DataType]) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct(_stored_fields(kind.fields, shredded))
    if isinstance(kind, ListType):
        return pa.list_(_stored_field(kind.element, shredded))
    if isinstance(kind, MapType):
        return pa.map_(_stored_field(kind.key, shredded), _stored_field(kind.value, shredded))
    if isinstance(kind, VariantType) and field.field_id in shredded:
        return shredded[field.field_id]
    if isinstance(kind, UUIDType):
        return pa.uuid()
    if isinstance(kind, GeometryType | GeographyType):
        return shape_type(kind)
    return to_arrow_field(field).type


def without_extensions(schema: pa.Schema) -> pa.Schema:
    """The schema with storage types in the place of extension types, at every level; metadata stays."""
    return pa.schema([_plain_field(field) for field in schema], schema.metadata)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if not data_type.num_fields:
        return data_type
    kinds = pa.types
    if kinds.is_struct(data_type):
        return pa.struct([_plain_field(child) for child in _children(data_type)])
    if kinds.is_map(data_type):
        return pa.map_(_plain_field(data_type.key_field), _plain_field(data_type.item_field), data_type.keys_sorted)
    if kinds.is_fixed_size_list(data_type):
        return pa.list_(_plain_field(data_type.value_field), data_type.list_size)
    if kinds.is_large_list(data_type):
        return pa.large_list(_plain_field(data_type.value_field))
    if kinds.is_list(data_type):
        return pa.list_(_plain_field(data_type.value_field))
    return data_type
