"""Tables that peers are to judge: rows of every type, every transform, and a table with a long history."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
from icefield.catalog import Catalog, Table
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType
from peers import Filter

UTC = dt.UTC

EVERY_TYPE = Schema(
    NestedField(1, "c_int", "int", required=True),
    NestedField(2, "c_boolean", "boolean"),
    NestedField(3, "c_long", "long"),
    NestedField(4, "c_float", "float"),
    NestedField(5, "c_double", "double"),
    NestedField(6, "c_small", "decimal(9,2)"),
    NestedField(7, "c_middle", "decimal(18,4)"),
    NestedField(8, "c_large", "decimal(38,10)"),
    NestedField(9, "c_date", "date"),
    NestedField(10, "c_time", "time"),
    NestedField(11, "c_timestamp", "timestamp"),
    NestedField(12, "c_timestamptz", "timestamptz"),
    NestedField(13, "c_string", "string", doc="Größe ☃"),
    NestedField(14, "c_uuid", "uuid"),
    NestedField(15, "c_fixed", "fixed[5]"),
    NestedField(16, "c_binary", "binary"),
    NestedField(17, "list", ListType(18, "int")),
    NestedField(19, "map", MapType(20, "string", 21, "int")),
    NestedField(22, "struct", StructType(NestedField(23, "x", "double"), NestedField(24, "y", "string"))),
    NestedField(
        25,
        "structs",
        ListType(26, StructType(NestedField(27, "a", "int"), NestedField(28, "b", ListType(29, "string")))),
    ),
    NestedField(30, "dates", MapType(31, "int", 32, StructType(NestedField(33, "day", "date")))),
)

_FIRST: dict[str, Any] = {
    "c_int": -(2**31) + 8,  # less would wrap when truncated, and other engines lose rows of a wrapped partition value
    "c_boolean": True,
    "c_long": 2**63 - 1,
    "c_float": 1.5,
    "c_double": -0.0,
    "c_small": Decimal("1234567.89"),
    "c_middle": Decimal("-12345678901234.5678"),
    "c_large": Decimal("9876543210987654321098765432.0123456789"),
    "c_date": dt.date(1969, 12, 31),
    "c_time": dt.time(23, 59, 59, 999_999),
    "c_timestamp": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    "c_timestamptz": dt.datetime(2024, 2, 29, 12, 0, 0, 1, UTC),
    "c_string": "é\U0001f600 'quoted' \\",
    "c_uuid": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes,
    "c_fixed": b"\x00\xff123",
    "c_binary": b"",
    "list": [1, None, -3],
    "map": [("a", 1), ("b", None)],
    "struct": {"x": 1.0, "y": None},
    "structs": [{"a": 1, "b": ["x", None]}, {"a": None, "b": []}],
    "dates": [(1, {"day": dt.date(2020, 2, 29)})],
}
_SECOND: dict[str, Any] = {
    "c_int": 2**31 - 1,
    "c_boolean": False,
    "c_long": -(2**63) + 8,
    "c_float": float("inf"),
    "c_double": float("nan"),
    "c_small": Decimal("-0.01"),
    "c_middle": Decimal("0.0000"),
    "c_large": Decimal("-0.0000000001"),
    "c_date": dt.date(2024, 2, 29),
    "c_time": dt.time(0, 0),
    "c_timestamp": dt.datetime(2017, 11, 16, 22, 31, 8),
    "c_timestamptz": dt.datetime(1970, 1, 1, tzinfo=UTC),
    "c_string": "",
    "c_uuid": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff").bytes,
    "c_fixed": b"abcde",
    "c_binary": b"\x80\x00",
    "list": [],
    "map": [],
    "struct": {"x": None, "y": ""},
    "structs": [],
    "dates": [],
}


def every_type_rows() -> pa.Table:
    """Rows of ``EVERY_TYPE``, null and not."""
    rows = [_FIRST, _SECOND, {"c_int": 0}, {**_FIRST, "c_int": 1, "c_string": "a" * 40, "c_date": dt.date(2000, 1, 1)}]
    return pa.Table.from_pylist(rows, schema=schema_to_arrow(EVERY_TYPE))


FAR: list[dict[str, Any]] = [
    {"d": dt.date(1, 1, 1), "t": dt.datetime(1, 1, 1), "z": dt.datetime(1, 1, 1, tzinfo=UTC)},
    {
        "d": dt.date(9999, 12, 31),
        "t": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        "z": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
    },
]
"""The ends of Python's calendar; ClickHouse's is shorter."""

TRANSFORMS: dict[str, list[str]] = {
    "identity": ["c_boolean", "c_int", "c_long", "c_small", "c_date", "c_timestamp", "c_timestamptz", "c_string"],
    "identity of rarer types": ["c_float", "c_double", "c_fixed", "c_binary", "c_large"],
    "identity of uuids and times": ["c_uuid", "c_time"],
    "bucket[3]": ["c_int", "c_long", "c_small", "c_large", "c_date", "c_timestamp", "c_string", "c_uuid"],
    "bucket[7]": ["c_time", "c_timestamptz", "c_fixed", "c_binary", "c_middle"],
    "truncate[10]": ["c_int", "c_long", "c_small", "c_string", "c_binary"],
    "year": ["c_date", "c_timestamp", "c_timestamptz"],
    "month": ["c_date", "c_timestamp", "c_timestamptz"],
    "day": ["c_date", "c_timestamp", "c_timestamptz"],
    "hour": ["c_timestamp", "c_timestamptz"],
}
"""Each transform with the columns that it is put on."""

FILTERS = [
    *(Filter(name, op) for name in ("c_boolean", "c_double", "c_date", "c_string") for op in ("IsNull", "NotNull")),
    Filter("c_boolean", "EqualTo", True),
    Filter("c_int", "LessThan", 1),
    Filter("c_int", "EqualTo", 2**31 - 1),
    Filter("c_int", "In", [0, 1, 5]),
    Filter("c_long", "GreaterThan", 0),
    Filter("c_long", "NotEqualTo", 2**63 - 1),
    Filter("c_small", "LessThanOrEqual", "-0.01"),
    Filter("c_small", "EqualTo", "1234567.89"),
    Filter("c_middle", "GreaterThanOrEqual", "0.0000"),
    Filter("c_large", "EqualTo", "-0.0000000001"),
    Filter("c_date", "LessThan", "1970-01-01"),
    Filter("c_date", "GreaterThanOrEqual", "2000-01-01"),
    Filter("c_date", "EqualTo", "2024-02-29"),
    Filter("c_timestamp", "LessThan", "1970-01-01T00:00:00"),
    Filter("c_timestamp", "EqualTo", "2017-11-16T22:31:08"),
    Filter("c_timestamptz", "GreaterThan", "1970-01-01T00:00:00.000000+00:00"),
    Filter("c_timestamptz", "EqualTo", "1970-01-01T00:00:00.000000+00:00"),
    Filter("c_string", "EqualTo", ""),
    Filter("c_string", "GreaterThan", "a"),
    Filter("c_string", "StartsWith", "aaaaaaaaaaaaa"),
    Filter("c_string", "NotStartsWith", "a"),
    Filter("c_uuid", "EqualTo", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    Filter("c_binary", "EqualTo", b"\x80\x00"),
]
"""Filters on rows of ``EVERY_TYPE`` that all peers understand alike."""


def partition_fields(transform: str) -> list[tuple[str, str]]:
    """The partition fields of an entry of ``TRANSFORMS``, as ``create_table`` takes them."""
    return [(name, transform.partition(" ")[0]) for name in TRANSFORMS[transform]]


# -- a table with a history -----------------------------------------------------------------------------------------


def rows_of(table: Table, *rows: dict[str, Any]) -> pa.Table:
    """Rows under the table's current schema; columns that are not named are null."""
    return pa.Table.from_pylist(list(rows), schema=schema_to_arrow(table.schema()))


def table_with_history(catalog: Catalog, name: str, format_version: int, **properties: str) -> Table:
    """A table after every kind of change to its columns and partitions, with rows written before and after."""
    start = Schema(
        NestedField(1, "id", "int"),
        NestedField(2, "name", "string"),
        NestedField(3, "amount", "float"),
        NestedField(4, "price", "decimal(9,2)"),
        NestedField(5, "flag", "boolean"),
        NestedField(6, "day", "date"),
        NestedField(7, "place", StructType(NestedField(8, "lat", "float"), NestedField(9, "lon", "float"))),
        NestedField(10, "tags", ListType(11, "int")),
    )
    table = catalog.create_table(
        name,
        start,
        partition_spec=["bucket[4](id)"],
        properties={"format-version": str(format_version), **properties},
    )
    table.append(rows_of(table, *(_old_row(number) for number in range(8)), {"id": 8}))
    with table.update_schema() as update:
        update.add_column("note", "string")
        update.rename_column("name", "title")
        update.update_column("id", "long")
        update.update_column("amount", "double")
        update.update_column("price", "decimal(18,2)")
        update.update_column(("place", "lat"), "double")
        update.add_column(("place", "alt"), "double")
        update.delete_column("flag")
        update.update_column(("tags", "element"), "long")
        update.move_first("price")
    table.append(rows_of(table, *(_new_row(number) for number in range(10, 16))))
    with table.update_spec() as spec:
        spec.remove_field("id_bucket_4")
        spec.add_field("day", "month")
        spec.add_identity("title")
    table.append(rows_of(table, *(_new_row(number) for number in range(20, 26)), {"id": 26, "title": None}))
    table.overwrite(rows_of(table, _new_row(30), _new_row(31)), "price > 22 and price < 24")
    table.delete("id < 3")
    with table.update_schema() as update:
        update.rename_column("title", "label")
        update.add_column("flag", "string", doc="not the flag of old")
        update.delete_column(("place", "lon"))
    table.append(rows_of(table, {**_new_row(40, "label"), "flag": "new"}, {"id": 2**40, "label": "a/b c=ü%"}))
    table.delete("label = 'n25' or id = 5")
    return table


def _old_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"n{number}",
        "amount": number / 4,
        "price": Decimal(number) + Decimal("0.25"),
        "flag": number % 2 == 0,
        "day": dt.date(2020, 1, 1) + dt.timedelta(days=9 * number),
        "place": {"lat": number / 2, "lon": -number / 2},
        "tags": [number, None],
    }


def _new_row(number: int, title: str = "title") -> dict[str, Any]:
    return {
        "id": number + 2**33 * (number % 2),
        title: f"n{number}",
        "amount": number / 10,
        "price": Decimal(number) + Decimal("0.75"),
        "day": dt.date(2021, 1, 1) + dt.timedelta(days=11 * number),
        "place": {"lat": number / 10, "lon": 1.0, "alt": 0.1},
        "tags": [2**40, number],
        "note": f"note {number}",
    }


HISTORY_FILTERS = [
    Filter("id", "EqualTo", 7),
    Filter("id", "GreaterThan", 2**32),
    Filter("id", "LessThan", 12),
    Filter("price", "LessThan", "7.00"),
    Filter("price", "GreaterThanOrEqual", "20.75"),
    Filter("amount", "LessThanOrEqual", 1.5),
    Filter("day", "LessThan", "2020-02-01"),
    Filter("day", "GreaterThan", "2021-07-01"),
    Filter("day", "IsNull"),
    Filter("label", "StartsWith", "n2"),
    Filter("label", "EqualTo", "a/b c=ü%"),
    Filter("label", "IsNull"),
    Filter("label", "NotIn", ["n3", "n20", "n40"]),
    Filter("note", "IsNull"),
    Filter("flag", "NotNull"),
]
