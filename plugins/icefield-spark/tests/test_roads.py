"""Both roads to a data frame give what the kernel's scan gives, however the table evolved and whatever is asked.

A table goes through steps that a property test draws; then every column is filtered in several ways, and what each road
gives is compared with the kernel's scan.
"""

from __future__ import annotations

import math
import os
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield import Catalog, Table
from icefield.errors import UnsupportedFeature
from icefield.expressions import (
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    NotEqualTo,
    NotIn,
    NotNull,
    StartsWith,
)
from icefield.toolkit import schema_to_arrow

pytestmark = pytest.mark.spark
SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
FIRST = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("single", pa.float32()),
        ("price", pa.decimal128(9, 2)),
        ("word", pa.string()),
        ("other", pa.string()),
        ("raw", pa.binary()),
        ("four", pa.binary(4)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("key", pa.uuid()),
        ("part", pa.string()),
        ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("scores", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
    ]
)
FLOATS = [math.nan, -0.0, 0.0, 1.0, 2.5, -7.25]
VALUES: list[tuple[Callable[[pa.DataType], bool], Callable[[int], Any]]] = [
    (pa.types.is_integer, lambda i: i % 9),
    (pa.types.is_floating, lambda i: FLOATS[i % 6]),
    (pa.types.is_decimal, lambda i: Decimal(i % 11) + Decimal("0.50")),
    (pa.types.is_string, lambda i: ("w1", "w 2", "c%{x}", "", "zü")[i % 5]),
    (lambda kind: kind == pa.binary(16), lambda i: uuid.UUID(int=i % 7 + (1 << 127) * (i % 2)).bytes),
    (pa.types.is_fixed_size_binary, lambda i: bytes([i % 3, 0, 255, i % 2])),
    (pa.types.is_binary, lambda i: bytes([200 * (i % 2), i % 5])),
    (pa.types.is_date, lambda i: date(2024, 3, 8 + i % 6)),
]


def value(kind: pa.DataType, i: int) -> Any:
    """The i-th value of a type: few different ones, and nulls."""
    if i % 5 == 4:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(field.type, i + at) for at, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(f"k{at}", value(kind.item_type, i + at)) for at in range(i % 3)]
    if pa.types.is_list(kind):
        return [value(kind.value_type, i + at) for at in range(i % 3)]
    if pa.types.is_timestamp(kind):
        return datetime(2024, 3, 10, i % 24, 30, tzinfo=UTC if kind.tz else None)
    return next(make for fits, make in VALUES if fits(kind))(i)


def literals(kind: pa.DataType) -> list[Any]:
    """A few values of a type, as filters have them."""
    found = {repr(made): made for made in (value(kind, i) for i in range(12)) if made is not None}
    some = [each for each in found.values() if each == each][:5]
    return [uuid.UUID(bytes=each) for each in some] if kind == pa.binary(16) else some


def rows(table: Table, first: int, count: int = 12) -> pa.Table:
    """Rows of a table's columns as they are now."""
    columns = []
    schema = schema_to_arrow(table.schema())
    for at, field in enumerate(schema):
        made = [value(field.type, i * (at + 1) + at) for i in range(first, first + count)]
        made = list(range(first, first + count)) if field.name == "id" else made
        columns.append(pa.array(made, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def filters(table: Table) -> list[Any]:
    """Every column asked in the ways that its type allows."""
    found: list[Any] = []
    for path, kind in leaves(table):
        found += [IsNull(path), NotNull(path)]
        if pa.types.is_nested(kind):
            continue
        some = literals(kind)
        found += [EqualTo(path, some[0]), NotEqualTo(path, some[1]), LessThan(path, some[1])]
        found += [GreaterThanOrEqual(path, some[0]), In(path, some[:3]), NotIn(path, some[1:3])]
        if pa.types.is_floating(kind):
            found += [IsNaN(path), EqualTo(path, 0.0), GreaterThanOrEqual(path, 0.0), LessThan(path, 0.0)]
        if pa.types.is_string(kind):
            found += [StartsWith(path, "w"), ~StartsWith(path, "w ")]
    return found


def leaves(table: Table) -> list[tuple[tuple[str, ...], pa.DataType]]:
    found = []
    for field in schema_to_arrow(table.schema()):
        found.append(((field.name,), field.type))
        if pa.types.is_struct(field.type):
            found += [((field.name, child.name), child.type) for child in field.type]
    return found


def plain(held: Any) -> Any:
    """A value so that equal ones look alike."""
    if isinstance(held, dict):
        return [(name, plain(each)) for name, each in held.items()]
    if isinstance(held, list | tuple):
        return [plain(each) for each in held]
    if isinstance(held, datetime) and held.tzinfo is not None:
        return held.astimezone(UTC).isoformat()
    if isinstance(held, float):
        return "nan" if math.isnan(held) else held + 0.0
    if isinstance(held, bytes) and len(held) == 16:
        held = uuid.UUID(bytes=held)
    return str(held) if isinstance(held, uuid.UUID) else held


def plain_rows(table: pa.Table, names: list[str]) -> list[str]:
    return sorted(repr([plain(row[name]) for name in names]) for row in table.select(names).to_pylist())


def of_spark(frames: list[Any]) -> list[list[str]]:
    """The rows of several frames of the same columns, by one job for ten of them."""
    from pyspark.sql import functions

    if len(frames) > 10:
        return [*of_spark(frames[:10]), *of_spark(frames[10:])]
    names = frames[0].columns
    marked = [frame.select(functions.lit(at).alias("frame__"), "*") for at, frame in enumerate(frames)]
    found = reduce(lambda left, right: left.union(right), marked).toArrow()
    return [plain_rows(found.filter(pc.equal(found["frame__"], at)), names) for at in range(len(frames))]


class Evolving:
    """A table that changes step by step."""

    def __init__(self, catalog: Catalog, name: str) -> None:
        properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
        self.table = catalog.create_table(name, FIRST, partition_spec=["part"], properties=properties)
        self._next = self._steps = 0
        self.append()

    def append(self) -> None:
        self.table.append(rows(self.table, self._next))
        self._next += 12

    def take(self, step: str) -> None:
        self._steps += 1
        if step in SCHEMA_STEPS:
            self._evolve(step)
        elif step in ("orc", "parquet"):
            with self.table.transaction() as transaction:
                transaction.set_properties({"write.format.default": step})
        elif step == "unpartition" and self.table.spec().fields:
            with self.table.update_spec() as update_spec:
                update_spec.remove_field("part")
        elif step == "delete":
            self.table.delete(In("id", [self._next - 3, self._next - 15]))
        elif step == "append":
            self.append()

    def _evolve(self, step: str) -> None:
        names = {field.name for field in self.table.schema().fields}
        new = f"new{self._steps}"
        with self.table.update_schema() as update:
            if step == "rename" and "small" in names:
                update.rename_column("small", new)
                if self._has("home.zip"):
                    update.rename_column("home.zip", f"{new}zip")
            elif step == "swap":
                update.rename_column("word", "other__").rename_column("other", "word").rename_column("other__", "other")
            elif step == "drop and add again" and "raw" in names:
                update.delete_column("raw")
            elif step == "drop and add again":
                update.add_column("raw", "string")
            elif step == "add":
                update.add_column(new, "int")
                update.add_column(f"{new}d", "string", default_value="given")
                update.add_column(("home", new), "double")
            elif step == "promote":
                promoted = {"small": "long", "single": "double", "price": "decimal(12, 2)", "home.zip": "long"}
                for name, kind in promoted.items():
                    if self._has(name):
                        update.update_column(name, kind)
            elif step == "reorder":
                update.move_first("part")

    def _has(self, name: str) -> bool:
        return self.table.schema().has_field(name)


SCHEMA_STEPS = ["rename", "swap", "drop and add again", "add", "promote", "reorder"]
STEPS = [*SCHEMA_STEPS, "unpartition", "append", "append", "delete", "orc", "parquet"]
EVERY = ["rename", "swap", "append", "drop and add again", "add", "append", "drop and add again", "promote", "append"]


def check(ice: Any, name: str, table: Table, asked: list[Any]) -> None:
    """Both roads against the kernel, with all columns, with few, and with the file and position of each row."""
    columns = [field.name for field in table.schema().fields]
    wanted = [plain_rows(table.scan(each).to_arrow(), columns) for each in asked]
    frames = [ice.table(name, each) for each in asked]
    for each, found, expected in zip(asked, of_spark(frames), wanted, strict=True):
        assert found == expected, each
    few = asked[::7]
    for each, found in zip(few, of_spark([ice.table(name, each, road="arrow") for each in few]), strict=True):
        assert found == plain_rows(table.scan(each).to_arrow(), columns), each
    about = ["_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_deleted", "id"]
    expected = plain_rows(table.scan(selected_fields=tuple(about)).to_arrow(), about)
    assert of_spark([ice.table(name, columns=about), ice.table(name, columns=about, road="arrow")]) == [expected] * 2


@pytest.mark.slow
@pytest.mark.counted
@pytest.mark.spec("PRJ-01", "PRJ-16")
def test_both_roads_read_every_evolution_under_every_filter(catalog: Catalog, ice: Any) -> None:
    evolving = Evolving(catalog, "db.every")
    for step in EVERY:
        evolving.take(step)
    chosen = {(each.road, each.reason) for each in ice.explain("db.every").files}
    assert {str(road) for road, _ in chosen} == {"spark"}, chosen
    check(ice, "db.every", evolving.table, filters(evolving.table)[:: 1 if SOAK else 9])
    for step in ("reorder", "unpartition", "orc", "append", "delete", "parquet", "append"):
        evolving.take(step)
    roads = {(str(each.road), each.reason) for each in ice.explain("db.every").files}
    assert {("spark", ""), ("arrow", "it is orc")} <= roads
    assert any(each.deletes and str(each.road) == "spark" for each in ice.explain("db.every").files)
    check(ice, "db.every", evolving.table, filters(evolving.table)[:: 5 if SOAK else 25])


@pytest.mark.slow
@settings(max_examples=60 if SOAK else 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(STEPS), max_size=6), st.data())
def test_both_roads_read_whatever_a_table_went_through(
    catalog: Catalog, ice: Any, steps: list[str], data: st.DataObject
) -> None:
    name = f"db.t{uuid.uuid4().hex}"
    evolving = Evolving(catalog, name)
    for step in (*steps, "append"):
        evolving.take(step)
    possible = filters(evolving.table)
    places = data.draw(st.lists(st.integers(0, len(possible) - 1), min_size=4, max_size=8, unique=True))
    check(ice, name, evolving.table, [possible[at] for at in places])


@pytest.mark.slow
def test_filters_of_spark_on_a_column_that_took_the_name_of_another(catalog: Catalog, ice: Any) -> None:
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = catalog.create_table("db.swapped", columns)
    table.append(pa.table({"a": range(10_000), "b": range(100_000, 110_000)}, schema=columns))
    with table.update_schema() as update:
        update.rename_column("a", "c").rename_column("b", "a").rename_column("c", "b")
    with table.update_schema() as update:
        update.delete_column("a").add_column("d", "long")
    with table.update_schema() as update:
        update.rename_column("d", "a")
    table.append(pa.table({"b": [5], "a": [5]}))
    for road in ("auto", "arrow"):
        frame = ice.table("db.swapped", road=road)
        assert [frame.where(each).count() for each in ("b = 5", "a is null", "a = 5")] == [2, 10_000, 1]
    assert {str(each.road) for each in ice.explain("db.swapped").files} == {"spark"}


@pytest.mark.slow
def test_the_roads_give_one_schema_unless_sparks_reader_is_asked_for(ice: Any, people: Table) -> None:
    for columns in (None, ["name", "home"], ["id"], ["_file", "_pos", "_spec_id", "_deleted", "id"]):
        frame = ice.table("db.people", columns=columns)
        assert frame.schema == ice.table("db.people", columns=columns, road="arrow").schema
        assert ice.explain(frame).count_by_road() == {"spark": 1}
    assert not ice.table("db.people").schema["id"].nullable
    assert ice.table("db.people", road="spark").schema["id"].nullable
    assert ice.count("db.people") == ice.count("db.people", "id < 4") == 3
    for road in ("auto", "spark"):
        assert sorted(row.id for row in ice.table("db.people", road=road).collect()) == [1, 2, 3]


@pytest.mark.slow
def test_the_least_and_the_greatest_whole_numbers_are_found(catalog: Catalog, ice: Any) -> None:
    columns = pa.schema([("n", pa.int32()), ("m", pa.int64())])
    some = {"n": [-(2**31), -1, 2**31 - 1], "m": [-(2**63), 2**31, 2**63 - 1]}
    catalog.create_table("db.extremes", columns).append(pa.table(some, columns))
    for name, values in some.items():
        for at, value in enumerate(values):
            found = ice.table("db.extremes", EqualTo(name, value), road="spark").collect()
            assert [row[name] for row in found] == [value]
            assert ice.table("db.extremes", In(name, values[at:]), road="spark").count() == 3 - at


@pytest.mark.slow
def test_negative_zeros_are_found_by_filters_of_spark(catalog: Catalog, ice: Any) -> None:
    columns = pa.schema([("x", pa.float64()), ("s", pa.struct([("y", pa.float32())]))])
    table = catalog.create_table("db.zeros", columns)
    table.append(pa.table({"x": [-0.0] * 9, "s": [{"y": -0.0}] * 9}, schema=columns))
    frame = ice.table("db.zeros", road="spark")
    for text in ("x >= 0D", "x = 0D", "x in (0D, 1D)", "s.y >= 0", "s.y = 0"):
        assert frame.where(text).count() == 9, text


@pytest.mark.slow
def test_nans_are_found_by_filters_of_spark_as_numbers_that_are_greater_than_all(catalog: Catalog, ice: Any) -> None:
    columns = pa.schema([("n", pa.int64()), ("x", pa.float32()), ("s", pa.struct([("y", pa.float64())]))])
    table = catalog.create_table("db.numbers", columns)
    for n, first, last in ((1, 0.0, math.nan), (3, 1.0, 2.0)):
        rows = {"n": [n, n + 1], "x": [first, last], "s": [{"y": first}, {"y": last}]}
        table.append(pa.table(rows, schema=columns))
    frame = ice.table("db.numbers", road="spark")
    greater = (
        "x > 9",
        "x >= 2.5 AND n > 1",
        "s.y > 9",
        "s.y > 9 AND n < 3",
        "x = 'NaN'",
        "NOT x < 9",
        "x > 9 OR n > 9",
    )
    for text in greater:
        found = [row.n for row in frame.where(text).collect()]
        assert found == [2], text
    assert frame.where("x < 9").count() == 3
    assert frame.schema["x"].dataType.simpleString() == "float"
    without = ice.table("db.numbers", "n > 2", columns=["x"], road="spark").where("x < 9")
    pushed = without._jdf.queryExecution().toString()
    assert "LessThan(x,9.0)" in pushed, "where no NaN is counted, bounds are of use"


@pytest.mark.slow
def test_a_file_that_sparks_reader_would_leave_out_is_read_in_arrow(catalog: Catalog, ice: Any, tmp_path: Any) -> None:
    columns = pa.schema([("a", pa.int64())])
    table = catalog.create_table("db.hidden", columns)
    source = catalog.create_table("db.source", columns)
    source.append(pa.table({"a": [1, 2]}, schema=columns))
    for name in ("_hidden.parquet", "a{b}[c]*?#.parquet", "two words%20.parquet", "same.parquet"):
        path = tmp_path / "odd" / name
        path.parent.mkdir(exist_ok=True)
        (file,) = source.inspect.data_files()["file_path"].to_pylist()
        shutil.copy(file.removeprefix("file://"), path)
        table.add_files([f"file://{path}"])
    roads = {each.location.rpartition("/")[2]: str(each.road) for each in ice.explain("db.hidden").files}
    assert roads.pop("_hidden.parquet") == "arrow"
    assert set(roads.values()) == {"spark"}
    assert ice.table("db.hidden").count() == 8
    with pytest.raises(UnsupportedFeature, match=r"_hidden\.parquet: Spark leaves out files of such a name"):
        ice.table("db.hidden", road="spark")


def test_footers_go_through_the_guards_of_the_format(catalog: Catalog, ice: Any) -> None:
    columns = pa.schema([("a", pa.int64())])
    table = catalog.create_table("db.guarded", columns)
    for first in (0, 10, 20):
        table.append(pa.table({"a": range(first, first + 10)}, schema=columns))
    paths = [path.removeprefix("file://") for path in table.inspect.data_files()["file_path"].to_pylist()]
    with_ids = pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table({"a": range(7)}, schema=with_ids), paths[0])
    with open(paths[1], "r+b") as file:
        file.seek(-40, os.SEEK_END)
        file.write(b"\xff" * 30)
    reasons = {file.location.removeprefix("file://"): file.reason for file in ice.explain("db.guarded").files}
    assert reasons == {
        paths[0]: "it holds 7 rows, and its manifest says 10",
        paths[1]: "its footer cannot be read",
        paths[2]: "",
    }


def test_a_table_of_a_known_size_is_broadcast_when_it_is_small_and_never_when_it_is_large(
    catalog: Catalog, ice: Any, spark: Any
) -> None:
    columns = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for name, count in (("db.small", 100), ("db.large", 2_000_000)):
        table = catalog.create_table(name, columns)
        table.append(pa.table({"id": range(count), "text": ["x"] * count}, schema=columns))
    small, large = (ice.table(name, road="arrow") for name in ("db.small", "db.large"))
    plans = [
        spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")
        for frame in (large.join(small, "id"), large.join(large.select("id"), "id"))
    ]
    assert ["BroadcastHashJoin" in plan for plan in plans] == [True, False]


@pytest.mark.slow
def test_days_that_javas_old_calendar_lacks_are_found_on_every_road(spark: Any, ice: Any, catalog: Catalog) -> None:
    # Filters of Spark's reach Parquet as values of this calendar, which goes from 4 to 15 October 1582.
    days = [date(1582, 10, day) for day in (4, 10, 15)] + [date(2024, 3, 1)]
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    table = catalog.create_table("db.old", schema)
    for number, day in enumerate(days):
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        table.append(pa.table({"id": [number], "day": [day], "at": [at]}, schema=schema))
    for column, literal in (("day", "DATE '1582-10-10'"), ("at", "TIMESTAMP '1582-10-10 12:00:00+00:00'")):
        for sign, found in (("=", [1]), (">=", [1, 2, 3]), (">", [2, 3]), ("<=", [0, 1])):
            where = f"{column} {sign} {literal}"
            assert sorted(row.id for row in ice.sql(f"SELECT id FROM db.old WHERE {where}").collect()) == found, where
            for road in ("spark", "arrow"):
                frame = ice.table("db.old", columns=["id", column], road=road).where(where)
                assert sorted(row.id for row in frame.collect()) == found, (where, road)
    narrow = ice.table("db.old", "at >= '1582-10-10T12:00:00+00:00'", columns=["id"], road="spark")
    assert sorted(row.id for row in narrow.collect()) == [1, 2, 3]
    ice.sql("DELETE FROM db.old WHERE day = DATE '1582-10-10' AND id + 1 = 2")
    assert sorted(row.id for row in ice.table("db.old").collect()) == [0, 2, 3]
