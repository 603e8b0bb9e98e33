"""A file is read under later schemas, by field id: the kernel's column projection on top of the format's reader."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from icefield.abc import FileFormat
from icefield.errors import InvalidFile
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    METADATA_COLUMNS,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
)

from icefield_testing.format_data import array_of
from icefield_testing.formats.base import FormatChecks

_POS: Final = METADATA_COLUMNS["_pos"]
_INNER = StructType(NestedField(4, "x", IntegerType()), NestedField(5, "y", StringType()))
_ITEM = StructType(NestedField(8, "x", FloatType(), required=True), NestedField(9, "y", StringType()))

WRITTEN: Final = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "s", _INNER),
    NestedField(6, "l", ListType(7, _ITEM)),
    NestedField(10, "m", MapType(11, StringType(), 12, IntegerType())),
    NestedField(13, "d", DecimalType(9, 2)),
    NestedField(14, "day", DateType()),
)
"""The schema that the file is written with."""

ROWS: Final[list[dict[str, Any]]] = [
    {
        "id": 1,
        "name": "a",
        "s": {"x": 10, "y": "p"},
        "l": [{"x": 1.5, "y": "u"}, None, {"x": -0.0, "y": None}],
        "m": [("k", 5), ("j", None)],
        "d": Decimal("1.25"),
        "day": datetime.date(1969, 12, 31),
    },
    {"id": 2, "name": None, "s": {"x": None, "y": None}, "l": [], "m": [], "d": None, "day": None},
    {
        "id": 3,
        "name": "",
        "s": None,
        "l": None,
        "m": None,
        "d": Decimal("-9999999.99"),
        "day": datetime.date(2024, 2, 29),
    },
]


@dataclass(frozen=True)
class Evolution:
    """A later schema, and the expected rows of the file under it."""

    fields: tuple[NestedField, ...]
    rows: list[dict[str, Any]]
    constants: dict[int, Any] = field(default_factory=dict)


def _column(kind: IcebergType, number: int, name: str, values: list[Any], **more: Any) -> Evolution:
    return Evolution((NestedField(number, name, kind, **more),), [{name: value} for value in values])


def _of(name: str) -> list[Any]:
    return [row[name] for row in ROWS]


def _struct(*fields: NestedField) -> StructType:
    return StructType(*fields)


_SUMMER = datetime.datetime(2024, 2, 29)
EVOLUTIONS: Final[dict[str, Evolution]] = {
    "nothing": Evolution(WRITTEN.fields, ROWS),
    "a column renamed": _column(StringType(), 2, "called", _of("name")),
    "two columns that swap their names": Evolution(
        (NestedField(1, "name", IntegerType(), required=True), NestedField(2, "id", StringType())),
        [{"name": row["id"], "id": row["name"]} for row in ROWS],
    ),
    "columns dropped": _column(IntegerType(), 1, "id", _of("id"), required=True),
    "columns in another order": Evolution(WRITTEN.fields[::-1], ROWS),
    "a column added": _column(LongType(), 20, "new", [None] * 3),
    "a nested column added": _column(_struct(NestedField(21, "a", ListType(22, LongType()))), 20, "new", [None] * 3),
    "a column added with a default": _column(LongType(), 20, "new", [7] * 3, initial_default=7, required=True),
    "a column that is a partition value": Evolution(
        (NestedField(20, "new", StringType()), WRITTEN.fields[0]),
        [{"new": "p", "id": row["id"]} for row in ROWS],
        {20: "p"},
    ),
    "a column dropped and added under its old name": Evolution(
        (NestedField(20, "name", StringType()), NestedField(1, "id", IntegerType(), required=True)),
        [{"name": None, "id": row["id"]} for row in ROWS],
    ),
    "a required column made optional": _column(IntegerType(), 1, "id", _of("id")),
    "int to long": _column(LongType(), 1, "id", _of("id"), required=True),
    "a wider decimal": _column(DecimalType(30, 2), 13, "d", _of("d")),
    "date to timestamp": _column(TimestampType(), 14, "day", [datetime.datetime(1969, 12, 31), None, _SUMMER]),
    "date to timestamp_ns": _column(TimestampNanoType(), 14, "day", [datetime.datetime(1969, 12, 31), None, _SUMMER]),
    "int to long in a struct": _column(
        _struct(NestedField(4, "x", LongType()), NestedField(5, "y", StringType())), 3, "s", _of("s")
    ),
    "float to double in a list": _column(
        ListType(7, _struct(NestedField(8, "x", DoubleType(), required=True), NestedField(9, "y", StringType()))),
        6,
        "l",
        _of("l"),
    ),
    "int to long in a map": _column(MapType(11, StringType(), 12, LongType()), 10, "m", _of("m")),
    "a nested field renamed": _column(
        _struct(NestedField(4, "y", IntegerType()), NestedField(5, "x", StringType())),
        3,
        "s",
        [row and {"y": row["x"], "x": row["y"]} for row in _of("s")],
    ),
    "nested fields in another order": _column(
        _struct(NestedField(5, "y", StringType()), NestedField(4, "x", IntegerType())),
        3,
        "s",
        [row and {"y": row["y"], "x": row["x"]} for row in _of("s")],
    ),
    "a field added to a struct": _column(
        _struct(*_INNER.fields, NestedField(20, "z", LongType(), initial_default=3)),
        3,
        "s",
        [row and {**row, "z": 3} for row in _of("s")],
    ),
    "a field dropped from a struct": _column(
        _struct(NestedField(5, "y", StringType())), 3, "s", [row and {"y": row["y"]} for row in _of("s")]
    ),
    "every field of a struct replaced": _column(
        _struct(NestedField(20, "z", LongType())), 3, "s", [row and {"z": None} for row in _of("s")]
    ),
    "a field added to the structs of a list": _column(
        ListType(7, _struct(NestedField(20, "z", StringType()), *_ITEM.fields)),
        6,
        "l",
        [row and [item and {"z": None, **item} for item in row] for row in _of("l")],
    ),
    "every field of the structs of a list replaced": _column(
        ListType(7, _struct(NestedField(20, "z", StringType()))),
        6,
        "l",
        [row and [item and {"z": None} for item in row] for row in _of("l")],
    ),
    "nothing of the file, with positions": Evolution(
        (NestedField(20, "new", LongType()), _POS), [{"new": None, _POS.name: at} for at in range(3)]
    ),
    "a column with positions": Evolution(
        (_POS, NestedField(2, "name", StringType())),
        [{_POS.name: at, "name": row["name"]} for at, row in enumerate(ROWS)],
    ),
}


class EvolutionChecks(FormatChecks):
    """Checks of reading a file under another schema than its writer's."""

    @pytest.mark.parametrize("change", EVOLUTIONS)
    def test_a_file_is_read_under_a_later_schema(self, file_format: FileFormat, change: str) -> None:
        """If this fails, the reader goes by name or place, guesses ids, or loses rows when it reads few columns."""
        evolution = EVOLUTIONS[change]
        location = self._written(file_format)
        schema = Schema(*evolution.fields)
        arrow = schema_to_arrow(schema)
        columns = [array_of(f.type, [row[f.name] for row in evolution.rows]) for f in arrow]
        got = self.read_as(file_format, location, schema, evolution.constants)
        self.check_equal(got, pa.Table.from_arrays(columns, schema=arrow))

    @pytest.mark.parametrize(
        "wrong",
        [
            NestedField(20, "needed", LongType(), required=True),
            NestedField(2, "name", LongType()),
            NestedField(3, "s", StringType()),
            NestedField(1, "id", ListType(20, IntegerType())),
            NestedField(6, "l", ListType(7, StructType(NestedField(9, "y", DoubleType())))),
        ],
        ids=[
            "a required column is missing",
            "text as long",
            "struct as a string",
            "int as list",
            "text as double, inside",
        ],
    )
    def test_a_schema_that_does_not_fit_is_refused(self, file_format: FileFormat, wrong: NestedField) -> None:
        """If this fails, the reader states another type than the file has, and values are misread."""
        location = self._written(file_format)
        with pytest.raises(InvalidFile) as caught:
            self.read_as(file_format, location, Schema(wrong))
        assert location in str(caught.value)

    def _written(self, file_format: FileFormat) -> str:
        arrow = schema_to_arrow(WRITTEN)
        columns = [array_of(f.type, [row[f.name] for row in ROWS]) for f in arrow]
        location, _ = self.write(file_format, WRITTEN, pa.Table.from_arrays(columns, schema=arrow))
        return location
