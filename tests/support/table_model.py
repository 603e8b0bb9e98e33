"""A slow and obvious model of a table: a list of rows for each snapshot, and columns with keys of their own.

A value is kept with the type under which it was written; its value for a reader follows from the columns of the version
that is read. The model uses no files, manifests or metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from icefield.schema import Schema
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType, parse_type
from naive_filters import DAY

_KEYS = count(1)

Cell = tuple[str, Any]
"""The type under which a value was written, and the value: of structs cells by keys, of lists cells, of maps pairs."""
Row = Mapping[int, Cell]
"""The values of a row by the keys of its columns."""

NESTED = ("struct", "list", "map")


@dataclass(frozen=True)
class Column:
    """A column or nested field, identified by its key and not by its name.

    ``children``: the fields of a struct, the element of a list, key and value of a map. ``initial``: the value in rows
    that are older than the column. ``write``: the value for rows that are written without it.
    """

    name: str
    kind: str
    required: bool = False
    children: tuple[Column, ...] = ()
    initial: Cell | None = None
    write: Cell | None = None
    key: int = field(default_factory=lambda: next(_KEYS))

    def seen(self, cell: Cell | None) -> Any:
        """Return the value of a cell for a reader; None stands for a row that is older than the column."""
        kind, value = cell or self.initial or (self.kind, None)
        if value is None:
            return None
        match self.kind:
            case "struct":
                return {child.name: child.seen(value.get(child.key)) for child in self.children}
            case "list":
                return [self.children[0].seen(item) for item in value]
            case "map":
                return [(self.children[0].seen(key), self.children[1].seen(item)) for key, item in value]
        if kind == "date" and self.kind in ("timestamp", "timestamp_ns"):
            return DAY * (1000 if self.kind == "timestamp_ns" else 1) * value
        return value

    def cell(self, value: Any) -> Cell:
        """Return the cell for a value. Missing fields of a struct are filled in."""
        if value is None:
            return self.kind, None
        match self.kind:
            case "struct":
                return self.kind, kept_row(self.children, value)
            case "list":
                return self.kind, [self.children[0].cell(item) for item in value]
            case "map":
                return self.kind, [(self.children[0].cell(key), self.children[1].cell(item)) for key, item in value]
        return self.kind, value

    def walk(self) -> Iterator[Column]:
        """Itself and all columns inside."""
        yield self
        for child in self.children:
            yield from child.walk()

    def of_type(self, ids: Iterator[int], defaults: bool = True) -> IcebergType:
        """The type as an object, with ids from ``ids``."""
        match self.kind:
            case "struct":
                return StructType(*(child.as_field(ids, defaults) for child in self.children))
            case "list":
                (element,) = self.children
                return ListType(next(ids), element.of_type(ids, defaults), element.required)
            case "map":
                key, value = self.children
                return MapType(
                    next(ids), key.of_type(ids, defaults), next(ids), value.of_type(ids, defaults), value.required
                )
        return parse_type(self.kind)

    def as_field(self, ids: Iterator[int], defaults: bool = True) -> NestedField:
        """The column as a field, with ids from ``ids``."""
        initial, write = (value and value[1] if defaults else None for value in (self.initial, self.write))
        return NestedField(next(ids), self.name, self.of_type(ids, defaults), self.required, None, initial, write)

    def shape(self) -> Any:
        """Return everything in the table's schema about the column except ids."""
        initial = self.seen(None) if self.initial else None
        return self.name, self.kind, self.required, initial, self.write and self.seen(self.write), shapes(self.children)


Columns = tuple[Column, ...]


def shapes(columns: Columns) -> list[Any]:
    """Return everything in the table's schema about columns except ids."""
    return [column.shape() for column in columns]


def shape_of(found: NestedField) -> Any:
    """Return the same shape for a field of the table's schema."""
    kind = found.field_type
    name = {StructType: "struct", ListType: "list", MapType: "map"}.get(type(kind), str(kind).replace(" ", ""))
    children = kind.children if isinstance(kind, StructType | ListType | MapType) else ()
    inside = [shape_of(child) for child in children]
    return found.name, name, found.required, found.initial_default, found.write_default, inside


def as_schema(columns: Columns, defaults: bool = True) -> Schema:
    """Columns as a schema with ids of its own."""
    ids = count(1)
    return Schema(*(column.as_field(ids, defaults) for column in columns))


@dataclass(frozen=True)
class State:
    """The rows of one snapshot, and the columns that the table had when it was made."""

    rows: tuple[Row, ...]
    columns: Columns

    def seen(self, columns: Columns | None = None) -> list[dict[str, Any]]:
        """The rows by names, under the columns of their snapshot or under other columns."""
        return [seen_row(row, columns or self.columns) for row in self.rows]


def seen_row(row: Row, columns: Columns) -> dict[str, Any]:
    """A row by names."""
    return {column.name: column.seen(row.get(column.key)) for column in columns}


def kept_row(columns: Columns, row: Mapping[str, Any]) -> dict[int, Cell]:
    """The model's form of a row given by names; a column that the row lacks gets its write default."""
    return {
        column.key: column.cell(row[column.name]) if column.name in row else column.write or (column.kind, None)
        for column in columns
    }


def kept(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """The model's form of rows given by names."""
    return tuple(kept_row(columns, row) for row in rows)


# -- nested columns -----------------------------------------------------------------------------------------------


def leaves(columns: Columns, prefix: str = "") -> dict[str, Column]:
    """The columns of primitive types outside of lists and maps, by their full names."""
    found: dict[str, Column] = {}
    for column in columns:
        if column.kind == "struct":
            found.update(leaves(column.children, f"{prefix}{column.name}."))
        elif column.kind not in (*NESTED, "unknown", "variant"):
            found[prefix + column.name] = column
    return found


def path_of(columns: Columns, key: int) -> tuple[str, ...]:
    """The names that lead to a column."""
    return tuple(column.name for column in line_to(columns, key))


def line_to(columns: Columns, key: int) -> tuple[Column, ...]:
    """The columns around a column, the outermost first, and itself."""
    for column in columns:
        if column.key == key:
            return (column,)
        if inside := line_to(column.children, key):
            return (column, *inside)
    return ()


def changed(columns: Columns, key: int, **changes: Any) -> Columns:
    """The columns with one changed, at any depth."""
    return tuple(
        replace(column, **changes)
        if column.key == key
        else replace(column, children=changed(column.children, key, **changes))
        for column in columns
    )


def without(columns: Columns, key: int) -> Columns:
    """The columns without one, at any depth."""
    return tuple(replace(column, children=without(column.children, key)) for column in columns if column.key != key)


def every(columns: Columns) -> list[Column]:
    """All columns at any depth."""
    return [inner for column in columns for inner in column.walk()]


def in_structs(columns: Columns) -> list[Column]:
    """The columns that can be renamed, moved and deleted: columns of the row or of a struct, outside of keys."""
    found = list(columns)
    for column in columns:
        match column.kind:
            case "struct":
                found += in_structs(column.children)
            case "list" | "map":
                value = column.children[-1]
                found += in_structs((value,))[1:]
    return found


def changeable(columns: Columns) -> list[Column]:
    """The columns that can become wider or optional: all outside of keys."""
    found = []
    for column in columns:
        found.append(column)
        found += changeable(column.children[1:] if column.kind == "map" else column.children)
    return found


def siblings_of(columns: Columns, key: int) -> Columns:
    """The columns of the row or struct in which a column is."""
    line = line_to(columns, key)
    return columns if len(line) == 1 else line[-2].children


def arranged(columns: Columns, siblings: Columns) -> Columns:
    """The columns with the children of one struct, or of the row, in another order or with one more."""
    keys = {column.key for column in siblings}
    if any(column.key in keys for column in columns):
        return siblings
    return tuple(
        replace(
            column,
            children=siblings
            if any(child.key in keys for child in column.children)
            else arranged(column.children, siblings),
        )
        for column in columns
    )
