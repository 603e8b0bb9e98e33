"""The tree of types of an ORC file, and the Arrow schema that it is read as.

Field ids come from the type attribute ``iceberg.id``. Older files hold them in the user metadata
``iceberg.column.id``: the ids of all types but the root, in pre-order, separated by commas. Without either there are
no ids, and a name mapping may give them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import pyarrow as pa
from icefield.errors import UnsupportedFeature
from icefield.toolkit import FIELD_ID_KEY, VARIANT_ARROW

from icefield_orc.tail import DEEPEST, TypeEntry

ID, REQUIRED, LONG_TYPE, TIMESTAMP_UNIT = (
    "iceberg.id",
    "iceberg.required",
    "iceberg.long-type",
    "iceberg.timestamp-unit",
)
BINARY_TYPE, LENGTH, STRUCT_TYPE = "iceberg.binary-type", "iceberg.length", "iceberg.struct-type"
COLUMN_IDS = "iceberg.column.id"
_MOST_TYPES = 100_000
_LONGEST_FIXED = 1 << 24
_LONGEST_PATHS = 1 << 28
_HIGHEST_ID = 2**31 - 1


class TypeKind(IntEnum):
    """The kinds of types, numbered as in the footer."""

    BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, TIMESTAMP = range(10)
    LIST, MAP, STRUCT, UNION, DECIMAL, DATE, VARCHAR, CHAR, TIMESTAMP_INSTANT = range(10, 19)


_ARITY = {TypeKind.LIST: 1, TypeKind.MAP: 2}
TIMESTAMPS = frozenset({TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_INSTANT})
_INTEGERS = frozenset({TypeKind.BYTE, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG})


@dataclass(frozen=True, slots=True)
class Node:
    """A type in the tree: ``column`` is its number in pre-order, the root's is 0.

    ``last`` is the highest number below it, or its own number for a leaf. ``path`` is pyarrow's name for it: the names
    of the struct fields from the root on, with dots between them. Lists and maps add nothing, so an element has the
    path of its list. ``data_type`` is the Arrow type that it is read as. ``opaque`` is true for a struct that is read
    as one value: a variant, or a timestamp with an offset next to it.
    """

    column: int
    name: str
    kind: TypeKind
    children: tuple[Node, ...]
    field_id: int | None
    required: bool
    data_type: pa.DataType
    path: str
    last: int
    opaque: bool = False

    def arrow_field(self) -> pa.Field:
        metadata = None if self.field_id is None else {FIELD_ID_KEY: str(self.field_id).encode()}
        return pa.field(self.name, self.data_type, nullable=not self.required, metadata=metadata)

    def below(self) -> Iterator[Node]:
        """This node and all below it, in pre-order."""
        yield self
        for child in self.children:
            yield from child.below()


def read_tree(types: Sequence[TypeEntry], metadata: Mapping[str, bytes]) -> Node:
    """The tree of types, with field ids and Arrow types.

    Raises ``ValueError`` for types that are no tree, ``UnsupportedFeature`` for a type that no table can have.
    """
    if not types or len(types) > _MOST_TYPES:
        raise ValueError(f"a list of {len(types)} types")
    if types[0].kind != TypeKind.STRUCT:
        raise UnsupportedFeature("the rows of this ORC file are no structs")
    builder = _TypeTreeBuilder(types, _ids(types, metadata))
    root = builder.node(0, "", "", 0)
    if builder.next_column != len(types):
        raise ValueError("types that no column has")
    return root


def _ids(types: Sequence[TypeEntry], metadata: Mapping[str, bytes]) -> list[int | None]:
    if any(ID in entry.attributes for entry in types):
        return [_id(entry.attributes[ID]) if ID in entry.attributes else None for entry in types]
    if COLUMN_IDS not in metadata:
        return [None] * len(types)
    listed: list[int | None] = [_id(part) for part in metadata[COLUMN_IDS].decode("ascii", "replace").split(",")]
    if len(listed) == len(types) - 1:
        return [None, *listed]
    return _spread(types, listed)


def _spread(types: Sequence[TypeEntry], listed: list[int | None]) -> list[int | None]:
    """Assign the listed ids to types; the list has no ids for the two parts of a timestamp with an offset."""
    parts = {child for entry in types if _with_offset(types, entry) for child in entry.children}
    left = iter(listed)
    spread = [None, *(None if column in parts else next(left, -1) for column in range(1, len(types)))]
    if -1 in spread or next(left, None) is not None:
        raise ValueError(f"'{COLUMN_IDS}' lists {len(listed)} ids for {len(types) - 1} types")
    return spread


def _id(string: str) -> int:
    number = int(string)
    if not 0 <= number <= _HIGHEST_ID:
        raise ValueError(f"{string[:20]} is no field id")
    return number


def _with_offset(types: Sequence[TypeEntry], entry: TypeEntry) -> bool:
    """Whether a struct has the form that a timestamp with an offset once had."""
    if entry.kind != TypeKind.STRUCT or entry.names != ("ts", "offset") or len(entry.children) != 2:
        return False
    if not all(child < len(types) for child in entry.children):
        return False
    timestamp, offset = (types[child].kind for child in entry.children)
    return timestamp in TIMESTAMPS and offset in _INTEGERS


class _TypeTreeBuilder:
    """Builds the tree and checks it: each type has one parent, types are in pre-order, and none is too deep."""

    def __init__(self, types: Sequence[TypeEntry], ids: list[int | None]) -> None:
        self._types = types
        self._ids = ids
        self._path_length = 0
        self.next_column = 0

    def node(self, column: int, name: str, path: str, depth: int) -> Node:
        if column != self.next_column or column >= len(self._types) or depth > DEEPEST:
            raise ValueError("its types are no tree, or one that is too deep")
        self.next_column += 1
        # A name stands in the paths of all types below it.
        self._path_length += len(path)
        if self._path_length > _LONGEST_PATHS:
            raise UnsupportedFeature("the names of this ORC file's columns are too long")
        entry = self._types[column]
        if entry.kind not in TypeKind._value2member_map_:
            raise UnsupportedFeature(f"column '{name}' is of an unknown ORC type, number {entry.kind}")
        kind = TypeKind(entry.kind)
        children = self._children(kind, entry, path, depth)
        field_id, required = self._ids[column], entry.attributes.get(REQUIRED, "").lower() == "true"
        node = Node(column, name, kind, children, field_id, required, pa.null(), path, self.next_column - 1)
        return self._typed(node, entry)

    def _children(self, kind: TypeKind, entry: TypeEntry, path: str, depth: int) -> tuple[Node, ...]:
        names = {TypeKind.LIST: ("element",), TypeKind.MAP: ("key", "value"), TypeKind.STRUCT: entry.names}.get(
            kind, ()
        )
        if kind != TypeKind.UNION and len(entry.children) != len(names):
            raise ValueError("a type with more or fewer children than it can have")
        if kind == TypeKind.UNION:
            names = tuple(str(number) for number in range(len(entry.children)))
        within = f"{path}." if depth else ""
        return tuple(
            self.node(child, name, within + name if kind == TypeKind.STRUCT else path, depth + 1)
            for child, name in zip(entry.children, names, strict=True)
        )

    def _typed(self, node: Node, entry: TypeEntry) -> Node:
        if node.kind == TypeKind.STRUCT and node.column:
            if entry.attributes.get(STRUCT_TYPE, "").upper() == "VARIANT" and entry.names == ("metadata", "value"):
                return replace(node, data_type=VARIANT_ARROW, opaque=True)
            inner = [child.field_id for child in node.children]
            if node.field_id is not None and inner == [None, None] and _with_offset(self._types, entry):
                return replace(node, data_type=pa.timestamp("us", "UTC"), opaque=True)
        return replace(node, data_type=_arrow_type(node, entry))


def _arrow_type(node: Node, entry: TypeEntry) -> pa.DataType:
    kind, attributes = node.kind, entry.attributes
    if kind == TypeKind.STRUCT:
        return pa.struct([child.arrow_field() for child in node.children])
    if kind == TypeKind.LIST:
        return pa.list_(node.children[0].arrow_field())
    if kind == TypeKind.MAP:
        key, value = node.children
        return pa.map_(key.arrow_field().with_nullable(False), value.arrow_field())
    if kind in _INTEGERS:
        if attributes.get(LONG_TYPE, "").upper() == "TIME":
            return pa.time64("us")
        return pa.int64() if kind == TypeKind.LONG else pa.int32()
    if kind in TIMESTAMPS:
        unit = "ns" if attributes.get(TIMESTAMP_UNIT, "").upper() == "NANOS" else "us"
        return pa.timestamp(unit, "UTC" if kind == TypeKind.TIMESTAMP_INSTANT else None)
    if kind == TypeKind.BINARY:
        return _binary_type(attributes)
    if kind == TypeKind.DECIMAL:
        # Old files state no precision: their decimals have any number of digits, at most six of them after the point.
        return pa.decimal128(entry.precision, entry.scale) if entry.precision else pa.decimal128(38, 6)
    if kind == TypeKind.UNION:
        raise UnsupportedFeature(f"column '{node.name}' is a union, which no table can have")
    return _PLAIN[kind]


def _binary_type(attributes: Mapping[str, str]) -> pa.DataType:
    meaning = attributes.get(BINARY_TYPE, "").upper()
    if meaning == "UUID":
        return pa.binary(16)
    if meaning == "FIXED":
        length = int(attributes.get(LENGTH, ""))
        if not 0 <= length <= _LONGEST_FIXED:
            raise ValueError(f"a fixed type of {length} bytes")
        return pa.binary(length)
    return pa.binary()


_PLAIN = {
    TypeKind.BOOLEAN: pa.bool_(),
    TypeKind.FLOAT: pa.float32(),
    TypeKind.DOUBLE: pa.float64(),
    TypeKind.STRING: pa.string(),
    TypeKind.VARCHAR: pa.string(),
    TypeKind.CHAR: pa.string(),
    TypeKind.DATE: pa.date32(),
}
