"""A table with files of three formats and five versions of its schema, and the rows that it holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from icefield.catalog import Catalog, Table
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType

Row = dict[str, Any]
START = Schema(
    NestedField(1, "id", "int", required=True),
    NestedField(2, "name", "string"),
    NestedField(3, "amount", "float"),
    NestedField(4, "price", "decimal(9,2)"),
    NestedField(5, "day", "date"),
    NestedField(6, "place", StructType(NestedField(7, "lat", "float"), NestedField(8, "lon", "float"))),
    NestedField(9, "tags", ListType(10, StructType(NestedField(11, "k", "string"), NestedField(12, "v", "int")))),
    NestedField(13, "attrs", MapType(14, "string", 15, "int")),
    NestedField(16, "at", "timestamp"),
)
_MOMENT = dt.datetime(1969, 12, 31, 23, 59, 50, 250_000)
EACH = 6


def mixed_table(catalog: Catalog, name: str) -> Table:
    """Create the table: five schemas, each with files of all formats, and two partition specs."""
    table = catalog.create_table(name, START, properties={"format-version": "3"})
    _write(table, 0, ("parquet", "orc", "avro"))
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.update_column("id", "long")
        update.add_column("note", "string", default_value="older")
    _write(table, 1, ("orc", "avro", "parquet"))
    with table.update_schema() as update:
        update.update_column("amount", "double")
        update.update_column("price", "decimal(25,2)")
        update.add_column(("place", "alt"), "double", default_value=-1.0)
        update.delete_column("day")
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[2]")
    _write(table, 2, ("avro", "parquet", "orc"))
    with table.update_schema() as update:
        update.add_column("day", "string")
        update.update_column(("tags", "element", "v"), "long")
        update.rename_column(("tags", "element", "k"), "key")
        update.move_first("at")
    _write(table, 3, ("parquet", "avro", "orc"))
    with table.update_schema() as update:
        update.update_column(("attrs", "value"), "long")
        update.delete_column(("place", "lon"))
        update.make_column_optional("id")
        update.rename_column("amount", "name")
    _write(table, 4, ("orc", "parquet", "avro"))
    assert len(table.metadata.schemas) == 5
    return table


def mixed_rows() -> list[Row]:
    """Return the expected rows of a scan, in the order of ``id``, as Python values."""
    return [_seen(version, EACH * version + at) for version in range(5) for at in range(EACH)]


MIXED_FILTERS: dict[str, Callable[[Row], bool]] = {
    "id = 7": lambda row: row["id"] == 7,
    "id > 14 and id < 21": lambda row: 14 < row["id"] < 21,
    "title = 't4'": lambda row: row["title"] == "t4",
    "title is null": lambda row: row["title"] is None,
    "name >= 5.5": lambda row: row["name"] >= 5.5,
    "price < 3": lambda row: row["price"] < 3,
    "note = 'older'": lambda row: row["note"] == "older",
    "note <> 'older'": lambda row: row["note"] not in (None, "older"),
    "note is null": lambda row: row["note"] is None,
    "day is null": lambda row: row["day"] is None,
    "day = 'd20'": lambda row: row["day"] == "d20",
    "place.alt = -1": lambda row: row["place"] is not None and row["place"]["alt"] == -1.0,
    "place.lat > 3": lambda row: row["place"] is not None and row["place"]["lat"] > 3,
    "at < '1970-01-01T00:00:00'": lambda row: row["at"] < dt.datetime(1970, 1, 1),
    "at = '1969-12-31T23:59:57.250000'": lambda row: row["at"] == dt.datetime(1969, 12, 31, 23, 59, 57, 250_000),
    "id in (1, 8, 15, 22, 29) and note is not null": lambda row: row["id"] % 7 == 1 and row["note"] is not None,
}
"""Filters in the names of the last schema, and their meanings as functions of a row."""


def _write(table: Table, version: int, formats: tuple[str, ...]) -> None:
    """Append the rows of a version, in files of each of the formats."""
    schema = schema_to_arrow(table.schema())
    for number, file_format in enumerate(formats):
        with table.transaction() as change:
            change.set_properties({"write.format.default": file_format})
        ids = range(EACH * version + 2 * number, EACH * version + 2 * number + 2)
        table.append(pa.Table.from_pylist([_given(version, row) for row in ids], schema=schema))


def _given(version: int, number: int) -> Row:
    """A row as it is written under the schema of a version."""
    row: Row = {
        "id": number,
        "name" if version == 0 else "title": None if number % 5 == 0 else f"t{number}",
        "name" if version == 4 else "amount": number / 4,
        "price": Decimal(number) + Decimal("0.25"),
        "place": _place(version, number),
        "tags": None if number % 6 == 5 else [{"k" if version < 3 else "key": f"k{number}", "v": number}, None],
        "attrs": [("a", number), ("b", None)],
        "at": _MOMENT + dt.timedelta(seconds=number),
    }
    if version == 0:
        row["day"] = dt.date(2020, 1, 1)
    if version >= 1:
        row["note"] = None if number % 2 else f"n{number}"
    if version >= 3:
        row["day"] = f"d{number}"
    return row


def _place(version: int, number: int) -> Row | None:
    if number % 4 == 3:
        return None
    place: Row = {"lat": number / 2}
    if version < 4:
        place["lon"] = -1.5
    if version >= 2:
        place["alt"] = number / 8
    return place


def _seen(version: int, number: int) -> Row:
    """The row under the last schema, in its order of columns."""
    given = _given(version, number)
    place, tags = given["place"], given["tags"]
    return {
        "at": given["at"],
        "id": number,
        "title": given["name" if version == 0 else "title"],
        "name": number / 4,
        "price": given["price"],
        "place": place and {"lat": place["lat"], "alt": place.get("alt", -1.0)},
        "tags": tags and [{"key": f"k{number}", "v": number}, None],
        "attrs": given["attrs"],
        "note": given.get("note", None if version else "older"),
        "day": given["day"] if version >= 3 else None,
    }
