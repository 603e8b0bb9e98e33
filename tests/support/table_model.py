"""A table the slow and obvious way: lists of rows for each snapshot, and columns that are known by keys of their own.

A value is kept with the type under which it was written; what a reader sees of it is worked out from the columns of
the version that is read. Nothing here looks at files, manifests or metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st
from naive_filters import DAY, cells

PROMOTIONS = {"int": "long", "float": "double", "decimal(9,2)": "decimal(18,2)"}
PROMOTIONS_OF_V3 = {**PROMOTIONS, "date": "timestamp"}
LEAST_DECIMAL = Decimal("-9999999.99")
POOLED = {"decimal(18,2)": "decimal(9,2)"}
"""Types whose values are drawn as those of another."""

LIST = "list<int>"
_KEYS = count(1)

Cell = tuple[str, Any]
"""The type under which a value was written, and the value."""
Row = Mapping[int, Cell]
"""The values of a row by the keys of its columns."""


@dataclass(frozen=True)
class Column:
    """A column, whatever it is called now. ``children``: of a struct. ``default``: of rows older than it."""

    name: str
    kind: str
    children: tuple[Column, ...] = ()
    default: Cell | None = None
    key: int = field(default_factory=lambda: next(_KEYS))

    def seen(self, row: Row) -> Any:
        """What a reader sees of a row."""
        kind, value = row.get(self.key, self.default) or (self.kind, None)
        if value is None:
            return None
        if self.children:
            return {child.name: child.seen(value) for child in self.children}
        return 1_000_000 * 86_400 * value if (kind, self.kind) == ("date", "timestamp") else value

    def cell(self, value: Any) -> Cell:
        """How a value is kept."""
        if value is not None and self.children:
            value = {child.key: child.cell(value[child.name]) for child in self.children}
        return self.kind, value

    def walk(self) -> Iterator[Column]:
        """Itself and all columns inside."""
        yield self
        for child in self.children:
            yield from child.walk()

    def values(self) -> st.SearchStrategy[Any]:
        """Values of it by names, or null."""
        if self.children:
            inside = st.fixed_dictionaries({child.name: child.values() for child in self.children})
            return st.one_of(st.none(), inside)
        if self.kind == LIST:
            return st.one_of(st.none(), st.lists(cells("int"), max_size=3))
        # A partition of truncated decimals cannot hold those that round down beyond their type.
        return cells(POOLED.get(self.kind, self.kind)).filter(lambda value: value != LEAST_DECIMAL)


assert DAY == 86_400_000_000
Columns = tuple[Column, ...]


@dataclass(frozen=True)
class State:
    """The rows of one snapshot, and the columns that the table had when it was made."""

    rows: tuple[Row, ...]
    columns: Columns

    def seen(self, columns: Columns | None = None) -> list[dict[str, Any]]:
        """The rows by names, under the columns of then or others."""
        return [{column.name: column.seen(row) for column in columns or self.columns} for row in self.rows]


def rows_of(columns: Columns, max_size: int = 6) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows by names."""
    return st.lists(st.fixed_dictionaries({c.name: c.values() for c in columns}), max_size=max_size)


def kept(columns: Columns, rows: list[dict[str, Any]]) -> tuple[Row, ...]:
    """How rows given by names are kept."""
    return tuple({column.key: column.cell(row[column.name]) for column in columns} for row in rows)


def leaves(columns: Columns, prefix: str = "") -> dict[str, str]:
    """The columns that filters may name, with the types that their values are drawn from."""
    found: dict[str, str] = {}
    for column in columns:
        if column.children:
            found.update(leaves(column.children, f"{prefix}{column.name}."))
        elif column.kind != LIST:
            found[prefix + column.name] = POOLED.get(column.kind, column.kind)
    return found


def path_of(columns: Columns, key: int) -> tuple[str, ...]:
    """The names that lead to a column."""
    for column in columns:
        if column.key == key:
            return (column.name,)
        if inside := path_of(column.children, key):
            return (column.name, *inside)
    return ()


def changed(columns: Columns, key: int, **changes: Any) -> Columns:
    """The columns with one changed, wherever it lies."""
    return tuple(
        replace(column, **changes)
        if column.key == key
        else replace(column, children=changed(column.children, key, **changes))
        for column in columns
    )


def without(columns: Columns, key: int) -> Columns:
    """The columns without one, wherever it lies."""
    return tuple(replace(column, children=without(column.children, key)) for column in columns if column.key != key)


def every(columns: Columns) -> list[Column]:
    """All columns at any depth."""
    return [inner for column in columns for inner in column.walk()]
