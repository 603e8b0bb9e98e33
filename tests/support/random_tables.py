"""Random columns, values and rows for the model of a table, which depend only on a seed of ``random.Random``."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from random import Random
from typing import Any

from naive_filters import POOLS
from table_model import NESTED, Column, Columns
from variant_bytes import variant

KINDS = ["boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "time", "timestamp", "timestamptz"]
KINDS += ["string", "uuid", "fixed[3]", "binary"]
KINDS_OF_V3 = [*KINDS, "timestamp_ns", "timestamptz_ns", "unknown", "variant"]
PROMOTIONS = {"int": ["long"], "float": ["double"], "decimal(9,2)": ["decimal(18,2)"]}
PROMOTIONS_OF_V3 = {
    **PROMOTIONS,
    "date": ["timestamp", "timestamp_ns"],
    "unknown": ["int", "string", "timestamptz_ns", "double"],
}
POOLED = {"decimal(18,2)": "decimal(9,2)", "timestamptz_ns": "timestamp_ns"}
"""Types that draw their values from the values of another type."""
LEAST_DECIMAL = Decimal("-9999999.99")
"""Left out: truncated, it is beyond its type, which a partition cannot hold."""
VARIANTS = [variant(value) for value in (None, True, 7, -1.5, "text", [1, "a", None], {"a": 1, "b": {"c": [2.5]}}, {})]
DATES_OF_NANOSECONDS = [-366, -31, -1, 0, 1, 31, 365, 17501]
"""Dates that can become timestamps of nanoseconds."""


def pool(kind: str) -> list[Any]:
    """The values that a column of a type may hold, besides null."""
    if kind == "variant":
        return VARIANTS
    if kind == "date":
        return DATES_OF_NANOSECONDS
    return [value for value in POOLS[POOLED.get(kind, kind)] if value != LEAST_DECIMAL]


def value_of(chance: Random, column: Column, rich: bool = True) -> Any:
    """A value that the column may hold."""
    if column.kind == "unknown" or (not column.required and chance.random() < 0.2):
        return None
    match column.kind:
        case "struct":
            return row_of(chance, column.children)
        case "list":
            return [value_of(chance, column.children[0]) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        case "map":
            key, value = column.children
            keys = {repr(made): made for made in (value_of(chance, key) for _ in range(chance.choice((0, 1, 2, 3))))}
            return [(made, value_of(chance, value)) for made in keys.values()]
    return chance.choice(pool(column.kind))


def row_of(chance: Random, columns: Columns) -> dict[str, Any]:
    """A row, or a struct, by names."""
    return {column.name: value_of(chance, column) for column in columns}


def rows_of(chance: Random, columns: Columns, most: int = 6) -> list[dict[str, Any]]:
    """Rows by names."""
    return [row_of(chance, columns) for _ in range(chance.randint(0, most))]


def default_of(chance: Random, kind: str) -> Any:
    """A value that metadata can state, which excludes infinity and NaN."""
    values = [value for value in pool(kind) if not isinstance(value, float) or isfinite(value)]
    return chance.choice(values)


def column_of(
    chance: Random,
    version: int,
    name: Callable[[], str],
    depth: int = 3,
    named: str | None = None,
    new: bool = False,
    top: bool = True,
) -> Column:
    """A column of any type that a format version has, nested up to a depth.

    ``name`` returns names for its children; ``named`` is its own name. ``new``: the column is added to a table and
    older rows lack it, so it is required only with a default. ``top``: the column is at the top level. Only there its
    type may be unknown: ORC has no struct, list or map with nothing but unknown fields.
    """
    own = name() if named is None else named
    required = chance.random() < 0.3 and not new
    shape = chance.choice((*NESTED, "leaf", "leaf", "leaf")) if depth else "leaf"

    def inside(of: str | None = None) -> Column:
        return column_of(chance, version, name, depth - 1, of, top=False)

    if shape == "struct":
        return Column(own, shape, required, tuple(inside() for _ in range(chance.randint(1, 3))))
    if shape == "list":
        return Column(own, shape, required, (inside("element"),))
    if shape == "map":
        kinds = [kind for kind in KINDS if kind not in ("float", "double")]
        return Column(own, shape, required, (Column("key", chance.choice(kinds), True), inside("value")))
    # Peers refuse tables with some types of version 3, which are therefore rare.
    kind = chance.choice(KINDS_OF_V3 if version >= 3 and chance.random() < 0.15 else KINDS)
    if kind == "unknown":
        return Column(own, kind if top else "string")
    initial = write = None
    if version >= 3 and kind != "variant" and own not in ("element", "value") and chance.random() < 0.4:
        initial = write = (kind, default_of(chance, kind))
        required = chance.random() < 0.5 if new else required
    return Column(own, kind, required, (), initial, write)
