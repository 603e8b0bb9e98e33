"""Tables that Spark creates and replaces in a catalog, default values, and the format ``iceberg``."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import icefield
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def rows(spark: Any, table: str = "prod.db.t") -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.table(table).collect()), key=repr)


def test_a_table_is_created_with_its_rows_in_one_version(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t PARTITIONED BY (bucket(4, id)) AS SELECT id, 'x' AS s FROM range(3)")
    assert rows(prod) == [(0, "x"), (1, "x"), (2, "x")]
    table = catalog.load_table("db.t")
    assert [str(field.transform) for field in table.spec().fields] == ["bucket[4]"]
    assert len(table.metadata.metadata_log) == 0


@pytest.mark.parametrize(
    ("written", "stored"),
    [("date_hour", "hour"), ("hours", "hour"), ("hour", "hour"), ("date", "day"), ("DAYS", "day"), ("year", "year"),
     ("months", "month"), ("identity", "identity"), ("void", "void")],
)  # fmt: skip
def test_transforms_have_the_names_that_statements_give_them(
    prod: Any, catalog: icefield.Catalog, written: str, stored: str
) -> None:
    prod.sql(f"CREATE TABLE prod.db.t (ts TIMESTAMP) PARTITIONED BY ({written}(ts))")
    assert str(catalog.load_table("db.t").spec().fields[0].transform) == stored


@pytest.mark.parametrize("statement", ["CREATE TABLE prod.db.new", "CREATE OR REPLACE TABLE prod.db.t"])
def test_a_query_that_fails_leaves_what_there_was(prod: Any, catalog: icefield.Catalog, statement: str) -> None:
    prod.sql("CREATE TABLE prod.db.t AS SELECT 1 AS id")
    before = catalog.load_table("db.t").metadata_location
    with pytest.raises(Exception, match="boom"):
        prod.sql(f"{statement} AS SELECT id, CAST(raise_error('boom') AS INT) AS s FROM range(3)")
    assert [name[-1] for name in catalog.list_tables("db")] == ["t"]
    assert catalog.load_table("db.t").metadata_location == before


def test_a_table_is_replaced_by_a_query_over_itself(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t AS SELECT id FROM range(2)")
    first = catalog.load_table("db.t")
    prod.sql("REPLACE TABLE prod.db.t AS SELECT id + 1 AS id, 's' AS s FROM prod.db.t")
    assert rows(prod) == [(1, "s"), (2, "s")]
    second = catalog.load_table("db.t")
    assert second.metadata.table_uuid == first.metadata.table_uuid
    assert rows(prod, f"prod.db.t.snapshot_id_{first.current_snapshot().snapshot_id}") == [(0,), (1,)]  # type: ignore[union-attr]


def test_only_a_table_that_is_there_is_replaced(prod: Any, catalog: icefield.Catalog) -> None:
    with pytest.raises(Exception, match=r"nosuch"):
        prod.sql("REPLACE TABLE prod.db.nosuch AS SELECT 1 AS id")
    prod.sql("CREATE OR REPLACE TABLE prod.db.t (id INT)")
    prod.sql("CREATE OR REPLACE TABLE prod.db.t (name STRING) USING avro")
    assert prod.table("prod.db.t").columns == ["name"]
    assert catalog.load_table("db.t").properties["write.format.default"] == "avro"


def test_writers_of_frames_create_and_replace(prod: Any) -> None:
    prod.range(2).writeTo("prod.db.t").using("iceberg").createOrReplace()
    prod.range(3).writeTo("prod.db.t").using("iceberg").replace()
    prod.range(3, 4).write.mode("append").format("iceberg").saveAsTable("prod.db.t")
    assert rows(prod) == [(0,), (1,), (2,), (3,)]
    prod.range(1).write.mode("overwrite").format("iceberg").saveAsTable("prod.db.t")
    prod.range(1).write.format("iceberg").saveAsTable("prod.db.other")
    assert rows(prod) == rows(prod, "prod.db.other") == [(0,)]


# -- default values ---------------------------------------------------------------------------------------------------


def test_columns_that_a_statement_leaves_out_have_their_defaults(prod: Any) -> None:
    prod.sql(
        "CREATE TABLE prod.db.t (a INT, b STRING DEFAULT 'it''s', c DATE DEFAULT DATE'2024-01-02') "
        "TBLPROPERTIES ('format-version'='3')"
    )
    prod.sql("INSERT INTO prod.db.t (a) VALUES (1)")
    prod.sql("INSERT INTO prod.db.t VALUES (2, DEFAULT, NULL)")
    prod.sql("ALTER TABLE prod.db.t ADD COLUMN d BIGINT DEFAULT 7")
    prod.sql("ALTER TABLE prod.db.t ALTER COLUMN d SET DEFAULT 8")
    prod.sql(
        "MERGE INTO prod.db.t t USING (SELECT 3 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)"
    )
    prod.sql("ALTER TABLE prod.db.t ALTER COLUMN d DROP DEFAULT")
    prod.sql("INSERT INTO prod.db.t (a, c) VALUES (4, NULL)")
    shown = prod.sql("SELECT a, b, string(c), d FROM prod.db.t ORDER BY a").collect()
    assert [tuple(row) for row in shown] == [
        (1, "it's", "2024-01-02", 7),
        (2, "it's", None, 7),
        (3, "it's", "2024-01-02", 8),
        (4, "it's", None, None),
    ]


def test_a_default_of_a_table_is_a_value_and_no_text_of_sql(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (a INT, b STRING) TBLPROPERTIES ('format-version'='3')")
    hostile = "${system:java.version}' || reflect('java.lang.System', 'getenv') || '\\"
    with catalog.load_table("db.t").update_schema() as update:
        update.set_default_value("b", hostile)
    prod.sql("INSERT INTO prod.db.t (a) VALUES (1)")
    assert rows(prod) == [(1, hostile)]


def test_a_table_with_a_default_that_spark_cannot_hold_is_only_read(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (a INT, t TIMESTAMP_NTZ) TBLPROPERTIES ('format-version'='3')")
    prod.sql("INSERT INTO prod.db.t VALUES (1, NULL)")
    with catalog.load_table("db.t").update_schema() as update:
        update.set_default_value("t", 0)
    assert rows(prod) == [(1, None)]
    with pytest.raises(Exception, match=r"(?i)append|write"):
        prod.sql("INSERT INTO prod.db.t (a) VALUES (2)")


# -- the format -------------------------------------------------------------------------------------------------------


def test_the_format_iceberg_reads_and_writes_by_name(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t AS SELECT id FROM range(3)")
    (first,) = catalog.load_table("db.t").snapshots()
    prod.range(2).write.format("iceberg").mode("append").save("prod.db.t")
    named = prod.read.format("iceberg")
    assert named.load("prod.db.t").count() == 5
    assert named.option("snapshot-id", first.snapshot_id).load("prod.db.t").count() == 3
    assert prod.read.format("iceberg").load("prod.db.t.snapshots").count() == 2
    prod.range(1).write.format("iceberg").mode("overwrite").save("prod.db.t")
    prod.sql("USE prod.db")
    assert prod.read.format("iceberg").load("t").count() == prod.read.format("iceberg").load("db.t").count() == 1


def test_every_thread_and_a_new_session_find_the_format_and_the_catalog(prod: Any) -> None:
    prod.sql("CREATE TABLE prod.db.t AS SELECT id FROM range(3)")
    found = []

    def work() -> None:
        session = prod.newSession()
        found.append(prod.read.format("iceberg").load("prod.db.t").count())
        found.append(session.table("prod.db.t").count())
        session.sql("DELETE FROM prod.db.t WHERE id = 1")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [3, 3]
    assert rows(prod) == [(0,), (2,)]


def test_streams_read_and_write_by_the_format(prod: Any, tmp_path: Path) -> None:
    prod.sql("CREATE TABLE prod.db.t AS SELECT id FROM range(3)")
    prod.sql("CREATE TABLE prod.db.copy (id BIGINT)")
    reader = prod.readStream.format("iceberg").load("prod.db.t")
    writer = reader.writeStream.format("iceberg").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).toTable("prod.db.copy")
    assert query.awaitTermination(120)
    assert rows(prod, "prod.db.copy") == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("db.t", "the table db.t has no catalog"),
        ("/data/t", "tables are read by name"),
        ("prod.db.nosuch", "nosuch"),
        ("prod.db.`", "no name of a table"),
    ],
)
def test_what_is_no_name_of_a_table_is_refused(prod: Any, path: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as raised:
        prod.read.format("iceberg").load(path)
    assert "\tat " not in str(raised.value)
