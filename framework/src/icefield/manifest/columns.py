"""The Arrow layout of manifest entries: flat columns by field id, independent of a file's names, order and nesting.

The children of ``data_file`` are on one level with the fields of the entry, since their ids do not overlap. A column
that a file lacks is absent here, too: ``ManifestEntries`` fills in nulls or the default on access.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base.limits import MAX_LOCATION_LENGTH
from icefield.errors import InvalidMetadata
from icefield.manifest import schemas as f
from icefield.manifest.statistics import check_map
from icefield.types.arrow.pieces import joined
from icefield.types.arrow.types import field_id

MAP_TYPES: Final[Mapping[int, pa.DataType]] = f.arrow_types(f.DATA_FILE_FIELDS, maps=True)
"""The statistics maps, which are read only on request."""

COLUMN_TYPES: Final[Mapping[int, pa.DataType]] = f.arrow_types((*f.ENTRY_FIELDS, *f.DATA_FILE_FIELDS))
"""Every column of fixed type; the partition (102) is typed by its spec."""

PLAN_COLUMNS: Final = frozenset(COLUMN_TYPES) | {f.PARTITION}
"""All that a plan needs: everything but the statistics."""

ALL_COLUMNS: Final = PLAN_COLUMNS | frozenset(MAP_TYPES)

NAMES: Final[Mapping[int, str]] = {rule.field_id: rule.name for rule in (*f.ENTRY_FIELDS, *f.DATA_FILE_FIELDS)}

_REQUIRED: Final = frozenset(
    rule.field_id
    for rule in (*f.ENTRY_FIELDS, *f.DATA_FILE_FIELDS)
    if rule.reader_rule == "default-or-error" and rule.read_default is None
)


def select_fields(schema: pa.Schema, wanted: Iterable[int], location: str, *, encoded: bool = False) -> pa.Schema:
    """The part of a manifest's own schema that holds the wanted columns. ``encoded`` asks for the bytes of maps.

    Raises ``InvalidMetadata`` when a column is missing that every version requires, or when statistics are no maps.
    """
    ids = frozenset(wanted)
    chosen: list[pa.Field] = []
    found: set[int] = set()
    for field in schema:
        number = identify(field, _ENTRY_IDS)
        if number == f.DATA_FILE:
            if not pa.types.is_struct(field.type):
                raise InvalidMetadata(f"{location}: data_file is {field.type}, not a struct", location=location)
            children = {child: identify(child, DATA_FILE_IDS) for child in field.type}
            found.update(children.values())
            if kept := [
                _requested(child, number, encoded, location) for child, number in children.items() if number in ids
            ]:
                chosen.append(field.with_type(pa.struct(kept)))
        elif number in ids:
            chosen.append(field)
            found.add(number)
    for number in sorted((ids & _REQUIRED) - found - {f.DATA_FILE, f.PARTITION}):
        raise InvalidMetadata(f"{location} has no field {NAMES[number]} ({number})", location=location)
    return pa.schema(chosen)


def _requested(field: pa.Field, number: int, encoded: bool, location: str) -> pa.Field:
    if number not in MAP_TYPES:
        return field
    check_map(field.type, MAP_TYPES[number], NAMES[number], location)
    return field.with_type(pa.binary()) if encoded else field


_FEW_ROWS: Final = 64
"""The average number of rows up to which batches are copied together."""


def flatten(batches: Sequence[pa.RecordBatch], location: str) -> dict[int, pa.Array]:
    """The columns of the batches by field id, the children of ``data_file`` next to the fields of the entry.

    Columns keep the types of the file. Raises ``InvalidMetadata`` for an entry without a data file.
    """
    if len(batches) > 1 and sum(map(len, batches)) < _FEW_ROWS * len(batches):
        # To copy the few rows of many small manifests takes less time than to compare their columns.
        batches = [pa.concat_batches(batches)]
    parts: dict[int, list[pa.Array]] = {}
    for batch in batches:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            number = identify(field, _ENTRY_IDS)
            if number != f.DATA_FILE:
                parts.setdefault(number, []).append(column)
                continue
            if column.null_count:
                raise InvalidMetadata(f"{location} has an entry without a data file", location=location)
            for position, child in enumerate(field.type):
                parts.setdefault(identify(child, DATA_FILE_IDS), []).append(column.field(position))
    return {number: joined(arrays) for number, arrays in parts.items()}


def identify(field: pa.Field, by_name: Mapping[str, int]) -> int:
    """The id of a field: its own id, else the id for its name, else -1."""
    number = field_id(field)
    return by_name.get(field.name, -1) if number is None else number


def conform(column: pa.Array, target: pa.DataType, what: str, location: str) -> pa.Array:
    """Cast a column to its type in the current format.

    Older files hold narrower types (a promoted source column), plain integers for dates, or differing names inside
    lists. Raises ``InvalidMetadata`` for any other difference.
    """
    if column.type == target:
        return column
    if not _convertible(column.type, target):
        raise InvalidMetadata(f"{location}: {what} has type {column.type}, not {target}", location=location)
    try:
        if pa.types.is_temporal(target) and pa.types.is_integer(column.type):
            return column.cast(pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidMetadata(f"{location}: {what} does not hold {target}: {error}", location=location) from error


def check_locations(column: pa.Array, what: str, location: str) -> None:
    """Refuse a string column with a value that is longer than any location, before anything is made of the values.

    An empty path is refused as well, because it names no file. Raises ``InvalidMetadata`` that names the file and the
    field.
    """
    if len(column) == 0 or column.type != pa.string():
        return
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
    if what.endswith("_path") and not column.null_count and not np.diff(offsets).all():
        raise InvalidMetadata(f"{location}: {what} is empty, and names no file", location=location)
    if int(offsets[-1]) - int(offsets[0]) <= MAX_LOCATION_LENGTH:
        return
    longest = int(np.diff(offsets).max())
    if longest > MAX_LOCATION_LENGTH:
        raise InvalidMetadata(
            f"{location}: {what} has {longest:,} bytes, and no location has more than {MAX_LOCATION_LENGTH:,}",
            location=location,
        )


def conform_partition(column: pa.Array, target: pa.StructType, location: str) -> pa.StructArray:
    """The partition tuples under the names and types of the spec; fields are matched by id, else by name.

    A field that the file lacks is null. A field of a type that the table no longer knows keeps the file's type.
    """
    if not pa.types.is_struct(column.type):
        raise InvalidMetadata(f"{location}: partition is {column.type}, not a struct", location=location)
    by_id: dict[int | str, int] = {}
    for position, child in enumerate(column.type):
        number = field_id(child)
        by_id[child.name if number is None else number] = position
    children, fields = [], []
    for field in target:
        position = by_id.get(field_id(field) or -1, by_id.get(field.name, -1))
        if position < 0:
            children.append(pa.nulls(len(column), field.type))
        elif pa.types.is_null(field.type):
            children.append(column.field(position))
        elif pa.types.is_string(field.type) and pa.types.is_primitive(column.field(position).type):
            # Values under an unknown transform may have any type; the partition type has string for them.
            children.append(column.field(position).cast(field.type))
        else:
            what = f"partition field {field.name}"
            children.append(conform(column.field(position), field.type, what, location))
        fields.append(field.with_type(children[-1].type).with_nullable(True))
    return struct_array(children, fields, len(column))


def struct_array(children: Sequence[pa.Array], fields: Sequence[pa.Field], length: int) -> pa.StructArray:
    """A struct array without nulls of its own, for any number of children, none included."""
    if not children:
        return pa.StructArray.from_buffers(pa.struct([]), length, [None], children=[])
    return pa.StructArray.from_arrays(children, fields=list(fields))


def _convertible(source: pa.DataType, target: pa.DataType) -> bool:
    t = pa.types
    if t.is_null(source):
        return True
    if t.is_integer(target):
        return bool(t.is_integer(source) or t.is_date32(source))
    if t.is_temporal(target):
        return bool(t.is_temporal(source) or t.is_integer(source))
    if t.is_floating(target):
        return bool(t.is_floating(source))
    if t.is_decimal(target):
        return bool(t.is_decimal(source) and source.scale == target.scale)
    if t.is_list(target) or t.is_map(target):
        return bool((t.is_list(source) and t.is_list(target)) or (t.is_map(source) and t.is_map(target)))
    if t.is_boolean(target):
        return bool(t.is_boolean(source))
    return _is_bytes(source) and _is_bytes(target)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in tests)


_ENTRY_IDS: Final[Mapping[str, int]] = {rule.name: rule.field_id for rule in f.ENTRY_FIELDS}
DATA_FILE_IDS: Final[Mapping[str, int]] = {rule.name: rule.field_id for rule in f.DATA_FILE_FIELDS}
