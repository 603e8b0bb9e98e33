"""Tables that are partitioned alike are joined where their files are, without a shuffle of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from session_settings import settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUPED = {"spark.sql.iceberg.planning.preserve-data-grouping": "true"}
IN_PLACE = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}
JOINS = (
    "SELECT a.id, a.s, b.s FROM prod.db.a a JOIN prod.db.b b ON a.id = b.id",
    "SELECT a.id, b.id FROM prod.db.a a FULL JOIN prod.db.b b ON a.id = b.id",
    "SELECT a.id, a.s FROM prod.db.a a LEFT ANTI JOIN prod.db.b b ON a.id = b.id",
    "SELECT a.id, b.n FROM prod.db.a a LEFT JOIN (SELECT id, count(*) n FROM prod.db.b GROUP BY id) b ON a.id = b.id",
)


@pytest.fixture
def prod(prod: Any) -> Iterator[Any]:
    with settings(prod, IN_PLACE):
        yield prod


def filled(prod: Any, name: str, kind: str, partitioning: str, first: int, last: int) -> None:
    prod.sql(f"CREATE TABLE prod.db.{name} (id {kind}, s STRING) PARTITIONED BY ({partitioning})")
    value = {"TIMESTAMP": "timestamp_seconds(id * 7000)", "DATE": "date_add(DATE '2020-01-01', CAST(id AS INT))"}
    made = value.get(kind, f"CAST(id AS {kind})")
    prod.sql(f"INSERT INTO prod.db.{name} SELECT {made}, concat('s', id % 5) FROM range({first}, {last})")
    prod.sql(f"INSERT INTO prod.db.{name} SELECT {made}, NULL FROM range({last}, {last + 3})")
    prod.sql(f"INSERT INTO prod.db.{name} VALUES (NULL, 'none')")


def found(prod: Any, query: str) -> tuple[list[str], int]:
    """The rows of a query, and how often its plan shuffles rows by a hash."""
    frame = prod.sql(query)
    rows = sorted(map(repr, frame.collect()))
    return rows, frame._jdf.queryExecution().executedPlan().toString().count("Exchange hashpartitioning")


def check(prod: Any, query: str, *, shuffles: int) -> None:
    with settings(prod, GROUPED):
        rows, exchanges = found(prod, query)
    expected, _ = found(prod, query)
    assert rows == expected
    assert exchanges == shuffles, prod.sql(query)._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    ("kind", "partitioning"),
    [
        ("BIGINT", "bucket(4, id)"),
        ("STRING", "bucket(3, id)"),
        ("STRING", "bucket(3, id), truncate(1, s)"),
        ("DECIMAL(9, 2)", "id"),
        ("DATE", "months(id)"),
        ("TIMESTAMP", "days(id)"),
        ("TIMESTAMP", "hours(id)"),
        ("INT", "id"),
    ],
)
def test_joins_of_tables_that_are_partitioned_alike_shuffle_no_rows(prod: Any, kind: str, partitioning: str) -> None:
    filled(prod, "a", kind, partitioning, 0, 20)
    filled(prod, "b", kind, partitioning, 10, 30)
    check(prod, JOINS[0], shuffles=0)


def test_without_the_setting_rows_are_shuffled(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id)", 0, 20)
    filled(prod, "b", "BIGINT", "bucket(4, id)", 10, 30)
    assert found(prod, JOINS[0])[1] == 2


def test_tables_with_other_partitions_are_shuffled_and_joined_right(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id)", 0, 20)
    filled(prod, "b", "BIGINT", "bucket(6, id)", 10, 30)
    with settings(prod, GROUPED):
        rows, exchanges = found(prod, JOINS[0])
    assert exchanges > 0
    assert rows == found(prod, JOINS[0])[0]


def test_files_of_an_older_partitioning_are_grouped_by_what_all_have_in_common(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id)", 0, 20)
    filled(prod, "b", "BIGINT", "bucket(4, id)", 10, 30)
    session = prod.newSession()  # which knows Iceberg's own statements
    session.sql("ALTER TABLE prod.db.a ADD PARTITION FIELD truncate(s, 1)")
    prod.sql("INSERT INTO prod.db.a SELECT id, concat('t', id) FROM range(25, 35)")
    check(prod, JOINS[0], shuffles=0)
    session.sql("ALTER TABLE prod.db.a DROP PARTITION FIELD bucket(4, id)")
    prod.sql("INSERT INTO prod.db.a SELECT id, concat('t', id) FROM range(5, 12)")
    with settings(prod, GROUPED):
        rows, exchanges = found(prod, JOINS[0])
    assert exchanges > 0, "files of one partitioning have no buckets"
    assert rows == found(prod, JOINS[0])[0]


def test_deleted_rows_orc_files_and_filters_of_a_join_are_right_in_groups(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id)", 0, 20)
    filled(prod, "b", "BIGINT", "bucket(4, id)", 10, 30)
    prod.sql("ALTER TABLE prod.db.a SET TBLPROPERTIES ('write.format.default' = 'orc')")
    prod.sql("INSERT INTO prod.db.a SELECT id, 'orc' FROM range(15, 25)")
    prod.sql("DELETE FROM prod.db.a WHERE id % 3 = 0")
    prod.sql("DELETE FROM prod.db.b WHERE id = 17")
    for query in JOINS:
        check(prod, query, shuffles=0)
    check(prod, f"{JOINS[0]} WHERE b.id IN (SELECT id FROM prod.db.b WHERE s = 's1')", shuffles=0)


def test_a_column_that_is_not_read_groups_no_files(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id), s", 0, 20)
    with settings(prod, GROUPED):
        assert found(prod, "SELECT count(*) FROM prod.db.a")[0] == ["Row(count(1)=24)"]
        assert sorted(prod.sql("SELECT s, count(*) FROM prod.db.a GROUP BY s").collect(), key=repr) == sorted(
            prod.table("prod.db.a").groupBy("s").count().collect(), key=repr
        )


def test_a_merge_does_not_group_the_files_of_its_target(prod: Any) -> None:
    filled(prod, "a", "BIGINT", "bucket(4, id)", 0, 20)
    filled(prod, "b", "BIGINT", "bucket(4, id)", 10, 30)
    with settings(prod, GROUPED):
        prod.sql(
            "MERGE INTO prod.db.a t USING (SELECT * FROM prod.db.b WHERE id IS NOT NULL) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT *"
        )
    assert prod.sql("SELECT count(*), count_if(s = 'merged') FROM prod.db.a").collect() == [(34, 13)]


@pytest.mark.parametrize("kind", [5, 9], ids=["files of one partitioning", "no files"])
def test_files_that_are_left_out_at_run_time_leave_the_groups_as_spark_knows_them(prod: Any, kind: int) -> None:
    prod.sql("CREATE TABLE prod.db.a (id BIGINT, k INT) PARTITIONED BY (bucket(4, id))")
    prod.sql("INSERT INTO prod.db.a SELECT id, 1 FROM range(20)")
    prod.newSession().sql("ALTER TABLE prod.db.a ADD PARTITION FIELD k")
    prod.sql("INSERT INTO prod.db.a SELECT id, 5 FROM range(10, 30)")
    filled(prod, "b", "BIGINT", "bucket(4, id)", 10, 30)
    prod.createDataFrame([(kind, 0), (1, 1)], "k int, id long").createOrReplaceTempView("kinds")
    query = (
        "SELECT /*+ BROADCAST(kinds) */ a.id, b.s FROM prod.db.a a JOIN prod.db.b b ON a.id = b.id "
        "JOIN kinds ON a.k = kinds.k WHERE kinds.id = 0"
    )
    with settings(prod, {"spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}):
        plan = prod.sql(query)._jdf.queryExecution().executedPlan().toString()
        assert "dynamicpruning" in plan
        check(prod, query, shuffles=0)
