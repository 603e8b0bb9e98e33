"""Random statements on tables of a catalog give what Spark gives on Parquet files of the same rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield_spark import attach
from pyspark.errors import NumberFormatException, PySparkException
from random_sql import ROWS, RandomSql
from session_settings import settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHANGES = 500 if os.environ.get("ICEFIELD_SOAK") else 16
QUERIES = 2000 if os.environ.get("ICEFIELD_SOAK") else 40

TABLES = ("prod.db.one", "prod.db.two")
SETTINGS: list[dict[str, str]] = [
    {},
    {"spark.sql.ansi.enabled": "false"},
    {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"},
    {"spark.sql.session.timeZone": "Asia/Kathmandu"},
]


def rows(spark: Any, query: str) -> list[str]:
    return sorted(repr(tuple(row)).replace("-0.0", "0.0") for row in spark.sql(query).collect())


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Tables of several files, layouts, formats and deletes, and views ``one`` and ``two`` of the same rows."""
    folder = tmp_path_factory.mktemp("generated")
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
    with icefield.load_catalog("test", type="sql", uri=uri, warehouse=warehouse, **{"file.sync": "false"}) as catalog:
        catalog.create_namespace("db")
        attach(spark, catalog, name="prod")
        marks = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
        fill(spark, "one", f"PARTITIONED BY (k) TBLPROPERTIES ({marks})", folder)
        fill(spark, "two", f"PARTITIONED BY (days(at), truncate(2, s)) TBLPROPERTIES ({marks})", folder)
        yield spark


def fill(spark: Any, name: str, said: str, folder: Path) -> None:
    first, then, last = (ROWS.format(start=start, end=start + 20) for start in (0, 20, 40))
    columns = "id BIGINT, k INT, text STRING, f DOUBLE, d DATE, at TIMESTAMP, n DECIMAL(9, 2), b BOOLEAN, "
    said = said.replace(" s)", " text)")
    spark.sql(f"CREATE TABLE prod.db.{name} ({columns} home STRUCT<city: STRING, zip: INT>) {said}")
    spark.sql(f"INSERT INTO prod.db.{name} {first}")
    spark.sql(f"ALTER TABLE prod.db.{name} RENAME COLUMN text TO s")
    spark.sql(f"INSERT INTO prod.db.{name} {then}")
    spark.sql(f"ALTER TABLE prod.db.{name} SET TBLPROPERTIES ('write.format.default' = 'orc')")
    spark.sql(f"INSERT INTO prod.db.{name} {last}")
    spark.sql(f"DELETE FROM prod.db.{name} WHERE id IN (5, 23, 24, 47)")
    kept = " UNION ALL ".join(f"({each})" for each in (first, then, last))
    model = f"{folder}/{name}.parquet"
    spark.sql(kept).where("id NOT IN (5, 23, 24, 47)").write.parquet(model)
    spark.read.parquet(model).createOrReplaceTempView(name)


@pytest.mark.counted
@pytest.mark.timeout(7_200)  # 2,000 take an hour on a busy machine
def test_random_queries_give_the_rows_that_they_give_on_parquet_files(both: Any) -> None:
    refused = 0
    for seed in range(QUERIES):
        made = RandomSql(seed)
        query = made.query(TABLES)
        with settings(both, SETTINGS[seed % len(SETTINGS)]):
            try:
                expected = rows(both, query.replace("prod.db.", ""))
            except PySparkException:  # such as a cast that fails under ANSI: which rows it meets is Spark's to choose
                refused += 1
                continue
            assert rows(both, query) == expected, f"seed {seed}: {query}"
    print(f"{QUERIES} queries, {refused} refused by Spark")
    assert refused < QUERIES / 3


LAYOUTS = (
    ("1", "copy-on-write", "PARTITIONED BY (k)"),
    ("2", "merge-on-read", ""),
    ("2", "merge-on-read", "PARTITIONED BY (days(at), bucket(3, id))"),
    ("2", "copy-on-write", "PARTITIONED BY (truncate(2, s))"),
    ("3", "merge-on-read", "PARTITIONED BY (k)"),
    ("3", "copy-on-write", ""),
)


@pytest.mark.counted
def test_random_changes_leave_the_rows_that_a_query_makes_of_those_before(both: Any) -> None:
    made, columns = {"DELETE": 0, "UPDATE": 0, "MERGE": 0}, both.table("one").schema
    done = refused = seed = 0
    while done < CHANGES:
        random = RandomSql(seed)
        version, mode, partitions = LAYOUTS[seed % len(LAYOUTS)]
        seed += 1
        modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
        both.sql("DROP TABLE IF EXISTS prod.db.changed")
        both.sql(
            f"CREATE TABLE prod.db.changed {partitions} TBLPROPERTIES ('format-version' = '{version}', {modes}) AS "
            f"{ROWS.format(start=0, end=30)}"
        )
        both.sql(f"INSERT INTO prod.db.changed {ROWS.format(start=30, end=60)}")
        both.table("prod.db.changed").createOrReplaceTempView("model")
        both.createDataFrame(both.table("model").collect(), columns).createOrReplaceTempView("model")
        for _ in range(4):
            statement, query = random.change()
            try:
                after = both.sql(query.format(model="model")).collect()
            except PySparkException:
                continue
            try:
                both.sql(statement.format(table="prod.db.changed"))
            except NumberFormatException:  # of a cast of a constant, which Spark folds in MERGE alone
                refused += 1
                assert rows(both, "SELECT * FROM prod.db.changed") == rows(both, "SELECT * FROM model")
                continue
            both.createDataFrame(after, columns).createOrReplaceTempView("model")
            assert rows(both, "SELECT * FROM prod.db.changed") == rows(both, "SELECT * FROM model"), (
                f"seed {seed - 1}, version {version}, {mode} {partitions}: {statement}"
            )
            made[statement.split(" ", 1)[0]] += 1
            done += 1
    print(f"{made} of {seed} tables, {refused} refused by Spark")
    assert refused < CHANGES / 50 + 2
    assert min(made.values()) > CHANGES / 10
