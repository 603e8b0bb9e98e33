"""Parquet files that no library here would write: any schema, from the string of a Parquet message.

    forge("optional group l (LIST) { repeated int32 element; }", [{"l": {"element": [1, 2]}}, {"l": None}])

A name of the old annotations is a ConvertedType, any other one, or one after an ``@``, a LogicalType; an element may
have both: ``required int32 n (INTEGER(8,true)) (INT_8) = 1``, ``optional group l (@LIST) (LIST) { ... }``.

Rows have the nesting of the message: a group is a dict, a repeated field a list, an absent optional field None. Values
are physical: ints, floats, bytes. Pages are plain and uncompressed; ``statistics`` may claim anything.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parquet_footer import CONVERTED, logical_type
from parquet_message import Node, parse_message, walk
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint


@dataclass
class Leaf:
    """A column: its path, its levels and its values."""

    path: tuple[str, ...]
    node: Node
    max_repetition: int
    max_definition: int
    levels: list[tuple[int, int]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def forge(
    message: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    statistics: Mapping[str, Mapping[str, Any]] | None = None,
    metadata: Mapping[str, str] | None = None,
    rows_claimed: int | None = None,
    ordered: bool = True,
    created_by: str = "forge version 1.0.0",
) -> bytes:
    """The bytes of a file with one row group.

    ``statistics`` by dotted path: ``min_value``, ``max_value`` (bytes) and ``null_count``, as far as given; ``min``
    and ``max`` are the deprecated ones. ``rows_claimed`` lies about the number of rows. Without ``ordered`` the footer
    does not state the order of statistics, like the footers of old writers.
    """
    root = Node("schema", 0, children=parse_message(message))
    leaves = list(_leaves(root.children, (), 0, 0))
    for row in rows:
        _shred_group(root.children, row, 0, 0, iter_leaves(leaves), 0)
    body = bytearray(b"PAR1")
    chunks = [_write_chunk(body, leaf, (statistics or {}).get(".".join(leaf.path), {})) for leaf in leaves]
    claimed = len(rows) if rows_claimed is None else rows_claimed
    row_group = Struct().list(1, STRUCT, chunks).i64(2, len(body)).i64(3, claimed)
    fields = (
        Struct()
        .i32(1, 2)
        .list(2, STRUCT, [_element(node) for node in walk(root)])
        .i64(3, claimed)
        .list(4, STRUCT, [row_group])
        .list(5, STRUCT, [Struct().text(1, key).text(2, value) for key, value in (metadata or {}).items()])
        .text(6, created_by)
    )
    if ordered:
        fields.list(7, STRUCT, [Struct().struct(1, Struct()) for _ in leaves])
    footer = fields.encode()
    return bytes(body + footer + struct.pack("<I", len(footer)) + b"PAR1")


# -- rows into levels


def _leaves(nodes: list[Node], path: tuple[str, ...], repetition: int, definition: int) -> Iterator[Leaf]:
    for node in nodes:
        here = (*path, node.name)
        r, d = repetition + (node.repetition == 2), definition + (node.repetition > 0)
        if node.physical is not None:
            yield Leaf(here, node, r, d)
        else:
            yield from _leaves(node.children, here, r, d)


class iter_leaves:
    """Takes the leaves one after another while the caller walks over the schema."""

    def __init__(self, leaves: list[Leaf]) -> None:
        self.leaves = leaves

    def below(self, node: Node) -> int:
        return sum(each.physical is not None for each in walk(node))


def _shred_group(nodes: list[Node], row: Any, r: int, d: int, leaves: iter_leaves, first: int, depth: int = 0) -> None:
    for node in nodes:
        value = None if row is None else row[node.name]
        _shred(node, value, row is None, r, d, leaves, first, depth)
        first += leaves.below(node)


def _shred(node: Node, value: Any, absent: bool, r: int, d: int, leaves: iter_leaves, first: int, depth: int) -> None:
    if absent:
        _put(node, None, r, d, leaves, first, absent=True)
    elif node.repetition == 0:
        _put_present(node, value, r, d, leaves, first, depth)
    elif node.repetition == 1:
        if value is None:
            _put(node, None, r, d, leaves, first, absent=True)
        else:
            _put_present(node, value, r, d + 1, leaves, first, depth)
    elif not value:
        _put(node, None, r, d, leaves, first, absent=True)
    else:
        for number, item in enumerate(value):
            _put_present(node, item, r if number == 0 else depth + 1, d + 1, leaves, first, depth + 1)


def _put_present(node: Node, value: Any, r: int, d: int, leaves: iter_leaves, first: int, depth: int) -> None:
    if node.physical is not None:
        _put(node, value, r, d, leaves, first, absent=False)
    else:
        _shred_group(node.children, value, r, d, leaves, first, depth)


def _put(node: Node, value: Any, r: int, d: int, leaves: iter_leaves, first: int, *, absent: bool) -> None:
    for leaf in leaves.leaves[first : first + leaves.below(node)]:
        leaf.levels.append((r, d))
        if not absent:
            leaf.values.append(value)


# -- pages


def _write_chunk(body: bytearray, leaf: Leaf, claimed: Mapping[str, Any]) -> Struct:
    data = b""
    if leaf.max_repetition:
        data += _levels([r for r, _ in leaf.levels], leaf.max_repetition)
    if leaf.max_definition:
        data += _levels([d for _, d in leaf.levels], leaf.max_definition)
    data += _plain(leaf.node, leaf.values)
    count = len(leaf.levels)
    header = Struct().i32(1, 0).i32(2, len(data)).i32(3, len(data))
    header.struct(5, Struct().i32(1, count).i32(2, 0).i32(3, 3).i32(4, 3))
    page = header.encode() + data
    start = len(body)
    body += page
    meta = (
        Struct()
        .i32(1, leaf.node.physical or 0)
        .list(2, I32, [0, 3])
        .list(3, BINARY, [name.encode() for name in leaf.path])
        .i32(4, 0)
        .i64(5, count)
        .i64(6, len(page))
        .i64(7, len(page))
        .i64(9, start)
    )
    if claimed:
        meta.struct(12, _statistics(claimed))
    return Struct().i64(2, start).struct(3, meta)


def _statistics(claimed: Mapping[str, Any]) -> Struct:
    found = Struct()
    for number, name in ((1, "max"), (2, "min")):
        if name in claimed:
            found.binary(number, claimed[name])
    if "null_count" in claimed:
        found.i64(3, claimed["null_count"])
    for number, name in ((5, "max_value"), (6, "min_value")):
        if name in claimed:
            found.binary(number, claimed[name])
    return found


def _levels(levels: list[int], greatest: int) -> bytes:
    """Runs of one level each, in the hybrid encoding, after their length."""
    width = (greatest.bit_length() + 7) // 8
    runs = b"".join(varint(1 << 1) + level.to_bytes(width, "little") for level in levels)
    return struct.pack("<I", len(runs)) + runs


def _plain(node: Node, values: list[Any]) -> bytes:
    formats = {1: "<i", 2: "<q", 4: "<f", 5: "<d"}
    if node.physical == 0:
        bits = sum(bool(value) << position for position, value in enumerate(values))
        return bits.to_bytes((len(values) + 7) // 8, "little")
    if node.physical in formats:
        return b"".join(struct.pack(formats[node.physical], value) for value in values)
    if node.physical == 6:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    return b"".join(values)


# -- the schema in the footer


def _element(node: Node) -> Struct:
    element = Struct()
    if node.physical is not None:
        element.i32(1, node.physical)
    if node.length:
        element.i32(2, node.length)
    if node.name != "schema" or node.repetition:
        element.i32(3, node.repetition)
    element.text(4, node.name)
    if node.children:
        element.i32(5, len(node.children))
    _annotate(element, node)
    return element


def _annotate(element: Struct, node: Node) -> None:
    logical = None
    for name, arguments in node.annotations:
        if name.startswith("@") or name not in CONVERTED:
            logical = logical_type(name.lstrip("@"), arguments)
            continue
        element.i32(6, CONVERTED[name])
        if name == "DECIMAL" and arguments:
            element.i32(7, int(arguments[1]) if len(arguments) > 1 else 0).i32(8, int(arguments[0]))
    if node.field_id is not None:
        element.i32(9, node.field_id)
    if logical is not None:
        element.struct(10, logical)
