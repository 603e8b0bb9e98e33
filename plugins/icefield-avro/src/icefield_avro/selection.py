"""The projection of a writer's schema for a read request: a tree parallel to the tree of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.toolkit import child_fields, field_id

from icefield_avro.nodes import Array, Field, Map, Node, Optional, Primitive, Record, encoded_entry
from icefield_avro.schema_reading import arrow_type


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A wanted value. ``node`` is never ``Optional``: that wrapper, where there is one, is ``optional``.

    ``type`` is the Arrow type to produce. For a record, ``children`` has an entry for each field of the file, None for
    an unwanted field, and ``order`` holds the file's field indexes in the order of the output. For an array,
    ``children`` is its item, for a map, key and value; ``keys`` limits a map's entries.
    """

    node: Primitive | Record | Array | Map
    optional: Optional | None
    type: pa.DataType
    children: tuple[Selection | None, ...] = ()
    order: tuple[int, ...] = ()
    keys: frozenset[int] | None = None

    def child(self, index: int) -> Selection:
        """The child with that index, which is known to be wanted."""
        child = self.children[index]
        assert child is not None
        return child


def select(record: Record, columns: pa.Schema, map_keys: Mapping[int, frozenset[int]]) -> Selection:
    """The selection for the columns of a request. Raises ``InvalidArgument`` for a column that the file lacks."""
    return _record(record, None, pa.struct(list(columns)), list(columns), map_keys, "")


def _record(
    record: Record,
    optional: Optional | None,
    arrow: pa.DataType,
    wanted: list[pa.Field],
    map_keys: Mapping[int, frozenset[int]],
    path: str,
) -> Selection:
    children: list[Selection | None] = [None] * len(record.fields)
    order = []
    named: dict[str, list[int]] = {}
    by_id: dict[int | None, list[int]] = {}
    for index, held in enumerate(record.fields):
        named.setdefault(held.name, []).append(index)
        by_id.setdefault(held.field_id, []).append(index)
    for field in wanted:
        index = _find(named.get(field.name, []), by_id, field, path)
        if children[index] is not None:
            raise InvalidArgument(f"column '{path}{field.name}' is asked for twice")
        children[index] = _child(record.fields[index], field, map_keys, f"{path}{field.name}")
        order.append(index)
    return Selection(record, optional, arrow, tuple(children), tuple(order))


def _find(named: list[int], by_id: Mapping[int | None, list[int]], wanted: pa.Field, path: str) -> int:
    """The index of the wanted field: by name, and by id if several fields have the name."""
    if len(named) == 1:
        return named[0]
    wanted_id = field_id(wanted)
    found = [] if wanted_id is None else by_id.get(wanted_id, [])
    if len(found) != 1:
        raise InvalidArgument(f"the file has no column '{path}{wanted.name}'")
    return found[0]


def _child(field: Field, wanted: pa.Field, map_keys: Mapping[int, frozenset[int]], path: str) -> Selection:
    optional, node = _split(field.node)
    inner = child_fields(wanted.type)
    below = f"{path}."
    if isinstance(node, Record) and pa.types.is_struct(wanted.type):
        return _record(node, optional, wanted.type, inner, map_keys, below)
    if isinstance(node, Array) and pa.types.is_list(wanted.type):
        return Selection(node, optional, wanted.type, (_child(node.item, inner[0], map_keys, below + "element"),))
    if pa.types.is_binary(wanted.type) and encoded_entry(node) is not None:
        return Selection(node, optional, wanted.type)
    if isinstance(node, Map) and pa.types.is_map(wanted.type):
        key = _child(node.key, inner[0], map_keys, below + "key")
        value = _child(node.value, inner[1], map_keys, below + "value")
        wanted_id = field_id(wanted)
        keys = map_keys.get(wanted_id) if wanted_id is not None and pa.types.is_integer(inner[0].type) else None
        return Selection(node, optional, wanted.type, (key, value), keys=keys)
    if not isinstance(node, Primitive) or not node.arrow.equals(wanted.type):
        raise InvalidArgument(f"column '{path}' is {arrow_type(node)} in the file, not {wanted.type}")
    return Selection(node, optional, wanted.type)


def _split(node: Node) -> tuple[Optional | None, Primitive | Record | Array | Map]:
    if not isinstance(node, Optional):
        return None, node
    inner = node.inner
    assert not isinstance(inner, Optional)  # the parser refuses a union inside a union
    return node, inner
