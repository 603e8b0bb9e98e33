"""Tables of a catalog in plain Spark SQL: ``attach(spark, catalog, name=…)``."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield_spark import attach
from icefield_spark.catalog import compiling

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = ("copy-on-write", "merge-on-read")


def rows(spark: Any, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(statement).collect()]


def files_read(frame: Any) -> list[int]:
    """How many files each scan of a frame reads, which has run."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return [int(each) for each in re.findall(r"files=(\d+)", plan)]


def create(spark: Any, version: int = 2, mode: str = "merge-on-read") -> None:
    modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    spark.sql(
        "CREATE TABLE prod.db.t (id BIGINT, p INT, s STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    spark.sql("INSERT INTO prod.db.t SELECT id, cast(id % 10 AS INT), concat('s', id) FROM range(0, 100, 1, 1)")


def test_tables_are_created_filled_read_altered_and_dropped(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE NAMESPACE prod.other")
    assert {name for (name,) in rows(prod, "SHOW NAMESPACES IN prod")} >= {"db", "other"}
    prod.sql("CREATE TABLE prod.other.t (id BIGINT NOT NULL, s STRING COMMENT 'text', d DATE) PARTITIONED BY (days(d))")
    prod.sql("INSERT INTO prod.other.t VALUES (1, 'a', DATE'2024-01-01'), (2, 'b', DATE'2024-01-02'), (3, NULL, NULL)")
    assert str(catalog.load_table("other.t").spec().fields[0].transform) == "day"
    assert rows(prod, "SELECT id, s FROM prod.other.t WHERE d > DATE'2024-01-01' OR d IS NULL ORDER BY id") == [
        (2, "b"),
        (3, None),
    ]
    assert prod.sql("SELECT count(*) FROM prod.other.t WHERE id >= :least", args={"least": 2}).first()[0] == 2
    prod.sql("ALTER TABLE prod.other.t ADD COLUMN extra STRUCT<a: INT, b: STRING> AFTER id")
    prod.sql("ALTER TABLE prod.other.t RENAME COLUMN s TO name")
    prod.sql("ALTER TABLE prod.other.t SET TBLPROPERTIES ('k' = 'v')")
    assert prod.table("prod.other.t").columns == ["id", "extra", "name", "d"]
    assert catalog.load_table("other.t").properties["k"] == "v"
    prod.range(4, 6).selectExpr("id", "named_struct('a', 1, 'b', 'x') extra", "'n' name", "DATE'2024-01-02' d").writeTo(
        "prod.other.t"
    ).overwritePartitions()
    assert rows(prod, "SELECT id, extra.a FROM prod.other.t ORDER BY id") == [(1, None), (3, None), (4, 1), (5, 1)]
    prod.sql("INSERT OVERWRITE prod.other.t SELECT 9, NULL, 'nine', DATE'2024-01-01'")
    prod.table("prod.other.t").where("id > 3").writeTo("prod.other.copy").using("iceberg").create()
    prod.sql("CREATE TABLE prod.other.made USING iceberg AS SELECT id, name FROM prod.other.t")
    assert rows(prod, "SHOW TABLES IN prod.other") == [("other", name, False) for name in ("copy", "made", "t")]
    prod.sql("USE prod.other")
    assert rows(prod, "SELECT count(*) FROM t JOIN made USING (id)") == [(prod.table("t").count(),)]
    for name in ("t", "copy", "made"):
        prod.sql(f"DROP TABLE {name}")
    prod.sql("DROP NAMESPACE prod.other")
    assert not catalog.namespace_exists("other")


def test_filters_leave_out_files_wherever_they_stand(prod: Any) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT, day DATE) PARTITIONED BY (day)")
    prod.sql("INSERT INTO prod.db.t SELECT id, date_sub(current_date(), cast(id % 30 AS INT)) FROM range(0, 60, 1, 1)")
    prod.table("prod.db.t").createOrReplaceTempView("recent")
    recent = "day >= current_date() - 3"
    for statement in (
        f"SELECT count(*) FROM prod.db.t WHERE {recent}",
        f"WITH c AS (SELECT * FROM prod.db.t) SELECT count(*) FROM c WHERE {recent}",
        f"SELECT count(*) FROM (SELECT id, day FROM prod.db.t) WHERE {recent}",
        f"SELECT count(*) FROM recent WHERE {recent}",
    ):
        frame = prod.sql(statement)
        assert frame.first()[0] == 8
        assert files_read(frame) == [4], statement
    frame = prod.sql("SELECT id FROM prod.db.t WHERE day = current_date() - 3")
    assert frame.count() == 2
    assert files_read(frame) == [1]
    prod.sql("CREATE TABLE prod.db.days AS SELECT day, cast(id AS STRING) name FROM prod.db.t WHERE id < 30")
    frame = prod.sql("SELECT t.id FROM prod.db.t t JOIN prod.db.days d ON t.day = d.day WHERE d.name = '7'")
    assert sorted(row.id for row in frame.collect()) == [7, 37]
    assert 1 in files_read(frame), "the days that the other side has leave out files at run time"


def test_versions_are_read_by_sql_by_options_and_by_names(prod: Any, catalog: icefield.Catalog) -> None:
    create(prod)
    table = catalog.load_table("db.t")
    first = table.current_snapshot()
    table.manage_snapshots().create_tag(first.snapshot_id, "then").create_branch(first.snapshot_id, "b").commit()
    prod.sql("DELETE FROM prod.db.t WHERE p < 5")
    prod.sql("INSERT INTO prod.db.t.branch_b VALUES (1000, 1, 'branch')")
    number, moment = first.snapshot_id, first.timestamp_ms
    for shown, count in (
        ("prod.db.t", 50),
        (f"prod.db.t VERSION AS OF {number}", 100),
        ("prod.db.t VERSION AS OF 'then'", 100),
        (f"prod.db.t TIMESTAMP AS OF timestamp_millis({moment})", 100),
        (f"prod.db.t.snapshot_id_{number}", 100),
        (f"prod.db.t.at_timestamp_{moment}", 100),
        ("prod.db.t.branch_b", 101),
        ("prod.db.t.tag_then", 100),
    ):
        assert rows(prod, f"SELECT count(*) FROM {shown}") == [(count,)], shown
    for name, value, count in (
        ("snapshot-id", number, 100),
        ("as-of-timestamp", moment, 100),
        ("branch", "b", 101),
        ("tag", "then", 100),
    ):
        assert prod.read.option(name, value).table("prod.db.t").count() == count, name
    for statement in (
        f"DELETE FROM prod.db.t.snapshot_id_{number} WHERE id = 7",
        f"DELETE FROM prod.db.t.snapshot_id_{number}",
        f"INSERT INTO prod.db.t.snapshot_id_{number} VALUES (1, 1, 'a')",
        "DELETE FROM prod.db.t.tag_then WHERE id = 7",
        "DELETE FROM prod.db.t.snapshots",
        "UPDATE prod.db.t.snapshots SET operation = 'x'",
    ):
        with pytest.raises(Exception, match=r"(?i)cannot|not support|tag|branch"):
            prod.sql(statement)
    with pytest.raises(Exception, match="cannot be written"):
        prod.table("prod.db.t").writeTo("prod.db.t").option("snapshot-id", str(number)).append()
    assert rows(prod, "SELECT count(*) FROM prod.db.t") == [(50,)]


def test_tables_about_a_table_are_read(prod: Any, catalog: icefield.Catalog) -> None:
    create(prod)
    prod.sql("DELETE FROM prod.db.t WHERE id < 5")
    snapshots = [each.snapshot_id for each in catalog.load_table("db.t").history()]
    assert rows(prod, "SELECT snapshot_id FROM prod.db.t.snapshots ORDER BY committed_at") == [
        (each,) for each in snapshots
    ]
    assert rows(prod, "SELECT count(*), sum(record_count) FROM prod.db.t.data_files") == [(10, 100)]
    (files,) = rows(prod, f"SELECT count(*) FROM prod.db.t.files VERSION AS OF {snapshots[0]}")
    assert files == (10,)
    assert prod.read.option("snapshot-id", snapshots[0]).table("prod.db.t.files").count() == 10
    joined = "SELECT count(*) FROM prod.db.t.history h JOIN prod.db.t.snapshots s ON h.snapshot_id = s.snapshot_id"
    assert rows(prod, joined) == [(2,)]
    assert rows(prod, "SELECT id FROM prod.db.t WHERE _pos = 0 AND p = 7 AND _file LIKE '%parquet'") == [(7,)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_changed_as_spark_says(prod: Any, catalog: icefield.Catalog, version: int, mode: str) -> None:
    create(prod, version, mode)
    wanted = {i: (i, i % 10, f"s{i}") for i in range(100)}
    lineage = "SELECT id, _row_id FROM prod.db.t WHERE id < 100"
    before = dict(rows(prod, lineage)) if version == 3 else {}
    prod.sql("DELETE FROM prod.db.t WHERE p = 6 OR (p = 5 AND id % 2 = 1 AND id > 50)")
    wanted = {i: row for i, row in wanted.items() if not (i % 10 == 6 or (i % 10 == 5 and i % 2 == 1 and i > 50))}
    prod.sql("DELETE FROM prod.db.t WHERE p = 9")  # whole files, by their partition
    wanted = {i: row for i, row in wanted.items() if i % 10 != 9}
    prod.sql("UPDATE prod.db.t SET s = 'most', p = 1 WHERE id = (SELECT max(id) FROM prod.db.t)")
    wanted[98] = (98, 1, "most")
    prod.range(96, 103).createOrReplaceTempView("source")
    prod.sql(
        "MERGE INTO prod.db.t t USING source u ON t.id = u.id WHEN MATCHED AND u.id = 97 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET s = 'merged' "
        "WHEN NOT MATCHED AND u.id > 99 THEN INSERT (id, p, s) VALUES (u.id, 0, 'new') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE"
    )
    del wanted[97], wanted[0]
    wanted[98] = (98, 1, "merged")
    wanted.update({i: (i, 0, "new") for i in (100, 101, 102)})
    assert rows(prod, "SELECT * FROM prod.db.t ORDER BY id") == sorted(wanted.values())
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == sorted(wanted)
    for each, number in rows(prod, lineage) if version == 3 else ():
        assert number == before[each]
    assert catalog.load_table("db.t").snapshots()[-1].summary["operation"] == "overwrite"


def test_a_merge_computes_its_source_once(prod: Any, tmp_path: Path) -> None:
    create(prod, mode="copy-on-write")
    log = tmp_path / "log"

    def noted(batches: Any) -> Any:
        for batch in batches:
            with log.open("a") as out:
                out.write(f"{batch.num_rows}\n")
            yield batch

    prod.range(98, 101, 1, 1).mapInArrow(noted, "id long").createOrReplaceTempView("source")
    prod.sql(
        "MERGE INTO prod.db.t t USING source u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (u.id, 0, 'new')"
    )
    assert rows(prod, "SELECT id FROM prod.db.t WHERE s IN ('merged', 'new') ORDER BY id") == [(98,), (99,), (100,)]
    assert log.read_text().split() == ["3"]


def test_a_session_without_the_strategy_refuses_to_change_rows(prod: Any, catalog: icefield.Catalog) -> None:
    create(prod, mode="copy-on-write")
    other = prod.newSession()
    attach(other, catalog, name="prod")
    other.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    empty = other._jvm.PythonUtils.toSeq(other._jvm.java.util.ArrayList())
    getattr(other._jsparkSession.experimental(), "extraStrategies_$eq")(empty)
    for statement in (
        "DELETE FROM prod.db.t WHERE id % 3 = 0",
        "UPDATE prod.db.t SET s = 'x' WHERE id = 7",
        "MERGE INTO prod.db.t t USING (SELECT 7L id) u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "INSERT OVERWRITE prod.db.t SELECT 1L, 1, 'a'",
    ):
        with pytest.raises(Exception, match="not attached to the catalog and cannot change its rows"):
            other.sql(statement)
    assert other.table("prod.db.t").count() == 100
    attach(other, catalog, name="prod")
    other.sql("DELETE FROM prod.db.t WHERE id % 3 = 0")
    assert other.table("prod.db.t").count() == 66


def test_the_session_of_a_batch_knows_the_catalog(prod: Any, tmp_path: Path) -> None:
    create(prod)
    prod.range(90, 110, 1, 1).write.parquet(f"file://{tmp_path}/in")

    def write(batch: Any, _: int) -> None:
        batch.createOrReplaceTempView("changed")
        batch.sparkSession.sql(
            "MERGE INTO prod.db.t t USING changed u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = 'stream' "
            "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (u.id, 0, 'stream')"
        )

    stream = prod.readStream.schema("id long").parquet(f"file://{tmp_path}/in")
    query = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    query.option("checkpointLocation", f"file://{tmp_path}/checkpoint").start().awaitTermination()
    assert rows(prod, "SELECT min(id), max(id), count(*) FROM prod.db.t WHERE s = 'stream'") == [(90, 109, 20)]


def test_three_threads_use_the_catalog(prod: Any) -> None:
    create(prod)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            prod.sql(f"INSERT INTO prod.db.t VALUES ({1000 + number}, {number}, 'thread')")
            assert prod.sql(f"SELECT count(*) FROM prod.db.t WHERE p = {number} AND id < 100").first()[0] == 10
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert rows(prod, "SELECT sum(id) FROM prod.db.t WHERE s = 'thread'") == [(3003,)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM prod.db.nosuch", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM prod.db.t VERSION AS OF 'nosuch'", "nosuch"),
        ("CREATE TABLE prod.nosuch.t (id INT)", "nosuch"),
        ("CREATE TABLE prod.db.t (id INT)", "already exists"),
        ("DROP NAMESPACE prod.db", "db"),
        ("INSERT INTO prod.db.strict SELECT cast(NULL AS BIGINT)", "(?i)null"),
        ("ALTER TABLE prod.db.strict ALTER COLUMN id TYPE STRING", "cannot change 'id' from long to string"),
        ("CREATE TABLE prod.db.other (id INT) USING csv", "USING csv is not possible"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_one_sentence(
    prod: Any, catalog: icefield.Catalog, statement: str, said: str
) -> None:
    create(prod)
    prod.sql("CREATE TABLE prod.db.strict (id BIGINT NOT NULL)")
    with pytest.raises(Exception, match=said) as caught:
        prod.sql(statement).collect()
    assert catalog.load_table("db.t").scan().count() == 100
    assert not re.search(r"Traceback|py4j|\tat ", str(caught.value))


@pytest.mark.parametrize("name", ["", "a.b", "a b", "spark_catalog", "x`y"])
def test_a_name_that_cannot_be_that_of_a_catalog_is_refused(spark: Any, catalog: icefield.Catalog, name: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be attached as"):
        attach(spark, catalog, name=name)


def test_the_name_of_another_catalog_is_refused(spark: Any, catalog: icefield.Catalog) -> None:
    spark.conf.set("spark.sql.catalog.elsewhere", "org.example.Catalog")
    with pytest.raises(InvalidArgument, match=r"has another catalog 'elsewhere' \(org.example.Catalog\)"):
        attach(spark, catalog, name="elsewhere")
    spark.conf.unset("spark.sql.catalog.elsewhere")


def test_spark_connect_has_no_catalog_by_name(catalog: icefield.Catalog) -> None:
    session: Any = SimpleNamespace()
    with pytest.raises(UnsupportedFeature, match="through Spark Connect no catalog can be added"):
        attach(session, catalog, name="prod")


def test_classes_that_cannot_be_compiled_are_reported(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {compiling.CATALOG, compiling.HOLDER} <= set(compiling.compiled(spark))
    monkeypatch.setattr(compiling, "_source", lambda _: "class Broken extends Nosuch {}")
    with pytest.raises(UnsupportedFeature, match=r"cannot be added to Spark .*Nosuch.*leave name out") as caught:
        compiling.compiled_class(spark, "icefield.spark.Broken")
    assert "\n" not in str(caught.value)
