"""The layout of files with a schema, computed once for all files of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pyarrow as pa
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import child_fields, field_id
from icefield.types import (
    DEFAULT_CRS,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
    VariantType,
)

from icefield_parquet.annotations import GEOGRAPHY, GEOMETRY, MICROS, TIME, UUID, VARIANT, logical_type
from icefield_parquet.schema import leaf_paths, storage_schema, without_extensions
from icefield_parquet.thrift import BINARY, BYTE, FALSE, I32, STRUCT, Fields, write_int, write_struct, write_varint
from icefield_parquet.variants.shredded_types import ShreddedTypes

_EDGES: Final = ("spherical", "vincenty", "thomas", "andoyer", "karney")
_VARIANT_VERSION: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The layout of a file, derived from its schema and shredded types.

    ``ids`` and ``places`` are the field ids and paths of the leaves in the file, in order: a variant's leaves have its
    id. ``paths`` are the places of leaves with statistics, by full name; ``all_counted`` says that all leaves have
    them. ``shredded`` is the full name of a leaf's variant, by place, where the statistics of the leaf are meaningful.
    ``lacks_annotations``: pyarrow may leave annotations out, among them ``logical_types`` (by field id).
    ``footers`` caches the beginning of a footer and its completed form, once a file was written.
    """

    schema: Schema
    arrow: pa.Schema
    storage: pa.Schema
    ids: tuple[int | None, ...]
    places: tuple[str, ...]
    paths: Mapping[str, str]
    all_counted: bool
    logical_types: Mapping[int, bytes]
    lacks_annotations: bool
    shredded: Mapping[str, str]
    footers: list[tuple[bytes, bytes]] = field(default_factory=list, compare=False)


@lru_cache(maxsize=64)
def layout_of(schema: Schema, shredded: ShreddedTypes = ()) -> FileLayout:
    """Return the layout of files with a schema and shredded variants."""
    types = dict(shredded)
    storage = storage_schema(schema, types)
    stored = without_extensions(storage)
    paths: dict[str, str] = {}
    parts: dict[str, str] = {}
    _collect_paths(schema.fields, "", "", paths)
    _collect_parts(schema.fields, "", types, parts)
    places = tuple(leaf_paths(stored))
    logical_types: dict[int, bytes] = {}
    has_times = _collect_annotations(schema.fields, logical_types)
    return FileLayout(
        schema,
        schema_to_arrow(schema),
        storage,
        tuple(_leaf_ids(stored, None)),
        places,
        paths,
        set(places) <= set(paths.values()),
        logical_types,
        has_times or bool(logical_types),
        parts,
    )


def _leaf_ids(columns: Iterable[pa.Field], above: int | None) -> Iterator[int | None]:
    for column in columns:
        own = field_id(column)
        id_ = above if own is None else own
        if pa.types.is_nested(column.type):
            yield from _leaf_ids(child_fields(column.type), id_)
        else:
            yield id_


def _collect_paths(fields: tuple[NestedField, ...], name: str, path: str, paths: dict[str, str]) -> None:
    for each in fields:
        full, place = name + each.name, path + each.name
        kind = each.field_type
        if isinstance(kind, StructType):
            _collect_paths(kind.fields, full + ".", place + ".", paths)
        elif isinstance(kind, ListType):
            _collect_paths((kind.element,), full + ".", place + ".list.", paths)
        elif isinstance(kind, MapType):
            _collect_paths((kind.key, kind.value), full + ".", place + ".key_value.", paths)
        elif _has_statistics(kind):
            paths[full] = place


def _collect_parts(
    fields: tuple[NestedField, ...], name: str, types: Mapping[int, pa.DataType], parts: dict[str, str]
) -> None:
    """Collect the leaves of shredded variants: readers prune by ``typed_value`` where ``value`` is null."""
    for each in fields:
        full = name + each.name
        if isinstance(each.field_type, StructType):
            _collect_parts(each.field_type.fields, full + ".", types, parts)
        elif each.field_id in types:
            stored = [part for part in without_extensions(pa.schema(types[each.field_id])) if part.name != "metadata"]
            parts.update(dict.fromkeys(leaf_paths(stored, full + "."), full))


def _has_statistics(kind: IcebergType) -> bool:
    """Whether pyarrow's statistics of a leaf are meaningful: not for variants and non-spherical geographies."""
    return not isinstance(kind, VariantType) and not (isinstance(kind, GeographyType) and kind.algorithm != _EDGES[0])


def _collect_annotations(fields: tuple[NestedField, ...], found: dict[int, bytes]) -> bool:
    """Note the logical types that a release of pyarrow leaves out or gets wrong. Returns whether there are times."""
    has_times = False
    for each in fields:
        kind = each.field_type
        has_times |= isinstance(kind, TimeType | TimestampType | TimestamptzType)
        if isinstance(kind, StructType | ListType | MapType):
            has_times |= _collect_annotations(kind.children, found)
        annotation = _annotation(kind)
        if annotation is not None:
            found[each.field_id] = annotation
    return has_times


def _annotation(kind: IcebergType) -> bytes | None:
    if isinstance(kind, VariantType):
        return logical_type(VARIANT, {1: (BYTE, _VARIANT_VERSION)})
    if isinstance(kind, UUIDType):
        return logical_type(UUID, {})
    if isinstance(kind, TimeType):
        return logical_type(TIME, {1: (FALSE, b""), 2: (STRUCT, write_struct({MICROS: (STRUCT, b"\0")}))})
    if not isinstance(kind, GeometryType | GeographyType):
        return None
    fields: Fields = {}
    if kind.crs != DEFAULT_CRS:
        crs = kind.crs.encode()
        fields[1] = BINARY, write_varint(len(crs)) + crs
    if isinstance(kind, GeometryType):
        return logical_type(GEOMETRY, fields)
    if kind.algorithm != _EDGES[0]:
        fields[2] = I32, write_int(_EDGES.index(kind.algorithm))
    return logical_type(GEOGRAPHY, fields)
