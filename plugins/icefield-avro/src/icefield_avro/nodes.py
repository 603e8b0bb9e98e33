"""A writer's Avro schema as a tree of nodes, the form that every decoder and encoder here works from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import pyarrow as pa

# The encoding of a primitive.
Wire = Literal["null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum"]

FIXED_WIDTH: Final[dict[str, int]] = {"null": 0, "boolean": 1, "float": 4, "double": 8}
VARINTS: Final = frozenset({"int", "long", "enum"})
SIZED: Final = frozenset({"bytes", "string"})


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A primitive value. ``arrow`` is the Arrow type it is read as; ``factor`` converts its unit to microseconds.

    ``name_in_metadata`` is Iceberg's name for a type without an Arrow type of its own (``uuid``).
    """

    wire: Wire
    arrow: pa.DataType
    size: int = 0
    factor: int = 1
    symbols: tuple[str, ...] = ()
    name_in_metadata: str | None = None

    @property
    def width(self) -> int | None:
        """The number of bytes that every value takes, or None where it varies."""
        return self.size if self.wire == "fixed" else FIXED_WIDTH.get(self.wire)


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A union of null with one type, in either order; ``null_branch`` is None for a union with a single type."""

    inner: Node
    null_branch: int | None

    @property
    def value_branch(self) -> int:
        """The index of the branch that holds a value."""
        return 1 if self.null_branch == 0 else 0


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record. ``name`` is the table's name for it, ``avro_name`` the one in the file."""

    name: str
    avro_name: str
    node: Node
    field_id: int | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Fields one after another."""

    fields: tuple[Field, ...]
    is_variant: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Blocks of items, each with its count before it, and a zero at the end."""

    item: Field


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Entries of key and value, laid out as an array of records or as Avro's own map: the bytes are the same."""

    key: Field
    value: Field
    is_avro_map: bool = False


Node = Primitive | Optional | Record | Array | Map


def bare(node: Node) -> Node:
    """The type of a node that may be null."""
    return node.inner if isinstance(node, Optional) else node


def encoded_entry(node: Node) -> tuple[Node, Node] | None:
    """Key and value of a map that can be read as its encoding: of integers to integers or bytes; else None.

    An array of records of two fields has the same encoding as a map.
    """
    if isinstance(node, Map):
        key, value = node.key.node, node.value.node
    elif isinstance(node, Array) and isinstance(node.item.node, Record) and len(node.item.node.fields) == 2:
        key, value = (field.node for field in node.item.node.fields)
    else:
        return None
    inner, held = bare(key), bare(value)
    is_integer = isinstance(inner, Primitive) and inner.wire in ("int", "long")
    is_known = isinstance(held, Primitive) and held.wire in ("int", "long", "bytes", "fixed")
    return (key, value) if is_integer and is_known else None


@lru_cache(maxsize=1024)
def minimum_size(node: Node) -> int:
    """The fewest bytes that a value takes."""
    match node:
        case Primitive():
            width = node.width
            return 1 if width is None else width
        case Optional():
            return 1
        case Record():
            return sum(minimum_size(field.node) for field in node.fields)
        case _:
            return 1


def item_size(node: Array | Map) -> int:
    """The fewest bytes that an item of an array, or an entry of a map, takes."""
    if isinstance(node, Array):
        return minimum_size(node.item.node)
    return minimum_size(node.key.node) + minimum_size(node.value.node)


def reach(node: Node) -> int:
    """The most bytes that a walk over a value can read if every byte is zero, as beyond the end of the data."""
    match node:
        case Primitive():
            width = node.width
            return 1 if width is None else width
        case Optional():
            return 1 + reach(node.inner)
        case Record():
            return sum(reach(field.node) for field in node.fields)
        case Array():
            return 1 + reach(node.item.node)
        case Map():
            return 1 + reach(node.key.node) + reach(node.value.node)
