"""Filters over files of many small parts with later changes of columns, compared with a naive evaluation."""

from __future__ import annotations

import datetime as dt
import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from tables import memory_catalog, new_table

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
TYPES = {"a": "int", "b": "float", "c": "decimal(9,2)", "d": "date", "e": "string"}
PROMOTED = {"int": "long", "float": "double", "decimal(9,2)": "decimal(25,2)", "date": "timestamp"}
ROWS = {"parquet": 60, "avro": 40, "orc": 2_100}  # an ORC stripe has at least 1,024
SMALL_PARTS = {
    "write.orc.compression-codec": "uncompressed",
    "write.parquet.page-row-limit": "4",
    "write.orc.stripe-size-bytes": "1",
    "write.orc.bloom.filter.columns": ",".join(TYPES),
    **{f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in TYPES},
}
OTHERS = [NestedField(1, "id", "long", required=True), NestedField(2, "pad", "binary")]
EPOCH = dt.date(1970, 1, 1)


def value_of(kind: str, number: int) -> Any:
    """The value of a type for a number; values have the same order as their numbers."""
    match kind:
        case "int" | "long":
            return number
        case "float" | "double":
            return number / 4
        case "date":
            return EPOCH + dt.timedelta(days=number)
        case "timestamp":
            return dt.datetime.combine(EPOCH, dt.time()) + dt.timedelta(days=number)
        case "string":
            return f"k{number + 1000:05d}"
    return Decimal(number).scaleb(-2)


def column_of(kind: str, size: int, random: Random) -> list[Any]:
    """Values that rise through the file, so that its parts differ, with runs of nulls and now and then a NaN."""
    step, start = random.choice([0, 1, 3]), random.randint(-60, 60)
    made = [value_of(kind, start + step * (at * 12 // size) + random.randint(0, 2)) for at in range(size)]
    if kind == "float" and random.random() < 0.5:
        for at in random.sample(range(size), size // 20):
            made[at] = math.nan
    if random.random() < 0.7:
        first = random.randrange(size)
        made[first : first + size // 2] = [None] * len(made[first : first + size // 2])
    return made


def padding(size: int, random: Random) -> list[bytes]:
    """Random bytes that make rows long enough for ORC to end a stripe."""
    return [random.randbytes(100) for _ in range(size)]


@dataclass(frozen=True)
class Leaf:
    """A predicate, its negation, and the result of each for a value that is not null."""

    build: Callable[[str, Any], BooleanExpression]
    opposite: Callable[[str, Any], BooleanExpression]
    test: Callable[[Any, Any], bool]
    opposite_test: Callable[[Any, Any], bool]


LEAVES = [
    Leaf(LessThan, GreaterThanOrEqual, operator.lt, operator.ge),
    Leaf(LessThanOrEqual, GreaterThan, operator.le, operator.gt),
    Leaf(EqualTo, NotEqualTo, operator.eq, operator.ne),
    Leaf(In, NotIn, lambda value, some: value in some, lambda value, some: value not in some),
]
PREFIX = Leaf(StartsWith, NotStartsWith, str.startswith, lambda value, start: not value.startswith(start))


class Pruned:
    """A table of files with many parts, and its rows by the ids of fields."""

    def __init__(self, data: st.DataObject, file_format: str, version: int) -> None:
        self.draw, self.file_format, self.version = data.draw, file_format, version
        self.random = Random(data.draw(st.integers(0, 2**32)))
        self.names, self.ids = count(), count()
        self.defaults: dict[int, Any] = {}
        self.rows: list[dict[int, Any]] = []
        fields = [NestedField(at, name, kind) for at, (name, kind) in enumerate(TYPES.items(), 3)]
        group_bytes = str(self.draw(st.sampled_from([1, 300])))
        properties = {**SMALL_PARTS, "format-version": str(version), "write.format.default": file_format}
        properties["write.parquet.row-group-size-bytes"] = group_bytes
        self.table: Table = new_table(catalog=memory_catalog(), schema=Schema(*OTHERS, *fields), properties=properties)

    @property
    def columns(self) -> list[NestedField]:
        return [field for field in self.table.schema().fields if field.name not in ("id", "pad")]

    def append(self) -> None:
        size = ROWS[self.file_format]
        ids = [next(self.ids) for _ in range(size)]
        columns = {field.name: column_of(str(field.field_type), size, self.random) for field in self.columns}
        schema = schema_to_arrow(self.table.schema())
        self.table.append(pa.table({"id": ids, "pad": padding(size, self.random), **columns}, schema=schema))
        numbers = {field.name: field.field_id for field in self.table.schema().fields}
        for at, number in enumerate(ids):
            row = {numbers[name]: held[at] for name, held in columns.items()}
            self.rows.append({numbers["id"]: number, **row})

    def change(self) -> None:
        """Change each column in one way or none, and add one."""
        for field in self.columns:
            change = self.random.choice([self.promote, self.rename, self.replace, None])
            if change is not None:
                change(field)
        self.add(f"x{next(self.names)}", self.random.choice([*TYPES.values()]))

    def promote(self, field: NestedField) -> None:
        kind = PROMOTED.get(str(field.field_type))
        if kind is not None and (kind != "timestamp" or self.version == 3):
            with self.table.update_schema() as update:
                update.update_column(field.name, kind)

    def rename(self, field: NestedField) -> None:
        with self.table.update_schema() as update:
            update.rename_column(field.name, f"n{next(self.names)}")

    def replace(self, field: NestedField) -> None:
        """Drop a column, and add another under its name."""
        with self.table.update_schema() as update:
            update.delete_column(field.name)
        self.add(field.name, self.random.choice([*TYPES.values()]))

    def add(self, name: str, kind: str) -> None:
        default = None
        if self.version == 3 and self.random.random() < 0.5:
            default = value_of(kind, self.random.randint(-60, 60))
        with self.table.update_schema() as update:
            update.add_column(name, kind, default_value=default)
        self.defaults[self.table.schema().find_field(name).field_id] = default

    def seen(self, row: dict[int, Any], field: NestedField) -> Any:
        value = row.get(field.field_id, self.defaults.get(field.field_id))
        if str(field.field_type) == "timestamp" and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return dt.datetime.combine(value, dt.time())
        return value

    def filter(self, depth: int) -> tuple[BooleanExpression, Callable[[dict[int, Any]], bool]]:
        if depth and self.random.random() < 0.5:
            (left, first), (right, second) = self.filter(depth - 1), self.filter(depth - 1)
            if self.random.random() < 0.5:
                return And(left, right), lambda row: first(row) and second(row)
            return Or(left, right), lambda row: first(row) or second(row)
        return self.leaf(self.random.choice(self.columns))

    def leaf(self, field: NestedField) -> tuple[BooleanExpression, Callable[[dict[int, Any]], bool]]:
        name, kind, chance = field.name, str(field.field_type), self.random.random()
        if chance < 0.1:
            return IsNull(name), lambda row: self.seen(row, field) is None
        if chance < 0.2:
            return NotNull(name), lambda row: self.seen(row, field) is not None
        if chance < 0.3 and kind in ("float", "double"):
            return IsNaN(name), lambda row: self.is_nan(row, field)
        if chance < 0.4 and kind in ("float", "double"):
            return NotNaN(name), lambda row: not self.is_nan(row, field)
        leaf, literal = self.random.choice(LEAVES), self.literal(kind)
        if kind == "string" and chance < 0.5:
            leaf, literal = PREFIX, literal[: self.random.randint(1, 6)]
        elif leaf.build is In:
            literal = (literal, *(self.literal(kind) for _ in range(self.random.randint(0, 3))))
        build, test = self.random.choice(
            [
                (leaf.build, leaf.test),
                (leaf.opposite, leaf.opposite_test),
                (lambda *given: Not(leaf.build(*given)), leaf.opposite_test),
            ]
        )
        return build(
            name, literal
        ), lambda row: self.seen(row, field) is not None and test(self.seen(row, field), literal)

    def literal(self, kind: str) -> Any:
        """A value that the files may hold, or a value of the wider type that lies between or beyond these values."""
        value = value_of(kind, self.random.randint(-65, 100))
        if self.random.random() < 0.8:
            return value
        match kind:
            case "long":
                return self.random.choice([2**40, -(2**40)])
            case "double":
                return value + 0.1
            case "decimal(25,2)":
                return Decimal("12345678901234567890123.45")
            case "timestamp":
                return value + dt.timedelta(microseconds=1)
        return value

    def is_nan(self, row: dict[int, Any], field: NestedField) -> bool:
        value = self.seen(row, field)
        return value is not None and math.isnan(value)

    def check(self) -> None:
        expression, matches = self.filter(2)
        number = self.table.schema().find_field("id").field_id
        expected = [row[number] for row in self.rows if matches(row)]
        scan = self.table.scan(expression, ("id",))
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, expression
        assert scan.count() == len(expected), expression
        split = replace(scan, options={"split-size": "1"})
        assert split.count() == len(expected), expression


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("SCAN-44")
@settings(max_examples=300 if SOAK else 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_part_of_a_file_is_passed_over_that_has_matching_rows(file_format, version, data):
    pruned = Pruned(data, file_format, version)
    pruned.append()
    for _ in range(data.draw(st.integers(1, 2))):
        pruned.change()
        pruned.append()
    for _ in range(6):
        pruned.check()


@pytest.mark.slow
@pytest.mark.spec("SCAN-44")
def test_filters_at_the_bounds_of_parts_find_every_row_of_promoted_and_missing_columns(file_format):
    """Every comparison with values in the first, a middle and the last part, before and after each promotion.

    A few random filters can pass although one bound of a promoted column is wrong; some of these filters meet every
    bound.
    """
    fields = [NestedField(at, name, kind) for at, (name, kind) in enumerate(TYPES.items(), 3)]
    size = ROWS[file_format]
    properties = {**SMALL_PARTS, "format-version": "3", "write.format.default": file_format}
    properties["write.parquet.row-group-size-bytes"] = "300"
    table = new_table(catalog=memory_catalog(), schema=Schema(*OTHERS, *fields), properties=properties)
    held = [at * 60 // size - 30 for at in range(size)]

    def append(first):
        columns = {name: [value_of(str(table.schema().find_field(name).field_type), n) for n in held] for name in TYPES}
        more = {name: [value_of("int", n) for n in held] for name in table.schema().column_names if name[0] == "x"}
        ids = {"id": range(first, first + size), "pad": padding(size, Random(first))}
        table.append(pa.table({**ids, **columns, **more}, schema=schema_to_arrow(table.schema())))

    append(0)
    with table.update_schema() as update:
        for name, kind in TYPES.items():
            if kind in PROMOTED:
                update.update_column(name, PROMOTED[kind])
        update.add_column("x", "int", default_value=7)
        update.add_column("xn", "int")
    append(size)
    numbers = {**dict.fromkeys(TYPES, 2 * held), "x": [7] * size + held, "xn": [None] * size + held}
    for name, values in numbers.items():
        kind = str(table.schema().find_field(name).field_type)
        for leaf in LEAVES[:3]:
            for build, test in ((leaf.build, leaf.test), (leaf.opposite, leaf.opposite_test)):
                for literal in (-30, 1, 29):
                    expected = [at for at, value in enumerate(values) if value is not None and test(value, literal)]
                    scan = table.scan(build(name, value_of(kind, literal)), ("id",))
                    assert scan.to_arrow()["id"].to_pylist() == expected, (name, build, literal)


def test_the_files_have_several_parts(make, file_format):
    table = make(*OTHERS, properties={**SMALL_PARTS, "write.parquet.row-group-size-bytes": "300"})
    size = ROWS[file_format]
    columns = {"id": range(size), "pad": padding(size, Random(1))}
    table.append(pa.table(columns, schema=schema_to_arrow(table.schema())))
    (task,) = table.scan().plan_files()
    assert file_format == "avro" or len(task.file.split_offsets) > 2
