"""The data source in Spark's own reader, writer and SQL, found without registration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

pytestmark = pytest.mark.spark

SWITCH = "spark.sql.python.filterPushdown.enabled"
Found = Callable[[], set[str]]


@pytest.fixture
def read(spark: Any, people: icefield.Table, options: dict[str, str]) -> Callable[..., Any]:
    """``spark.read.format("icefield")`` with the test's catalog."""

    def made(identifier: str = "db.people", schema: str | None = None, **more: str) -> Any:
        reader = spark.read.format("icefield").options(**options, **more)
        return (reader if schema is None else reader.schema(schema)).load(identifier)

    return made


@pytest.fixture
def write(people: icefield.Table, options: dict[str, str]) -> Callable[..., None]:
    """``df.write.format("icefield")`` with the test's catalog."""

    def done(frame: Any, mode: str, **more: str) -> None:
        frame.write.format("icefield").options(**options, **more).mode(mode).save("db.people")

    return done


def ids(table: icefield.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_a_table_is_read_on_stock_settings_without_registration(spark: Any, read: Any, properties: Any) -> None:
    assert spark.conf.get(SWITCH, "false") == "false"
    frame = read().filter("id >= 2 and home is not null").select("id", "home.zip")
    assert frame.collect() == [(3, 7)]
    assert properties["s3.secret-access-key"] not in frame._jdf.queryExecution().toString()


def test_a_schema_of_ones_own_reads_fewer_columns(read: Any) -> None:
    frame = read(schema="home struct<zip: int>, id bigint")
    assert sorted(frame.collect(), key=lambda row: row[1]) == [((150,), 1), (None, 2), ((7,), 3)]


def test_a_schema_that_does_not_fit_is_stated_by_icefield(read: Any) -> None:
    with pytest.raises(PySparkException, match=r"icefield\.errors\.InvalidArgument: column 'id' is bigint, not int"):
        read(schema="id int").collect()


def test_a_table_that_is_not_there_is_stated_when_it_is_named(read: Any) -> None:
    with pytest.raises(AnalysisException, match=r"icefield\.errors\.NoSuchTable: no table db\.nosuch") as found:
        read("db.nosuch")
    assert "Traceback" not in str(found.value)
    assert "data_source.py" not in str(found.value)


@pytest.mark.slow
def test_a_stream_without_bounds_reads_what_there_is_and_goes_on_behind_it(
    spark: Any, people: icefield.Table, options: dict[str, str], write: Any, tmp_path: Path
) -> None:
    target, checkpoint = f"{tmp_path}/rows", f"{tmp_path}/checkpoint"
    for expected in ([1, 2, 3], [1, 2, 3, 7]):
        events = spark.readStream.format("icefield").options(**options).load("db.people").select("id")
        sink = events.writeStream.format("parquet").option("path", target).option("checkpointLocation", checkpoint)
        sink.trigger(availableNow=True).start().awaitTermination(60)
        assert sorted(row.id for row in spark.read.parquet(target).collect()) == expected
        write(spark.range(7, 8), "append")


@pytest.mark.slow
def test_both_sides_of_a_join_with_itself_read_one_version(
    spark: Any, read: Any, people: icefield.Table, write: Any
) -> None:
    frame = read()
    write(spark.range(4, 5), "append")
    assert frame.alias("a").join(frame.alias("b"), "id").count() == 3
    assert read().count() == 4
    assert read(**{"snapshot-id": str(people.current_snapshot().snapshot_id)}).count() == 3


@pytest.mark.slow
def test_rows_are_appended_and_replaced(
    spark: Any, people: icefield.Table, write: Any, data_files: Found, committed: Any
) -> None:
    write(spark.range(4, 6, 1, 2), "append", **{"snapshot-property.job": "nightly"})
    assert ids(people) == [1, 2, 3, 4, 5]
    assert people.current_snapshot().summary["job"] == "nightly"
    assert data_files() == committed("db.people")
    write(spark.range(9, 10), "overwrite", **{"overwrite-where": "id >= 2 and id <= 4"})
    assert ids(people) == [1, 5, 9]
    write(spark.range(7, 8), "overwrite")
    assert ids(people) == [7]


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_the_other_modes_get_what_spark_gives(spark: Any, people: icefield.Table, write: Any, mode: str) -> None:
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write(spark.range(4, 6), mode)
    assert ids(people) == [1, 2, 3]


@pytest.mark.slow
def test_columns_that_do_not_fit_are_stated_before_the_job(spark: Any, people: icefield.Table, write: Any) -> None:
    with pytest.raises(AnalysisException, match="'nosuch' cannot be written: the table has no such column"):
        write(spark.sql("select cast(raise_error('computed') as bigint) as id, 1 as nosuch"), "append")


@pytest.mark.slow
def test_what_a_task_meets_is_cause_alone_alone(read: Any, people: icefield.Table, tmp_path: Path) -> None:
    frame = read()
    (data_file,) = (tmp_path / "warehouse").rglob("*.parquet")
    data_file.unlink()
    with pytest.raises(PySparkException, match=r"icefield\.errors\.FileMissing: .*parquet") as found:
        frame.collect()
    assert "Traceback" not in str(found.value)


@pytest.mark.slow
def test_an_unknown_option_is_refused_before_anything_is_read_or_written(
    spark: Any, people: icefield.Table, read: Any, write: Any
) -> None:
    with pytest.raises(AnalysisException, match="no option 'snapshot-idd'; was 'snapshot-id' meant"):
        read(**{"snapshot-idd": "1"})
    with pytest.raises(AnalysisException, match="'overwrite-schema' is not supported"):
        write(spark.range(4, 6), "overwrite", overwriteSchema="true")
    assert ids(people) == [1, 2, 3]


@pytest.mark.slow
def test_the_summary_names_the_application(spark: Any, people: icefield.Table, write: Any) -> None:
    write(spark.range(4, 5), "append")
    people.refresh()
    assert people.current_snapshot().summary["spark.app.id"] == spark.sparkContext.applicationId


@pytest.mark.slow
def test_columns_are_added_in_the_commit_of_the_rows_that_bring_them(
    spark: Any, people: icefield.Table, write: Any
) -> None:
    frame = spark.sql("select 4L as id, 'x' as `new.name`, named_struct('city', 'Rome', 'street', 'a') as home")
    write(frame, "append", mergeSchema="true")
    people.refresh()
    assert len(people.snapshots()) == 2
    (row,) = people.scan("id = 4").to_arrow().to_pylist()
    assert row == {"id": 4, "name": None, "home": {"city": "Rome", "zip": None, "street": "a"}, "new.name": "x"}
    assert not people.schema().find_field(("new.name",)).required
    assert people.schema().find_field("id").required


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "session", "neither", "option against session"])
def test_an_overwrite_replaces_the_partitions_that_it_has_rows_for_when_spark_or_an_option_says_so(
    spark: Any, catalog: icefield.Catalog, options: dict[str, str], by: str
) -> None:
    table = catalog.create_table("db.parted", pa.schema([("id", pa.int64()), ("p", pa.int32())]), partition_spec=["p"])
    table.append(pa.table({"id": [1, 2], "p": pa.array([1, 2], pa.int32())}))
    writer = spark.sql("select 3L as id, 2 as p").write.format("icefield").options(**options).mode("overwrite")
    setting, mode = (
        "spark.sql.sources.partitionOverwriteMode",
        {"option": "dynamic", "option against session": "static"},
    )
    if by in mode:
        writer = writer.option("partitionOverwriteMode", mode[by])
    spark.conf.set(setting, "static" if by in ("option", "neither") else "dynamic")
    try:
        writer.save("db.parted")
    finally:
        spark.conf.unset(setting)
    assert ids(table) == ([1, 3] if by in ("option", "session") else [3])


@pytest.mark.slow
def test_a_table_of_sparks_own_catalog_is_refused_with_what_to_use_instead(
    spark: Any, people: icefield.Table, options: dict[str, str]
) -> None:
    text = ", ".join(f"'{key}' = '{value}'" for key, value in {**options, "path": "db.people"}.items())
    refused = r"InvalidArgument: CREATE TABLE … USING icefield .* ice\.create_table"
    try:
        with pytest.raises(PySparkException, match=refused):
            spark.sql(f"CREATE TABLE own USING icefield OPTIONS ({text})")
        with pytest.raises(PySparkException, match=refused):
            spark.sql("CREATE TABLE own USING icefield AS SELECT 4L AS id")
        spark.sql("CREATE TABLE own (id BIGINT) USING icefield")  # Spark asks no data source
        for statement in ("SELECT * FROM own", "INSERT INTO own VALUES (4)"):
            with pytest.raises(PySparkException, match=refused):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS own")
    assert ids(people) == [1, 2, 3]


@pytest.mark.slow
def test_when_a_task_fails_nothing_is_visible_and_nothing_is_left(
    people: icefield.Table, write: Any, data_files: Found, half_failing: Any
) -> None:
    before = data_files()
    with pytest.raises(PySparkException, match="planted"):
        write(half_failing, "append")
    assert ids(people) == [1, 2, 3]
    assert data_files() == before


@pytest.mark.slow
def test_sql_reads_and_writes_through_a_temporary_view(
    spark: Any, people: icefield.Table, options: dict[str, str]
) -> None:
    def make_view() -> None:
        text = ", ".join(f"`{key}` '{value}'" for key, value in {**options, "path": "db.people"}.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW people USING icefield OPTIONS ({text})")

    make_view()
    try:
        assert spark.sql("SELECT home.city FROM people WHERE id = 1").collect() == [("Oslo",)]
        spark.sql("INSERT INTO people VALUES (4, 'dee', NULL), (5, 'eve', named_struct('city', 'Rome', 'zip', 9))")
        # Before 4.1 Spark wants a value for each column.
        given, values = ("name, id", "'fay', 6") if spark.version >= "4.1" else ("name, id, home", "'fay', 6, NULL")
        spark.sql(f"INSERT INTO people ({given}) VALUES ({values})")
        make_view()  # a view stays at the version that it met
        rows = spark.sql("SELECT id, name, home.city FROM people WHERE id > 3 ORDER BY id").collect()
        assert rows == [(4, "dee", None), (5, "eve", "Rome"), (6, "fay", None)]
        spark.sql("INSERT OVERWRITE people SELECT id, upper(name), home FROM people WHERE id = 1")
        found = people.refresh().scan(selected_fields=("id", "name")).to_arrow().to_pylist()
        assert found == [{"id": 1, "name": "ANN"}]
    finally:
        spark.catalog.dropTempView("people")


# -- filters ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_filter_of_ones_own_prunes_and_sparks_filters_go_on_top(read: Any) -> None:
    frame = read(where="id >= 2 and home is not null", schema="id bigint, home struct<city: string>")
    assert frame.collect() == [(3, (None,))]
    assert frame.filter("id = 2").count() == 0


@pytest.mark.slow
def test_one_frame_used_with_other_filters_and_with_none_gives_each_its_rows(spark: Any, read: Any) -> None:
    """Spark pushes filters into data sources written in Python once its switch is on, and mixes them up."""
    spark.conf.set(SWITCH, "true")
    try:
        frame = read()
        assert frame.filter("id = 2").count() == 1
        one, two = frame.filter("id = 1").select("id"), frame.filter("id = 2").select("id")
        assert sorted(one.union(two).union(frame.select("id")).collect()) == [(1,), (1,), (2,), (2,), (3,)]
    finally:
        spark.conf.unset(SWITCH)


@pytest.mark.slow
def test_a_table_without_rows_gives_none(catalog: icefield.Catalog, read: Any) -> None:
    catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    assert read("db.empty").collect() == []
