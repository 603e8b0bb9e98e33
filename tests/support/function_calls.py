"""Values of each type that Iceberg's functions in SQL take, and the calls of the functions with the transforms."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import icefield
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from icefield import Schema
from icefield import types as iceberg
from icefield.toolkit import parse_transform

COLUMNS: dict[str, tuple[iceberg.IcebergType, pa.DataType]] = {
    "i": (iceberg.IntegerType(), pa.int32()),
    "n": (iceberg.LongType(), pa.int64()),
    "s": (iceberg.StringType(), pa.string()),
    "b": (iceberg.BinaryType(), pa.binary()),
    "d": (iceberg.DateType(), pa.date32()),
    "z": (iceberg.TimestamptzType(), pa.timestamp("us", "UTC")),
    "t": (iceberg.TimestampType(), pa.timestamp("us")),
    "c": (iceberg.DecimalType(9, 2), pa.decimal128(9, 2)),
}
_WALL = st.datetimes()
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "n": st.integers(-(2**63), 2**63 - 1),
    "s": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
    "b": st.binary(max_size=9),
    "d": st.dates(),
    "z": _WALL.map(lambda each: each.replace(tzinfo=dt.UTC)),
    "t": _WALL,
    "c": st.decimals(-999999, 999999, places=2),
}
UNITS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
SCHEMA = Schema(
    *(iceberg.NestedField(at, name, kind, required=False) for at, (name, (kind, _)) in enumerate(COLUMNS.items(), 1))
)


def rows_of() -> pa.Table:
    """Values of each column, and nulls."""
    found: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    @given(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}))
    def take(row: dict[str, Any]) -> None:
        for name, value in row.items():
            found[name].append(value)

    take()
    for least in (-(1 << 63), 1 - (1 << 63), 2 - (1 << 63), (1 << 63) - 1):  # where truncating goes round
        for name, column in found.items():
            column.append(least if name == "n" else None)
    return pa.table({name: pa.array(found[name], kind) for name, (_, kind) in COLUMNS.items()})


def calls() -> Iterator[tuple[str, str, str]]:
    """Each call of a function with a column, the column, and the equivalent transform."""
    for name, widths in [("bucket", (1, 7)), ("truncate", (1, 3))]:
        for width in widths:
            for column in taken_by(f"{name}[{width}]"):
                yield f"{name}({width}, {column})", column, f"{name}[{width}]"
    for name, unit in UNITS.items():
        for column in taken_by(unit):
            yield f"{name}({column})", column, unit


def taken_by(transform: str) -> list[str]:
    """The columns of the types that a transform takes."""
    return [name for name, (kind, _) in COLUMNS.items() if parse_transform(transform).can_transform(kind)]


def transformed(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The results of all calls for each row."""
    columns = [parse_transform(each).apply(rows[name], COLUMNS[name][0]).to_pylist() for _, name, each in calls()]
    return list(zip(*columns, strict=True))


def create_table_of_uuids(catalog: icefield.Catalog) -> None:
    """Create the table ``db.u`` of eight rows, partitioned by buckets of the column ``u``."""
    schema = Schema(iceberg.NestedField(1, "u", iceberg.UUIDType(), required=False))
    rows = pa.table({"u": pa.array([bytes([each] * 16) for each in range(8)], pa.binary(16))})
    catalog.create_table("db.u", schema, partition_spec=["bucket[4](u)"]).append(rows)
