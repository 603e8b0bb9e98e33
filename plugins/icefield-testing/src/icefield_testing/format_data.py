"""Schemas and rows for the suite of file formats."""

from __future__ import annotations

import datetime
import itertools
import math
import struct
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from icefield import types
from icefield.schema import Schema, assign_fresh_ids, schema_to_arrow
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
    types.StringType(): ["", "a", "ü", "日本語", "😀", "x" * 3_000, "a ", " ", "\t"],
    types.UUIDType(): [bytes(range(16)), b"\xff" * 16],
    types.FixedType(3): [b"\0\0\0", b"abc", b"\xff\xff\xff"],
    types.BinaryType(): [b"", b"\0", bytes(range(256)), b"a\0", b" "],
}

_POINT = struct.Struct("<BIdd")

# The same for further types that need version 3 of the format; nanosecond timestamps, which also need it, are in EDGES.
VERSION_3: dict[IcebergType, list[Any]] = {
    types.UnknownType(): [None, None],
    # The empty dictionary of keys, with: null, the boolean true, the number 5.
    types.VariantType(): [{"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x00", b"\x04", b"\x0c\x05")],
    types.GeometryType(): [_POINT.pack(1, 1, 30.0, 10.0), _POINT.pack(1, 1, -0.0, 1e300)],
    types.GeographyType(): [_POINT.pack(1, 1, 180.0, -90.0), b"\x01\x02\x00\x00\x00\x00\x00\x00\x00"],
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
    "list in map": MapType(31, types.DateType(), 32, ListType(33, types.StringType(), element_required=True)),
    "map in map": MapType(31, types.StringType(), 32, MapType(33, types.IntegerType(), 34, types.DoubleType())),
    "map with struct keys": MapType(
        31,
        StructType(NestedField(33, "x", types.IntegerType(), required=True), NestedField(34, "y", types.StringType())),
        32,
        types.LongType(),
        value_required=True,
    ),
    "structs in list": ListType(
        21,
        StructType(
            NestedField(22, "x", types.IntegerType(), required=True), NestedField(23, "y", types.DecimalType(20, 3))
        ),
        element_required=True,
    ),
    "required structs": StructType(
        NestedField(
            11,
            "x",
            StructType(NestedField(12, "y", StructType(NestedField(13, "z", types.LongType())), required=True)),
            required=True,
        )
    ),
    "lists in struct": StructType(
        NestedField(11, "x", ListType(12, types.FloatType(), element_required=True), required=True),
        NestedField(13, "y", MapType(14, types.UUIDType(), 15, types.FixedType(2))),
    ),
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
    "list in map": [[(_EPOCH, ["a", "b"]), (datetime.date(1969, 1, 1), []), (datetime.date(1, 1, 1), None)], [], None],
    "map in map": [[("a", [(1, 1.5), (2, None)]), ("b", []), ("c", None)], [], None],
    "map with struct keys": [[({"x": 1, "y": "a"}, 1), ({"x": 1, "y": None}, 2)], [], None],
    "structs in list": [[{"x": 1, "y": Decimal("1.500")}, {"x": 2, "y": None}], [], None],
    "required structs": [{"x": {"y": {"z": 1}}}, {"x": {"y": {"z": None}}}, None],
    "lists in struct": [{"x": [1.0, -0.0], "y": [(b"\1" * 16, b"ab")]}, {"x": [], "y": None}, None],
}

PLACES = ("field", "element", "key", "value")
"""Where a type may be inside a column."""


def table_of(kind: IcebergType, values: list[Any], *, required: bool) -> tuple[Schema, pa.Table]:
    """A table of one column ``v`` (id 2) next to a row number ``n`` (id 1)."""
    schema = Schema(NestedField(1, "n", types.LongType(), required=True), NestedField(2, "v", kind, required=required))
    rows = values if required else [*values, None]
    arrow = schema_to_arrow(schema)
    columns = [pa.array(range(len(rows)), pa.int64()), array_of(arrow.field(1).type, rows)]
    return schema, pa.Table.from_arrays(columns, schema=arrow)


def array_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """An array of Python values, with Arrow scalars at any depth for values that Python cannot represent exactly."""
    return pa.array([_without_scalars(value) for value in values], kind)


def _without_scalars(value: Any) -> Any:
    match value:
        case pa.Scalar():
            return value.value if pa.types.is_timestamp(value.type) else value.as_py()
        case dict():
            return {key: _without_scalars(item) for key, item in value.items()}
        case list():
            return [_without_scalars(item) for item in value]
        case tuple():
            return tuple(_without_scalars(item) for item in value)
    return value


def placed(kind: IcebergType, place: str, *, required: bool) -> tuple[Schema, pa.Table] | None:
    """A table with the type inside a column, at one of ``PLACES``; None where the type cannot be there."""
    values = EDGES.get(kind) or VERSION_3[kind]
    unknown = isinstance(kind, types.UnknownType)
    if unknown and (required or place == "key"):
        return None
    if place == "key" and isinstance(kind, types.VariantType | types.GeometryType | types.GeographyType):
        return None
    inside = values if required or unknown else [*values, None]
    if place == "field":
        other = NestedField(12, "y", types.LongType())
        column: IcebergType = StructType(NestedField(11, "x", kind, required=required), other)
        rows: list[Any] = [{"x": value, "y": 1} for value in inside]
    elif place == "element":
        column = ListType(21, kind, element_required=required)
        rows = [inside, [], inside[:1]]
    elif place == "key":
        # Which of two keys that compare equal a map keeps is another question.
        keys = [value for at, value in enumerate(values) if value == value and value not in values[:at]]
        column = MapType(31, kind, 32, types.LongType(), value_required=required)
        rows = [[(key, at if required or at % 2 else None) for at, key in enumerate(keys)], []]
    else:
        column = MapType(31, types.IntegerType(), 32, kind, value_required=required)
        rows = [[(at, value) for at, value in enumerate(inside)], []]
    return table_of(column, rows, required=required)


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


def sample_tables(
    rows: int = 1_200, *, unsupported: Collection[type[IcebergType]] = ()
) -> dict[str, tuple[Schema, pa.Table]]:
    """Tables for the tests of a file format, each with its schema.

    ``flat`` has ``rows`` rows of a few types. ``nested`` has 300 rows of structs, lists and maps inside each other.
    ``types`` has 250 rows of the primitive types, except for ``unsupported`` types, with nulls and with extreme values
    of each type.
    """
    ids = itertools.count(1)
    shapes = [
        field
        for name, kind in NESTED.items()
        for field in assign_fresh_ids(Schema(NestedField(1, name, kind)), ids.__next__)[0].fields
    ]
    nested = Schema(*shapes)
    nested_rows = [{name: values[at % len(values)] for name, values in NESTED_ROWS.items()} for at in range(300)]
    edges = {kind: values for kind, values in EDGES.items() if not isinstance(kind, tuple(unsupported))}
    flat_types = Schema(*(NestedField(at, f"c{at}", kind) for at, kind in enumerate(edges, start=1)))
    arrow = schema_to_arrow(flat_types)
    columns = [[values[at % len(values)] if at % 5 else None for at in range(250)] for values in edges.values()]
    arrays = [array_of(field.type, column) for column, field in zip(columns, arrow, strict=True)]
    return {
        "flat": flat_table(rows),
        "nested": (nested, pa.Table.from_pylist(nested_rows, schema=schema_to_arrow(nested))),
        "types": (flat_types, pa.Table.from_arrays(arrays, schema=arrow)),
    }


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
    """A schema with up to four columns, nested up to three levels deep, and up to twelve rows of it."""
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
