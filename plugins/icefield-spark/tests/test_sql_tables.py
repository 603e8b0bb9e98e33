"""``ice.sql`` with statements that make, alter, describe and drop tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import (
    IcefieldError,
    InvalidArgument,
    NoSuchTable,
    UnsupportedFeature,
)
from pyspark import __version__ as version
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

FAILS_AT_FIVE = "IF(id = 5, raise_error('planted'), id)"  # division by zero is a null before Spark 4

EVENTS = """
CREATE TABLE test.db.events (
  id bigint NOT NULL COMMENT 'the key', ts timestamp, at timestamp_ntz, name string,
  home struct<city: string, zip: int>, tags array<string>, price decimal(9, 2)
) USING iceberg
PARTITIONED BY (days(ts), bucket(16, id), truncate(4, name))
TBLPROPERTIES ('format-version' = '2', 'write.format.default' = 'parquet')
COMMENT 'what happened'
"""


@pytest.fixture
def events(ice: Any, catalog: icefield.Catalog) -> icefield.Table:
    ice.sql(EVENTS)
    return catalog.load_table("db.events")


def test_a_table_is_created_as_it_is_described(ice: Any, events: icefield.Table, catalog: icefield.Catalog) -> None:
    schema = events.schema()
    assert [(field.name, str(field.field_type), field.required) for field in schema.fields][:4] == [
        ("id", "long", True), ("ts", "timestamptz", False), ("at", "timestamp", False), ("name", "string", False)
    ]  # fmt: skip
    assert schema.find_field("id").doc == "the key"
    assert [str(field.transform) for field in events.spec().fields] == ["day", "bucket[16]", "truncate[4]"]
    assert events.properties["comment"] == "what happened"
    ice.sql("CREATE TABLE IF NOT EXISTS db.events (x int)")
    with pytest.raises(PySparkException, match="already exists"):
        ice.sql("CREATE TABLE db.events (x int) USING iceberg")
    with pytest.raises(UnsupportedFeature, match="version 3"):
        ice.sql("CREATE TABLE db.more (x int DEFAULT 1)")
    with pytest.raises(PySparkException, match=r"(?i)nonsense"):
        ice.sql("CREATE TABLE db.more (x nonsense)")
    assert catalog.list_tables("db") == [("db", "events")]


def test_a_table_is_created_from_a_query(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE TABLE db.made PARTITIONED BY (part) AS SELECT id, id % 2 AS part FROM range(10)")
    assert ice.sql("SELECT part, count(*) FROM db.made GROUP BY part ORDER BY part").collect() == [(0, 5), (1, 5)]
    table = catalog.load_table("db.made")
    assert len(table.snapshots()) == 1
    assert not any(field.required for field in table.schema().fields)
    with pytest.raises(Exception, match="planted"):
        ice.sql(f"CREATE TABLE db.failed AS SELECT {FAILS_AT_FIVE} AS x FROM range(10)")
    assert not catalog.table_exists("db.failed")


@pytest.mark.slow
def test_a_table_is_replaced_with_its_rows_and_keeps_its_history(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql(
        "CREATE TABLE db.t PARTITIONED BY (part) TBLPROPERTIES ('a' = '1') AS SELECT id, id % 2 AS part FROM range(6)"
    )
    first = catalog.load_table("db.t").current_snapshot()
    assert first is not None
    ice.sql("REPLACE TABLE db.t TBLPROPERTIES ('b' = '2') AS SELECT concat('N', id) AS name, id FROM db.t WHERE id > 3")
    table = catalog.load_table("db.t")
    assert ice.sql("SELECT * FROM db.t ORDER BY id").collect() == [("N4", 4), ("N5", 5)]
    assert ice.sql(f"SELECT count(*) FROM db.t VERSION AS OF {first.snapshot_id}").collect() == [(6,)]
    assert table.spec().is_unpartitioned
    assert (table.properties["a"], table.properties["b"]) == ("1", "2")
    assert [(field.field_id, field.name) for field in table.schema().fields] == [(3, "name"), (1, "id")]
    with pytest.raises(Exception, match="planted"):
        ice.sql(f"CREATE OR REPLACE TABLE db.t AS SELECT {FAILS_AT_FIVE} AS x FROM db.t")
    assert table.refresh().schema().find_field("name").field_id == 3
    ice.sql("CREATE OR REPLACE TABLE db.t (x int)")
    assert ice.sql("SELECT * FROM db.t").collect() == []
    with pytest.raises(NoSuchTable):
        ice.sql("REPLACE TABLE db.nothing (x int) USING iceberg")


@pytest.mark.skipif(version < "4.1", reason="Spark 4.0 asks an INSERT for every column")
@pytest.mark.slow
def test_columns_have_defaults_in_version_3(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql(
        "CREATE TABLE db.t (id bigint, v int DEFAULT 6 + 1 COMMENT 'a number', word string DEFAULT 'it''s, (so)') "
        "USING iceberg TBLPROPERTIES ('format-version' = '3')"
    )
    ice.sql("INSERT INTO db.t (id) VALUES (1)")
    ice.sql("ALTER TABLE db.t ADD COLUMN at timestamp DEFAULT TIMESTAMP '2024-06-01 12:00:00' AFTER id")
    ice.sql("ALTER TABLE db.t ALTER COLUMN v SET DEFAULT 8")
    ice.sql("MERGE INTO db.t t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)")
    ice.sql("ALTER TABLE db.t ALTER COLUMN v DROP DEFAULT")
    ice.sql("INSERT INTO db.t (id) VALUES (3)")
    found = ice.sql("SELECT id, CAST(at AS string), v, word FROM db.t ORDER BY id").collect()
    noon = "2024-06-01 12:00:00"
    word = ice.sql("SELECT 'it''s, (so)'").collect()[0][0]  # before 4.1 Spark takes it for two strings
    assert found == [(1, noon, 7, word), (2, noon, 8, word), (3, noon, None, word)]
    assert catalog.load_table("db.t").schema().find_field("v").doc == "a number"
    with pytest.raises(PySparkException, match="INVALID_DEFAULT_VALUE"):
        ice.sql("ALTER TABLE db.t ADD COLUMN w int DEFAULT id")


def test_columns_are_altered(ice: Any, events: icefield.Table) -> None:
    for clause in (
        "ADD COLUMN note string COMMENT 'a note' AFTER id",
        "ADD COLUMNS (small int, `odd name` date FIRST)",
        "ADD COLUMN home.street string FIRST",
        "RENAME COLUMN name TO title",
        "RENAME COLUMN home.zip TO code",
        "ALTER COLUMN small TYPE bigint",
        "ALTER COLUMN price TYPE decimal(12, 2)",
        "ALTER COLUMN title COMMENT 'what it is called'",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN tags AFTER id",
        "DROP COLUMN at",
        "DROP COLUMN IF EXISTS nothing",
    ):
        ice.sql(f"ALTER TABLE db.events {clause}")
    schema = events.refresh().schema()
    assert [field.name for field in schema.fields] == [
        "odd name", "id", "tags", "note", "ts", "title", "home", "price", "small"
    ]  # fmt: skip
    assert [field.name for field in schema.find_type("home").fields] == ["street", "city", "code"]  # type: ignore
    assert str(schema.find_type("small")) == "long"
    assert not schema.find_field("id").required
    for refused in (
        "ALTER COLUMN small TYPE int",
        "DROP COLUMN nothing",
        "ADD COLUMN more int DEFAULT 3",
        "ALTER COLUMN note SET NOT NULL",
        "FROB x",
    ):
        with pytest.raises((IcefieldError, PySparkException)):
            ice.sql(f"ALTER TABLE db.events {refused}")
    assert events.refresh().schema() == schema


def test_partitioning_order_and_identifiers_are_altered(ice: Any, events: icefield.Table) -> None:
    for clause in (
        "ADD PARTITION FIELD hours(at) AS hour",
        "DROP PARTITION FIELD bucket(16, id)",
        "REPLACE PARTITION FIELD days(ts) WITH months(ts)",
        "DROP PARTITION FIELD truncate(4, name)",
        "SET IDENTIFIER FIELDS id",
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id, days(ts) DESC NULLS LAST",
    ):
        ice.sql(f"ALTER TABLE db.events {clause}")
    events.refresh()
    live = [(field.name, str(field.transform)) for field in events.spec().fields if str(field.transform) != "void"]
    assert live == [("hour", "hour"), ("ts_month", "month")]
    assert events.schema().identifier_field_names() == {"id"}
    order = [
        (str(field.transform), field.direction.value, field.null_order.value) for field in events.sort_order().fields
    ]
    assert order == [("identity", "asc", "nulls-first"), ("day", "desc", "nulls-last")]
    assert events.properties["write.distribution-mode"] == "hash"
    ice.sql("ALTER TABLE db.events WRITE ORDERED BY id")
    assert events.refresh().properties["write.distribution-mode"] == "range"
    ice.sql("ALTER TABLE db.events WRITE ORDERED BY (id, name DESC)")
    assert [field.direction.value for field in events.refresh().sort_order().fields] == ["asc", "desc"]
    for refused in ("id v", "(id", "(id v)", "(id) DESC"):
        with pytest.raises(InvalidArgument):
            ice.sql(f"ALTER TABLE db.events WRITE ORDERED BY {refused}")
    ice.sql("ALTER TABLE db.events WRITE UNORDERED")
    assert events.refresh().sort_order().is_unsorted
    ice.sql("ALTER TABLE db.events DROP IDENTIFIER FIELDS id")
    assert not events.refresh().schema().identifier_field_names()


# A table of version 1 keeps the field in its current spec, with the transform void.
@pytest.mark.parametrize("version", [1, 2])
def test_a_drop_of_a_former_partition_source_says_what_java_cannot_do_then(ice: Any, version: int) -> None:
    ice.sql(
        "CREATE TABLE db.t (id bigint, gone string, plain int) USING iceberg PARTITIONED BY (gone) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    ice.sql("ALTER TABLE db.t DROP PARTITION FIELD gone")
    with pytest.warns(UserWarning, match="^the partition fields gone lost .* copy-on-write"):
        ice.sql("ALTER TABLE db.t DROP COLUMN gone")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ice.sql("ALTER TABLE db.t DROP COLUMN plain")


def test_properties_branches_and_tags_are_altered(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE TABLE db.made AS SELECT 1 AS id")
    table = catalog.load_table("db.made")
    first = table.current_snapshot()
    assert first is not None
    for clause in (
        "SET TBLPROPERTIES ('a' = '1', b.c = 'x', 'format-version' = '3')",
        "UNSET TBLPROPERTIES ('a')",
        "CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
        f"CREATE TAG eoy AS OF VERSION {first.snapshot_id} RETAIN 365 DAYS",
        "CREATE TAG IF NOT EXISTS eoy",
        "CREATE OR REPLACE BRANCH audit RETAIN 8 DAYS",
        "CREATE TAG gone",
        "DROP TAG gone",
        "DROP BRANCH IF EXISTS nothing",
    ):
        ice.sql(f"ALTER TABLE db.made {clause}")
    table.refresh()
    assert (table.format_version, table.properties.get("a"), table.properties["b.c"]) == (3, None, "x")
    audit, eoy = table.refs()["audit"], table.refs()["eoy"]
    assert audit.max_ref_age_ms == 8 * 86_400_000
    assert eoy.max_ref_age_ms == 365 * 86_400_000
    assert set(table.refs()) == {"main", "audit", "eoy"}
    with pytest.raises(IcefieldError):
        ice.sql("ALTER TABLE db.made CREATE TAG eoy")
    ice.sql("ALTER TABLE db.made RENAME TO db.named")
    assert ice.sql("SELECT * FROM db.named VERSION AS OF 'eoy'").collect() == [(1,)]


@pytest.mark.skipif(version < "4", reason="Spark 3.5 has no SHOW COLUMNS for tables of catalogs")
def test_tables_are_described(ice: Any, events: icefield.Table) -> None:
    found = ice.sql("DESCRIBE TABLE db.events").collect()
    assert found[0] == ("id", "bigint", "the key")
    assert ("Part 1", "bucket(16, id)", "") in found
    extended = {row[0]: row[1] for row in ice.sql("DESCRIBE EXTENDED db.events").collect()}
    assert extended["Location"] == events.location()
    assert ice.sql("SHOW TABLES IN db").collect() == [("db", "events", False)]
    assert ice.sql("SHOW TABLES IN test.db LIKE 'x*'").collect() == []
    assert ice.sql("SHOW NAMESPACES").collect() == [("db",)]
    assert [row[0] for row in ice.sql("SHOW COLUMNS IN db.events").collect()][:2] == ["id", "ts"]
    assert ("format-version", "2") in ice.sql("SHOW TBLPROPERTIES db.events").collect()
    (said,) = ice.sql("SHOW CREATE TABLE db.events").collect()
    events_again = said[0].replace("db.events", "db.again").replace(events.location(), events.location() + "2")
    ice.sql(events_again)
    again = ice.catalog.load_table("db.again")
    assert str(again.schema()) == str(events.schema())
    assert str(again.spec()) == str(events.spec())


@pytest.mark.skipif(version < "4", reason="Spark 3.5 does not quote the columns of buckets")
def test_names_that_need_quotes_are_described_with_them(ice: Any) -> None:
    ice.sql(
        "CREATE TABLE db.`n 1` (`my col` string, `x y` int, s struct<`a-b`: int>) "
        "PARTITIONED BY (truncate(2, `my col`), bucket(3, `x y`), s.`a-b`)"
    )
    found = ice.sql("DESCRIBE db.`n 1`").collect()
    assert [row[1] for row in found if row[0].startswith("Part ")] == [
        "truncate(2, `my col`)",
        "bucket(3, `x y`)",
        "s.`a-b`",
    ]
    table = ice.catalog.load_table("db.n 1")
    (said,) = ice.sql("SHOW CREATE TABLE db.`n 1`").collect()
    ice.sql(said[0].replace("`n 1`", "again").replace(table.location(), table.location() + "2"))
    assert ice.catalog.load_table("db.again").spec() == table.spec()
    ice.sql("ALTER TABLE db.`n 1` WRITE ORDERED BY `x y`")
    (order,) = ice.sql("SHOW TBLPROPERTIES db.`n 1` ('sort-order')").collect()
    assert order[1] == "`x y` ASC NULLS FIRST"


def test_queries_are_described(ice: Any, events: icefield.Table) -> None:
    for query in ("QUERY SELECT id FROM db.events", "SELECT id FROM db.events", "QUERY TABLE db.events"):
        assert ice.sql(f"DESCRIBE {query}").collect()[0][:2] == ("id", "bigint"), query


def test_an_external_table_is_made_at_its_location(ice: Any, tmp_path: Path) -> None:
    ice.sql(f"CREATE EXTERNAL TABLE db.far (id int) LOCATION 'file://{tmp_path}/far'")
    assert ice.catalog.load_table("db.far").location() == f"file://{tmp_path}/far"
    with pytest.raises(InvalidArgument, match="takes a LOCATION"):
        ice.sql("CREATE EXTERNAL TABLE db.near (id int)")


def test_tables_and_namespaces_come_and_go(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE NAMESPACE IF NOT EXISTS test.more COMMENT 'trials' WITH DBPROPERTIES ('team' = 'ann')")
    properties = catalog.load_namespace_properties("more")
    assert (properties["comment"], properties["team"]) == ("trials", "ann")
    ice.sql("CREATE TABLE more.t AS SELECT 1 AS id")
    with pytest.raises(PySparkException, match="NOT_EMPTY"):
        ice.sql("DROP NAMESPACE more")
    ice.sql("TRUNCATE TABLE more.t")
    assert ice.sql("SELECT * FROM more.t").collect() == []
    ice.sql("DROP TABLE more.t PURGE")
    ice.sql("DROP TABLE IF EXISTS more.t")
    with pytest.raises(NoSuchTable):
        ice.sql("DROP TABLE more.t")
    ice.sql("DROP DATABASE more")
    assert not catalog.namespace_exists("more")
    for statement in ("CREATE NAMESPACE more", "CREATE NAMESPACE more.inner", "CREATE TABLE more.inner.t (x int)"):
        ice.sql(statement)
    ice.sql("CREATE TABLE more.t (x int)")
    ice.sql("CREATE VIEW more.v AS SELECT 1 AS x")
    ice.sql("DROP NAMESPACE more CASCADE")
    assert not catalog.namespace_exists("more")


def test_tables_of_other_formats_are_sparks(spark: Any, ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE TABLE spark_catalog.default.of_spark (id int) USING parquet")
    ice.sql("ALTER TABLE spark_catalog.default.of_spark SET TBLPROPERTIES ('a' = 'b')")
    assert "of_spark" in [row.tableName for row in ice.sql("SHOW TABLES IN spark_catalog.default").collect()]
    ice.sql("DROP TABLE spark_catalog.default.of_spark")
