"""Schemas and rows for the suite of file formats."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from icefield import types
from icefield.schema import Schema
from icefield.schema_arrow import schema_to_arrow
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType

_EPOCH = datetime.date(1970, 1, 1)

# Values at the edges of each type, as Arrow takes them.
EDGES: dict[IcebergType, list[Any]] = {
    types.BooleanType(): [True, False],
    types.IntegerType(): [0, 1, -1, 2**31 - 1, -(2**31)],
    types.LongType(): [0, 1, -1, 2**63 - 1, -(2**63)],
    types.FloatType(): [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan],
    types.DoubleType(): [0.0, -0.0, 1e-300, math.inf, -math.inf, math.nan],
    types.DecimalType(9, 2): [Decimal("0.00"), Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("-0.01")],
    types.DecimalType(18, 0): [Decimal(0), Decimal(10**18 - 1), Decimal(1 - 10**18)],
    types.DecimalType(38, 10): [Decimal("0E-10"), Decimal("1234567890123456789012345678.0123456789")],
    types.DateType(): [_EPOCH, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)],
    types.TimeType(): [datetime.time(0, 0), datetime.time(23, 59, 59, 999_999)],
    types.TimestampType(): [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(9999, 12, 31)],
    types.TimestamptzType(): [datetime.datetime(2017, 11, 16, 22, 31, 8, 1, tzinfo=datetime.UTC)],
    types.TimestampNanoType(): [pa.scalar(-1, pa.timestamp("ns")), pa.scalar(2**63 - 1, pa.timestamp("ns"))],
    types.TimestamptzNanoType(): [pa.scalar(1_510_871_468_000_001_001, pa.timestamp("ns", "UTC"))],
    types.StringType(): ["", "a", "ü", "日本語", "😀", "x" * 3_000],
    types.UUIDType(): [bytes(range(16)), b"\xff" * 16],
    types.FixedType(3): [b"\0\0\0", b"abc", b"\xff\xff\xff"],
    types.BinaryType(): [b"", b"\0", bytes(range(256))],
}

NESTED: dict[str, IcebergType] = {
    "struct": StructType(
        NestedField(11, "x", types.IntegerType(), required=True),
        NestedField(12, "y", StructType(NestedField(13, "z", types.StringType())), required=False),
    ),
    "list": ListType(21, types.LongType(), element_required=False),
    "required list": ListType(21, types.StringType(), element_required=True),
    "list of lists": ListType(21, ListType(22, types.DoubleType()), element_required=False),
    "map": MapType(31, types.StringType(), 32, types.LongType(), value_required=False),
    "map of ints": MapType(31, types.IntegerType(), 32, types.StringType(), value_required=True),
    "struct in map": MapType(31, types.StringType(), 32, StructType(NestedField(33, "v", types.DateType()))),
    "map in list": ListType(21, MapType(22, types.LongType(), 23, types.BooleanType())),
}

NESTED_ROWS: dict[str, list[Any]] = {
    "struct": [{"x": 1, "y": {"z": "a"}}, None, {"x": 2, "y": None}, {"x": 3, "y": {"z": None}}],
    "list": [[1, None, 3], [], None, [2**62]],
    "required list": [["a", ""], [], None],
    "list of lists": [[[1.0], [], None], [], None],
    "map": [[("a", 1), ("b", None)], [], None],
    "map of ints": [[(1, "a"), (-5, "b")], [], None],
    "struct in map": [[("k", {"v": _EPOCH}), ("l", {"v": None}), ("m", None)], None],
    "map in list": [[[(1, True)], None, []], None],
}


def table_of(kind: IcebergType, values: list[Any], *, required: bool) -> tuple[Schema, pa.Table]:
    """A table of one column ``v`` (id 2) beside a row number ``n`` (id 1)."""
    schema = Schema(NestedField(1, "n", types.LongType(), required=True), NestedField(2, "v", kind, required=required))
    rows = values if required else [*values, None]
    arrow = schema_to_arrow(schema)
    column = pa.array([v.as_py() if isinstance(v, pa.Scalar) and _fits(v) else v for v in rows], arrow.field(1).type)
    return schema, pa.Table.from_arrays([pa.array(range(len(rows)), pa.int64()), column], schema=arrow)


def _fits(value: pa.Scalar) -> bool:
    return not pa.types.is_timestamp(value.type)


def flat_table(rows: int) -> tuple[Schema, pa.Table]:
    """Many rows of a few types, with nulls."""
    schema = Schema(
        NestedField(1, "n", types.LongType(), required=True),
        NestedField(2, "s", types.StringType()),
        NestedField(3, "d", types.DoubleType()),
        NestedField(4, "l", ListType(5, types.IntegerType())),
        NestedField(6, "p", StructType(NestedField(7, "a", types.LongType()), NestedField(8, "b", types.StringType()))),
    )
    columns = [
        range(rows),
        [None if i % 7 == 0 else f"value-{i % 97}" for i in range(rows)],
        [None if i % 5 == 0 else i / 3 for i in range(rows)],
        [None if i % 11 == 0 else list(range(i % 4)) for i in range(rows)],
        [None if i % 13 == 0 else {"a": i, "b": str(i)} for i in range(rows)],
    ]
    arrow = schema_to_arrow(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return schema, pa.Table.from_arrays(arrays, schema=arrow)


_SCALARS: list[tuple[IcebergType, st.SearchStrategy[Any]]] = [
    (types.BooleanType(), st.booleans()),
    (types.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (types.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (types.DoubleType(), st.floats(allow_nan=False)),
    (types.StringType(), st.text(max_size=12)),
    (types.BinaryType(), st.binary(max_size=12)),
    (types.DateType(), st.dates()),
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A schema of up to four columns, nested up to three deep, and up to twelve rows of it."""
    numbers = iter(range(1, 1_000))
    fields, columns = [], []
    rows = draw(st.integers(0, 12))
    for number in [next(numbers) for _ in range(draw(st.integers(1, 4)))]:
        kind, values = _column(draw, numbers, depth=0)
        required = draw(st.booleans())
        fields.append(NestedField(number, f"c{number}", kind, required=required))
        columns.append([draw(values if required else st.none() | values) for _ in range(rows)])
    schema = Schema(*fields)
    arrow = schema_to_arrow(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return schema, pa.Table.from_arrays(arrays, schema=arrow)


def _column(draw: st.DrawFn, numbers: Any, depth: int) -> tuple[IcebergType, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(["scalar", "struct", "list", "map"])) if depth < 2 else "scalar"
    if shape == "struct":
        ids = [next(numbers) for _ in range(draw(st.integers(1, 3)))]
        children = [_column(draw, numbers, depth + 1) for _ in ids]
        kind = StructType(*(NestedField(i, f"f{i}", child[0]) for i, child in zip(ids, children, strict=True)))
        keys = {f"f{i}": st.none() | child[1] for i, child in zip(ids, children, strict=True)}
        return kind, st.fixed_dictionaries(keys)
    if shape == "list":
        number = next(numbers)
        child, values = _column(draw, numbers, depth + 1)
        return ListType(number, child), st.lists(st.none() | values, max_size=3)
    if shape == "map":
        key, value = next(numbers), next(numbers)
        child, values = _column(draw, numbers, depth + 1)
        entries = st.dictionaries(st.text(max_size=3), st.none() | values, max_size=3)
        return MapType(key, types.StringType(), value, child), entries.map(lambda found: list(found.items()))
    chosen: tuple[IcebergType, st.SearchStrategy[Any]] = draw(st.sampled_from(_SCALARS))
    return chosen
