"""``CALL prod.system.…`` of an attached catalog in plain Spark SQL, from Spark 4.0 on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.abc import CommitMade, OperationProgress
from icefield_spark import attach
from icefield_spark.sql.procedures import PROCEDURES
from pyspark import __version__ as version
from pyspark.errors import PySparkException
from tables import Listener, memory_catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BEFORE_LISTS = version.startswith("4.0")
"""Spark 4.0 neither lists nor describes procedures."""


@pytest.fixture
def prod(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``, with a table of three files."""
    attach(spark, catalog, name="prod")
    spark.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING)")
    for number in range(3):
        spark.sql(f"INSERT INTO prod.db.t VALUES ({number}, 's')")
    yield spark
    spark.sql("USE spark_catalog.default")


def rows(spark: Any, statement: str, **more: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(statement, **more).collect()]


def versions(catalog: icefield.Catalog) -> list[int]:
    return [each.snapshot_id for each in catalog.load_table("db.t").history()]


def test_a_procedure_changes_the_table_once_and_gives_its_row(prod: Any, catalog: icefield.Catalog) -> None:
    called = prod.sql("CALL prod.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    assert len(versions(catalog)) == 4
    assert called.columns[:2] == ["rewritten_data_files_count", "added_data_files_count"]
    assert [tuple(row)[:2] for row in called.collect()] == [(3, 1)]
    assert called.count() == 1
    assert len(versions(catalog)) == 4
    assert sorted(rows(prod, "SELECT * FROM prod.db.t")) == [(0, "s"), (1, "s"), (2, "s")]


def test_explaining_a_call_changes_nothing(prod: Any, catalog: icefield.Catalog) -> None:
    for kind in ("", "EXTENDED", "FORMATTED"):
        ((plan,),) = rows(prod, f"EXPLAIN {kind} CALL prod.system.rollback_to_snapshot('db.t', {versions(catalog)[0]})")
        assert "prod.system.rollback_to_snapshot" in plan
    assert len(versions(catalog)) == 3


def test_arguments_are_expressions_and_names_go_as_the_session_says(prod: Any, catalog: icefield.Catalog) -> None:
    first, second, _ = versions(catalog)
    ancestors = "CALL prod.system.ancestors_of"
    ids = [
        [row[0] for row in rows(prod, statement, **more)]
        for statement, more in (
            (f"{ancestors}('db.t', {second})", {}),
            (f"{ancestors}(snapshot_id => {second - 1} + 1, table => concat('prod.', 'db.t'))", {}),
            (f"{ancestors}(table => :t, snapshot_id => :s)", {"args": {"t": "db.t", "s": second}}),
            (f"{ancestors}(?, ?)", {"args": ["db.t", second]}),
            (f"EXECUTE IMMEDIATE '{ancestors}(?, {second})' USING 'db.t'", {}),
        )
    ]
    assert ids == [[second, first]] * 5
    prod.sql("USE prod.db")
    prod.range(1).createOrReplaceTempView("t")
    try:
        assert len(rows(prod, "CALL system.ancestors_of('t')")) == 3
        assert len(rows(prod, "CALL SYSTEM.Ancestors_Of('db.t')")) == 3
    finally:
        prod.catalog.dropTempView("t")
    prod.sql("USE spark_catalog.default")
    with pytest.raises(PySparkException, match="no table t in catalog 'prod'"):
        prod.sql(f"{ancestors}('t')")


@pytest.mark.parametrize(
    "time",
    ["TIMESTAMP '2100-01-01 00:00:00'", "DATE '2100-01-01'", "'2100-01-01'", "current_timestamp() + INTERVAL 7 DAYS"],
)
def test_times_are_whatever_spark_takes_for_one(prod: Any, catalog: icefield.Catalog, time: str) -> None:
    prod.sql(f"CALL prod.system.expire_snapshots(table => 'db.t', older_than => {time}, retain_last => 1)")
    assert len(catalog.load_table("db.t").snapshots()) == 1


def test_a_date_begins_at_midnight_of_the_session(prod: Any) -> None:
    with pytest.raises(PySparkException, match="no ancestor of the current snapshot is older than 2000-01-01T08:00:00"):
        prod.sql("CALL prod.system.rollback_to_timestamp('db.t', DATE '2000-01-01')")


def test_lists_and_maps_are_arguments(prod: Any, catalog: icefield.Catalog) -> None:
    first, second, _ = versions(catalog)
    prod.sql(f"CALL prod.system.expire_snapshots(table => 'db.t', snapshot_ids => array({first}, {second}))")
    assert len(catalog.load_table("db.t").snapshots()) == 1
    ((file,),) = rows(prod, "CALL prod.system.compute_table_stats(table => 'db.t', columns => array('id'))")
    assert file.endswith(".stats")
    with pytest.raises(PySparkException, match="rewrite_data_files has no option 'nothing'; it has delete-"):
        prod.sql("CALL prod.system.rewrite_data_files('db.t', options => map('nothing', true))")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("system.nothing('db.t')", "there is no procedure 'system.nothing'; in system there are add_files, ancestors"),
        ("db.ancestors_of('db.t')", "there is no procedure 'db.ancestors_of'; in system there are add_files"),
        ("system.migrate('db.t')", "there is no procedure 'migrate' here: Spark's own catalog cannot hold"),
        ("system.ancestors_of(NULL)", "ancestors_of needs table"),
        ("system.ancestors_of('db.nosuch')", "no table db.nosuch in catalog 'prod'"),
        ("system.ancestors_of('db.t', 1)", "the table has no snapshot 1"),
        ("system.ancestors_of('db.t.snapshots')", "'db.t.snapshots' is not a whole table and cannot be changed"),
        ("system.expire_snapshots('db.t', clean_expired_metadata => true)",
         "the argument 'clean_expired_metadata' is not supported: columns and partition specs stay as they were"),
        ("system.rewrite_data_files('db.t', options => map('rewrite-all', NULL))", "'options' of rewrite_data_files"),
        ("system.rewrite_manifests('db.t', sort_by => array(NULL, 's'))", "of rewrite_manifests has a null in it"),
        ("system.snapshot('spark_catalog.default.nosuch', 'db.u')", "Spark has no table spark_catalog.default.nosuch"),
        ("system.rewrite_data_files('db.t', where => 'nosuch = 1')", "no column is named 'nosuch'; there are id, s"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_in_the_words_of_the_call(prod: Any, call: str, message: str) -> None:
    with pytest.raises(PySparkException) as raised:
        prod.sql(f"CALL prod.{call}")
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("arguments", ["", "'db.t', nothing => 1", "'db.t', 1, 2", "'db.t', 'x'", "'db.t', array(1)"])
def test_arguments_that_do_not_fit_are_refused_by_spark(prod: Any, arguments: str) -> None:
    with pytest.raises(PySparkException, match=r"(?i)ancestors_of"):
        prod.sql(f"CALL prod.system.ancestors_of({arguments})")


@pytest.mark.skipif(BEFORE_LISTS, reason="Spark 4.0 has no SHOW PROCEDURES")
def test_procedures_are_listed_and_described(prod: Any) -> None:
    listed = [row.procedure_name for row in prod.sql("SHOW PROCEDURES IN prod.system").collect()]
    assert listed == sorted(PROCEDURES)
    assert rows(prod, "SHOW PROCEDURES IN prod.db") == []
    for name, procedure in PROCEDURES.items():
        described = " ".join(row[0] for row in prod.sql(f"DESCRIBE PROCEDURE prod.system.{name}").collect())
        assert procedure.doc in described
        assert all(f"{each.name} ({each.kind}" in described and each.doc for each in procedure.parameters)
    with pytest.raises(PySparkException, match=r"there is no procedure 'system\.nothing'"):
        prod.sql("DESCRIBE PROCEDURE prod.system.nothing")


def test_both_roads_of_a_call_give_the_same(prod: Any, catalog: icefield.Catalog) -> None:
    ice = attach(prod, catalog, name="prod")
    for call in (
        "ancestors_of('db.t')",
        "rewrite_data_files(table => 'db.t', where => 'id = 77')",
        "remove_orphan_files(table => 'db.t', dry_run => true)",
        "set_current_snapshot('db.t', {})",
        "expire_snapshots('db.t', retain_last => 10)",
        "create_changelog_view('db.t', 'changes')",
    ):
        statement = f"CALL prod.system.{call.format(versions(catalog)[0])}"
        if "set_current" in call:
            prod.sql(statement)
        one, other = prod.sql(statement), ice.sql(statement)
        assert one.schema == other.schema
        assert one.collect() == other.collect()


def test_arguments_that_a_call_leaves_out_have_defaults(prod: Any, catalog: icefield.Catalog) -> None:
    for call in ("rewrite_data_files('db.t')", "rewrite_manifests('db.t')", "expire_snapshots('db.t')"):
        assert len(rows(prod, f"CALL prod.system.{call}")) == 1
    assert len(catalog.load_table("db.t").snapshots()) == 4


def test_jobs_of_a_call_are_those_of_its_thread(prod: Any) -> None:
    context = prod.sparkContext
    context.setJobGroup("maintenance of t", "nightly")
    try:
        prod.sql("CALL prod.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
        assert context.statusTracker().getJobIdsForGroup("maintenance of t")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def test_listeners_hear_how_far_a_call_has_come(spark: Any, tmp_path: Path) -> None:
    listener = Listener()
    with memory_catalog(listener, warehouse=f"file://{tmp_path}/heard") as catalog:
        attach(spark, catalog, name="heard")
        spark.sql("CREATE TABLE heard.db.t AS SELECT id FROM range(2)")
        listener.events.clear()
        spark.sql("CALL heard.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    kinds = [type(each) for each in listener.events]
    assert OperationProgress in kinds[: kinds.index(CommitMade)]


def test_calls_and_queries_of_several_threads_do_not_wait_for_each_other(prod: Any, catalog: icefield.Catalog) -> None:
    failures: list[Exception] = []

    def work(name: str) -> None:
        try:
            prod.sql(f"CREATE TABLE prod.db.{name} AS SELECT id FROM range(10)")
            for number in range(3):
                prod.sql(f"INSERT INTO prod.db.{name} VALUES ({number})")
                call = f"rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))"
                assert prod.sql(f"CALL prod.system.{call}").first()[0] >= 2
                assert prod.table(f"prod.db.{name}").count() == 11 + number
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{number}",), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_a_function_of_foreach_batch_calls_in_the_session_of_the_batch(prod: Any, tmp_path: Path) -> None:
    found: list[int] = []

    def each(batch: Any, _: int) -> None:
        session = batch.sparkSession
        batch.writeTo("prod.db.t").append()
        session.sql("CALL prod.system.create_changelog_view('db.t', 'changes_of_batch')")
        found.append(session.table("changes_of_batch").count())
        session.sql("CALL prod.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")

    prod.sql("SELECT 7L AS id, 'new' AS s").write.json(str(tmp_path / "in"))
    stream = prod.readStream.schema("id long, s string").json(str(tmp_path / "in"))
    writer = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert found == [4]
    assert prod.table("prod.db.t").count() == 4
    assert not prod.catalog.tableExists("changes_of_batch")
