"""``ice.sql`` and the session around it: what a statement may name there, and what it leaves as it was."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument
from icefield_spark import attach
from icefield_spark.catalog import tables

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(ice: Any) -> Any:
    ice.sql("CREATE TABLE db.t (id bigint, part int)")
    for part in range(4):
        ice.sql(f"INSERT INTO db.t SELECT id, {part} FROM range({part * 10}, {part * 10 + 10}, 1, 1)")
    return ice


def test_use_counts_for_the_catalogs_own_statements_alone(numbers: Any, spark: Any) -> None:
    before = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    numbers.sql("USE db")
    assert numbers.sql("SELECT current_catalog(), current_schema(), max(id) FROM t").collect() == [("test", "db", 39)]
    assert (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()) == before
    numbers.sql("USE spark_catalog.default")
    assert numbers.sql("SELECT max(id) FROM test.db.t").collect() == [(39,)]


def test_settings_and_variables_of_the_session_hold_in_a_statement_and_after_it(numbers: Any, spark: Any) -> None:
    numbers.sql("SET icefield.tests.color = blue")
    assert spark.conf.get("icefield.tests.color") == "blue"
    spark.conf.unset("icefield.tests.color")
    if spark.version < "4":
        return
    spark.sql("DECLARE OR REPLACE VARIABLE most BIGINT DEFAULT 3")
    try:
        assert numbers.sql("SELECT count(*) FROM db.t WHERE id < most").collect() == [(3,)]
        numbers.sql("SET VAR most = 5")
        numbers.sql("DELETE FROM db.t WHERE id < most")
        assert spark.sql("SELECT most").collect() == [(5,)]
        assert numbers.count("db.t") == 35
    finally:
        spark.sql("DROP TEMPORARY VARIABLE most")


def test_a_temporary_view_of_a_table_is_a_view_of_the_session(numbers: Any, spark: Any) -> None:
    numbers.sql("CREATE TEMPORARY VIEW few AS SELECT * FROM db.t WHERE part = 1")
    try:
        assert spark.table("few").count() == 10
        assert [each.count_by_road() for each in [numbers.explain(spark.table("few"))]] == [{"spark": 1}]
        numbers.sql("ALTER VIEW few AS SELECT 1 AS id")
        assert spark.table("few").collect() == [(1,)]
    finally:
        numbers.sql("DROP VIEW few")
    assert not spark.catalog.tableExists("few")


def test_an_explanation_of_a_query_names_all_its_tables(numbers: Any, spark: Any) -> None:
    numbers.sql("CREATE TABLE db.u AS SELECT id FROM db.t WHERE id = 7")
    found = numbers.explain(
        numbers.sql("SELECT t.part FROM db.t JOIN db.u ON t.id = u.id AND t.id < 20 WHERE part IN (SELECT 0)")
    )
    assert {each.table for each in (found, *found.others)} == {"db.t", "db.u"}
    assert sum(len(each.files) for each in (found, *found.others)) == 3
    with pytest.raises(InvalidArgument, match="reads no table"):
        numbers.explain(spark.range(3))


def test_two_catalogs_of_one_name_stay_apart_in_a_session(numbers: Any, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with icefield.load_catalog(
        "test", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}"
    ) as more:
        more.create_namespace("db")
        other = attach(spark, more)
        other.sql("CREATE TABLE test.db.t AS SELECT 'other' AS id")
        other.sql("CREATE TEMPORARY VIEW theirs AS SELECT id FROM test.db.t")
        assert numbers.sql("SELECT count(*) FROM test.db.t").collect() == [(40,)]
        assert other.sql("SELECT * FROM theirs").collect() == [("other",)]
        assert numbers.sql("SELECT max(id) FROM test.db.t").collect() == [(39,)]
        spark.catalog.dropTempView("theirs")


def test_statements_of_several_threads_have_each_their_own_session(numbers: Any, spark: Any) -> None:
    found: list[Any] = []

    def work(part: int) -> None:
        for _ in range(3):
            found.append(numbers.sql(f"SELECT {part}, min(id) FROM db.t WHERE part = {part}").collect()[0])

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == sorted([(part, part * 10) for part in range(4)] * 3)
    assert spark.catalog.currentCatalog() == "spark_catalog"


@pytest.mark.slow
def test_a_script_reads_and_changes_tables(numbers: Any, spark: Any) -> None:
    if spark.version < "4.1":
        pytest.skip("scripts are on by default from Spark 4.1 on")
    script = "BEGIN DECLARE n BIGINT DEFAULT 7; DELETE FROM db.t WHERE id > n; SELECT count(*) FROM db.t; END"
    assert numbers.sql(script).collect() == [(8,)]


def test_a_merge_of_sparks_sql_reads_the_files_that_keys_of_its_source_may_be_in(
    prod: Any, ice: Any, numbers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    commit = tables.commit_changes

    def noted(session: Any, target: Any, *given: Any, **options: Any) -> None:
        read.append(len(target.plan.numbers))
        commit(session, target, *given, **options)

    monkeypatch.setattr(tables, "commit_changes", noted)
    merge = "MERGE INTO prod.db.t USING (SELECT int(id) AS id FROM range({}, {})) s ON t.id = s.id"
    prod.sql(f"{merge.format(12, 14)} WHEN MATCHED THEN UPDATE SET part = -1")
    prod.sql(f"{merge.format(35, 42)} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    files = len(ice.catalog.load_table("db.t").inspect.data_files())
    prod.sql(f"{merge.format(0, 2)} WHEN NOT MATCHED BY SOURCE AND id > 40 THEN DELETE")
    assert read == [1, 1, files]
    assert ice.count("db.t", "part = -1") == 2
    assert sorted(row.id for row in ice.table("db.t").collect()) == [*range(35), 40]
    twice = "(SELECT 1L AS id FROM range(2))"
    with pytest.raises(Exception, match=r"several rows of the source|MERGE_CARDINALITY_VIOLATION"):
        prod.sql(f"MERGE INTO prod.db.t USING {twice} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = 5")
    assert ice.count("db.t", "part = 5") == 0
