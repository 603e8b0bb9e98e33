"""Turning Arrow data of one nested shape into another: the one recursion behind reading and writing.

``Rules`` decide which fields match, which values fill a gap and which primitive types fit: by field id when a file is
read (``icefield.scan.columns.projection``), by name when rows are written (``icefield.writing.conforming``).
Everything is resolved once a schema. For each batch, a tree of functions over whole arrays remains, and no function at
all for a column that has its final form already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefield.errors import IcefieldError
from icefield.types.arrow.nested import as_lists, list_parts, null_array, retype, settled, struct_array, unwrap
from icefield.types.arrow.types import child_fields, is_list_like, list_of, to_arrow_type, unwrapped
from icefield.types.nested import ListType, MapType, NestedField, StructType
from icefield.types.primitive import IcebergType

Convert = Callable[[pa.Array], pa.Array]
"""Converts an array to another type, value by value."""

Fill = Callable[[int], pa.Array]
"""Makes an array of equal values with the given length."""

Path = tuple[str, ...]


class Rules(ABC):
    """The rules for matching and converting two shapes."""

    @abstractmethod
    def match(self, fields: Sequence[NestedField], held: Sequence[pa.Field], path: Path) -> list[int | None]:
        """For each field of a struct, the position of its counterpart in ``held``, or None without a counterpart."""

    @abstractmethod
    def fill(self, field: NestedField, path: Path) -> Fill:
        """The values of a field without counterpart. Raises if the field must have one."""

    @abstractmethod
    def primitive(self, kind: IcebergType, held: pa.DataType, path: Path) -> Convert | None:
        """The conversion from ``held`` to ``kind``; None if they are the same. Raises if there is no conversion."""

    def asked(self, kind: IcebergType, held: pa.DataType, path: Path) -> Shape:
        """The requested form of a primitive, and its conversion to ``kind``."""
        return Shape(held, self.primitive(kind, held, path))

    @abstractmethod
    def mismatch(self, kind: IcebergType, held: pa.DataType, path: Path) -> IcefieldError:
        """The error for two types of different structure."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The plan for reading one type as another: ``held`` is the needed part; ``convert`` is None without conversion."""

    held: pa.DataType
    convert: Convert | None


@dataclass(frozen=True, slots=True)
class Slot:
    """One field of a finished struct: taken from the ``source``-th held field and converted, or filled."""

    field: NestedField
    source: int | None
    convert: Convert | None = None
    fill: Fill | None = None

    def array(self, held: Sequence[pa.Array], rows: int) -> pa.Array:
        if self.source is None:
            assert self.fill is not None
            return self.fill(rows)
        array = held[self.source]
        return array if self.convert is None else self.convert(array)


@dataclass(frozen=True, slots=True)
class StructShape:
    """The plan for a struct: the needed ``held`` fields, in their order, and the slots of the finished struct."""

    held: tuple[pa.Field, ...]
    slots: tuple[Slot, ...]

    @property
    def plain(self) -> bool:
        """Whether each slot takes the held field of its own position unchanged."""
        return len(self.held) == len(self.slots) and all(
            slot.source == position and slot.convert is None for position, slot in enumerate(self.slots)
        )


def resolve_struct(
    fields: Sequence[NestedField], held: Sequence[pa.Field], rules: Rules, path: Path = ()
) -> StructShape:
    """Match the fields of a struct with the fields of the data."""
    matches = rules.match(fields, held, path)
    order = sorted({found for found in matches if found is not None})
    ranks = {found: rank for rank, found in enumerate(order)}
    types: dict[int, pa.DataType] = {}
    slots = []
    for field, found in zip(fields, matches, strict=True):
        below = (*path, field.name)
        if found is None:
            slots.append(Slot(field, None, fill=rules.fill(field, below)))
        else:
            shape = resolve(field.field_type, held[found].type, rules, below)
            types[found] = shape.held
            slots.append(Slot(field, ranks[found], shape.convert))
    return StructShape(tuple(held[found].with_type(types[found]) for found in order), tuple(slots))


def resolve(kind: IcebergType, held: pa.DataType, rules: Rules, path: Path) -> Shape:
    """The conversion from ``held`` to ``kind``, and the part of ``held`` that it needs."""
    if not kind.is_nested:
        return rules.asked(kind, held, path)
    if pa.types.is_null(held):
        return Shape(held, nulls_of(kind))
    stored = held.storage_type if isinstance(held, pa.BaseExtensionType) else unwrapped(held)
    if stored is not held:
        shape = resolve(kind, stored, rules, path)
        if shape.held != stored:
            raise rules.mismatch(kind, held, path)
        return Shape(held, after_unwrap(shape.convert))
    if isinstance(kind, StructType) and pa.types.is_struct(held):
        return _resolve_struct(kind, held, rules, path)
    if isinstance(kind, ListType) and is_list_like(held):
        return _resolve_list(kind, held, rules, path)
    if isinstance(kind, MapType) and (pa.types.is_map(held) or pa.types.is_list(held)):
        return _resolve_map(kind, held, rules, path)
    raise rules.mismatch(kind, held, path)


def after_unwrap(convert: Convert | None) -> Convert:
    """A conversion of arrays that are unwrapped first: see ``unwrap``."""
    return unwrap if convert is None else lambda array: convert(unwrap(array))


def _resolve_struct(kind: StructType, held: pa.DataType, rules: Rules, path: Path) -> Shape:
    shape = resolve_struct(kind.fields, child_fields(held), rules, path)
    target = to_arrow_type(kind)
    kept = shape.held or _carrier(held)
    pruned = pa.struct(list(kept))
    if shape.plain and shape.held:
        return Shape(pruned, _retype(pruned, target))

    converts = any(slot.convert is not None for slot in shape.slots)

    def convert(array: pa.Array) -> pa.Array:
        # A value below a null struct may be invalid for its type, so it must become null before the conversion.
        hidden = converts and array.null_count
        children = array.flatten() if hidden else [array.field(position) for position in range(len(shape.held))]
        made = [slot.array(children, len(array)) for slot in shape.slots]
        return settled(struct_array(target, made, array))

    return Shape(pruned, convert)


def _resolve_list(kind: ListType, held: pa.DataType, rules: Rules, path: Path) -> Shape:
    element = resolve(kind.element_type, held.value_type, rules, (*path, kind.element.name))
    inner = element.convert
    target = to_arrow_type(kind)
    pruned = list_of(held, held.value_field.with_type(element.held))
    if inner is None and pa.types.is_list(held):
        return Shape(pruned, _retype(pruned, target))
    plain = pa.list_(held.value_field.with_type(element.held))

    def convert(array: pa.Array) -> pa.Array:
        lists = array if pa.types.is_list(array.type) else as_lists(array, plain)
        validity, offsets, start, stop = list_parts(lists)
        values = lists.values.slice(start, stop - start)
        values = retype(values, target.value_type) if inner is None else inner(values)
        return pa.Array.from_buffers(target, len(lists), [validity, offsets], lists.null_count, children=[values])

    return Shape(pruned, convert)


def _resolve_map(kind: MapType, held: pa.DataType, rules: Rules, path: Path) -> Shape:
    """Convert a map, or a list of keys: a file without the map's values is read as such a list."""
    target = to_arrow_type(kind)
    has_values = pa.types.is_map(held)
    key_field = held.key_field if has_values else held.value_field
    key = resolve(kind.key_type, key_field.type, rules, (*path, kind.key.name))
    key_field = key_field.with_type(key.held)
    of_key = key.convert or _retype(key.held, target.key_type)
    below = (*path, kind.value.name)
    if has_values:
        value = resolve(kind.value_type, held.item_type, rules, below)
        pruned = pa.map_(key_field, held.item_field.with_type(value.held), keys_sorted=held.keys_sorted)
        if key.convert is None and value.convert is None:
            return Shape(pruned, _retype(pruned, target))
        of_value = value.convert or _retype(value.held, target.item_type)
    else:
        fill = rules.fill(kind.value, below)
        pruned = pa.list_(key_field)

    def convert(array: pa.Array) -> pa.Array:
        validity, offsets, start, stop = list_parts(array)
        keys = (array.keys if has_values else array.values).slice(start, stop - start)
        if has_values:
            values = array.items.slice(start, stop - start)
            values = values if of_value is None else of_value(values)
        else:
            values = fill(len(keys))
        keys = keys if of_key is None else of_key(keys)
        entries = pa.StructArray.from_arrays([keys, values], fields=[target.key_field, target.item_field])
        return pa.Array.from_buffers(target, len(array), [validity, offsets], array.null_count, children=[entries])

    return Shape(pruned, convert)


def _retype(held: pa.DataType, target: pa.DataType) -> Convert | None:
    """A conversion to the names, ids and nullability of ``target``, for arrays of the same layout; copies nothing."""
    if held.equals(target, check_metadata=True):
        return None
    return lambda array: retype(array, target)


def _carrier(held: pa.DataType) -> tuple[pa.Field, ...]:
    """A placeholder leaf of a struct. It records which structs are null when no child is projected."""
    children = child_fields(held)
    if not children:
        return ()
    child = min(children, key=_cost)
    if pa.types.is_struct(child.type):
        child = child.with_type(pa.struct(list(_carrier(child.type))))
    return (child,)


def _cost(field: pa.Field) -> int:
    """The cost of a field as a placeholder: the bits of a value, and more for values without a fixed width."""
    inner = child_fields(field.type)
    if inner:
        return sum(map(_cost, inner)) if not pa.types.is_struct(field.type) else min(map(_cost, inner)) + 1
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 20


def nulls_of(kind: IcebergType) -> Convert:
    """A conversion of an array to nulls of a type, of the same length."""
    target = to_arrow_type(kind)
    return lambda array: null_array(target, len(array))
