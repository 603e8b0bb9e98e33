"""The data source as Spark's planning process uses it, without a Spark session."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidExpression, NoSuchSnapshot, NoSuchTable
from icefield_spark import IcefieldSession
from icefield_spark.data_source import IcefieldDataSource
from icefield_spark.reader import IcefieldReader
from icefield_spark.source import QuerySource
from pyspark.sql import types as spark
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, InputPartition

Make = Callable[..., IcefieldDataSource]


@pytest.fixture
def make(people: icefield.Table, options: dict[str, str]) -> Make:
    def made(**more: str) -> IcefieldDataSource:
        given = {**options, "path": "db.people", **{key.replace("_", "-"): value for key, value in more.items()}}
        return IcefieldDataSource(CaseInsensitiveDict(given))

    return made


def columns(text: str) -> spark.StructType:
    """A schema as ``.schema("id long, name string")`` gives it."""
    kinds = {"long": spark.LongType(), "int": spark.IntegerType(), "string": spark.StringType()}
    fields = []
    for part in text.split(", "):
        name, kind, *rest = part.split(" ")
        fields.append(spark.StructField(name, kinds[kind], rest != ["not", "null"]))
    return spark.StructType(fields)


def read(source: IcefieldDataSource, schema: spark.StructType | None = None) -> list[dict[str, Any]]:
    """The rows as a query gets them: pickled between its steps, as Spark does."""
    reader = source.reader(schema if schema is not None else source.schema())
    assert isinstance(reader, IcefieldReader)
    shipped = pickle.loads(pickle.dumps(reader))
    partitions = pickle.loads(pickle.dumps(list(reader.partitions()))) or [InputPartition(None)]
    return [row for partition in partitions for batch in shipped.read(partition) for row in batch.to_pylist()]


def test_all_columns_come_in_the_tables_order(make: Make) -> None:
    source = make()
    assert source.schema().fieldNames() == ["id", "name", "home"]
    assert read(source)[0] == {"id": 1, "name": "ann", "home": {"city": "Oslo", "zip": 150}}


def test_a_schema_of_ones_own_prunes_columns_and_parts_of_them_in_its_own_order(make: Make) -> None:
    home = spark.StructType([spark.StructField("zip", spark.IntegerType())])
    wanted = spark.StructType([spark.StructField("home", home), spark.StructField("id", spark.LongType())])
    source = make()
    reader = source.reader(wanted)
    assert sorted(reader._scan.projection.column_names) == ["home", "home.zip", "id"]
    assert read(source, wanted) == [
        {"home": {"zip": 150}, "id": 1},
        {"home": None, "id": 2},
        {"home": {"zip": 7}, "id": 3},
    ]


def test_fields_inside_lists_and_maps_are_pruned_too(catalog: icefield.Catalog, options: dict[str, str]) -> None:
    point = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    schema = pa.schema([("l", pa.list_(point)), ("m", pa.map_(pa.string(), point)), ("a.b", pa.int32())])
    table = catalog.create_table("db.deep", schema)
    row = {"l": [{"x": 1, "y": 2}, None], "m": [("k", {"x": 3, "y": 4})], "a.b": 5}
    table.append(pa.Table.from_pylist([row], schema=schema))
    only_y = spark.StructType([spark.StructField("y", spark.IntegerType())])
    wanted = spark.StructType(
        [
            spark.StructField("a.b", spark.IntegerType()),
            spark.StructField("m", spark.MapType(spark.StringType(), only_y)),
            spark.StructField("l", spark.ArrayType(only_y)),
        ]
    )
    source = IcefieldDataSource(CaseInsensitiveDict({**options, "path": "db.deep"}))
    assert read(source, wanted) == [{"a.b": 5, "m": [("k", {"y": 4})], "l": [{"y": 2}, None]}]


def test_metadata_columns_come_when_they_are_named(make: Make, people: icefield.Table) -> None:
    rows = read(make(), columns("_pos long, id long, _file string"))
    file = people.inspect.data_files()["file_path"][0].as_py()
    assert rows == [{"_pos": i, "id": i + 1, "_file": file} for i in range(3)]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("nosuch long", "no column 'nosuch'; it has id, name, home"),
        ("ID long", "no column 'ID'"),
        ("id int", "column 'id' is bigint, not int"),
        ("name string not null", "column 'name' may hold nulls"),
        ("home string", "column 'home' is struct<"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_when_the_query_is_planned(make: Make, wanted: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        make().reader(columns(wanted))


def test_a_required_column_may_be_read_as_one_that_is_or_is_not_nullable(make: Make) -> None:
    for wanted in ("id long", "id long not null"):
        assert read(make(), columns(wanted)) == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_a_query_stays_at_the_version_that_it_met_first(make: Make, people: icefield.Table) -> None:
    source = make()
    schema = source.schema()
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    with people.update_schema() as update:
        update.rename_column("name", "called")
    pinned = pickle.loads(pickle.dumps(source))
    assert [row["id"] for row in read(pinned, schema)] == [1, 2, 3]
    assert [row["id"] for row in read(make())] == [1, 2, 3, 4]


def test_a_query_on_an_empty_table_stays_empty(catalog: icefield.Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    source = IcefieldDataSource(CaseInsensitiveDict({**options, "path": "db.empty"}))
    schema = source.schema()
    assert read(source, schema) == []
    table.append(pa.table({"id": [1]}))
    assert read(source, schema) == []


def test_a_column_added_after_the_last_snapshot_is_read(make: Make, people: icefield.Table) -> None:
    with people.update_schema() as update:
        update.add_column("age", "int")
    assert [row["age"] for row in read(make())] == [None, None, None]


def test_earlier_states_are_read_by_snapshot_by_name_and_by_time(make: Make, people: icefield.Table) -> None:
    first = people.current_snapshot()
    people.manage_snapshots().create_tag(first.snapshot_id, "before").commit()
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    for option in (
        {"snapshot_id": str(first.snapshot_id)},
        {"ref": "before"},
        {"as_of_timestamp": str(first.timestamp_ms)},
    ):
        assert len(read(make(**option))) == 3
    assert len(read(make())) == 4


@pytest.mark.parametrize(
    ("option", "error", "reason"),
    [
        ({"snapshot_id": "1", "ref": "main"}, InvalidArgument, "give one of snapshot-id and ref"),
        ({"snapshot_id": "one"}, InvalidArgument, "'snapshot-id' is a number, not 'one'"),
        ({"snapshot_id": "1"}, NoSuchSnapshot, "no snapshot 1"),
        ({"where": "nosuch = 1"}, InvalidExpression, "nosuch"),
        ({"where": "id ="}, InvalidExpression, "id ="),
        ({"path": ""}, InvalidArgument, "name the table"),
        ({"path": "db.nosuch"}, NoSuchTable, "db.nosuch"),
    ],
)
def test_options_that_cannot_be_are_reported(
    make: Make, option: dict[str, str], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        make(**option).schema()


# -- filters ------------------------------------------------------------------------------------------------------


def test_the_option_where_prunes_files_and_rows(catalog: icefield.Catalog, make: Make) -> None:
    table = catalog.create_table("db.many", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for kind in range(5):
        table.append(pa.table({"id": [kind, 10 * kind], "name": [f"n{kind}"] * 2}))
    source = make(path="db.many", where="id > 1 and id < 5")
    planned = list(source.reader(source.schema())._scan.plan_files())
    assert len(planned) == 4  # only the file of zeros has no row that may match
    assert sorted(row["id"] for row in read(source, columns("id long"))) == [2, 3, 4]


def test_the_option_where_means_the_names_of_the_version_that_is_read(make: Make, people: icefield.Table) -> None:
    first = people.current_snapshot().snapshot_id
    with people.update_schema() as update:
        update.rename_column("name", "called")
        update.add_column("name", "string")
    people.append(pa.table({"id": pa.array([4], pa.int64()), "name": ["ann"]}))
    assert [row["id"] for row in read(make(where="name = 'ann'"))] == [4]
    assert [row["id"] for row in read(make(where="name = 'ann'", snapshot_id=str(first)))] == [1]


def test_a_filter_that_nothing_matches_makes_an_empty_plan(make: Make) -> None:
    assert read(make(where="id > 99")) == []


def test_no_filters_are_taken_from_spark_whose_plans_leak_them_into_other_queries(make: Make) -> None:
    source = make()
    taken = type(source.reader(source.schema())).pushFilters
    assert taken is DataSourceReader.pushFilters


# -- what must not be seen ----------------------------------------------------------------------------------------


def test_nothing_shows_the_properties_of_the_catalog(make: Make, options: dict[str, str], catalog: Any) -> None:
    secret = options["catalog.s3.secret-access-key"]
    source = make()
    reader = source.reader(source.schema())
    writer = source.writer(columns("id long"), False)
    (chunk,) = reader.partitions()
    context = pickle.loads(pickle.dumps(reader))._context
    seen = [source, reader, writer, chunk, context, QuerySource(dict(source.options)), IcefieldSession(None, catalog)]
    for each in [*seen, writer.write(iter(()))]:
        assert secret not in repr(each) + str(each), type(each)


def test_executors_get_what_reading_takes_and_not_the_plan(make: Make) -> None:
    source = make()
    reader = source.reader(source.schema())
    assert pickle.loads(pickle.dumps(reader))._scan is None
