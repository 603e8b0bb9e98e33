"""Scans of a catalog's tables within the plans of statements: by Spark's own reader, or as rows that are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import icefield
import pytest
from icefield_spark import attach

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_WITHOUT_BROADCASTS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture
def prod(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``, with a table of two files."""
    attach(spark, catalog, name="prod")
    spark.sql("CREATE TABLE prod.db.t (id BIGINT, k INT, s STRING) TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    for start in (0, 50):
        rows = f"SELECT id, CAST(id % 5 AS INT), concat('s', id) FROM range({start}, {start + 50}, 1, 1)"
        spark.sql(f"INSERT INTO prod.db.t {rows}")
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW model AS SELECT id, CAST(id % 5 AS INT) AS k, concat('s', id) AS s FROM range(100)"
    )
    yield spark
    for name in _WITHOUT_BROADCASTS:
        spark.conf.unset(name)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


_QUERIES = [
    "SELECT count(*) FROM {t} WHERE id IS NOT NULL",
    "SELECT k, sum(id), max(s) FROM {t} WHERE id > 20 AND s LIKE 's%1' GROUP BY k",
    "SELECT a.id, b.s FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE b.k = 2",
    "SELECT a.id FROM {t} a LEFT ANTI JOIN {t} b ON a.id = b.id + 1 AND b.k < 3",
    "SELECT id FROM {t} WHERE k = (SELECT max(k) FROM {t}) OR id IN (SELECT id * 2 FROM {t} WHERE k = 1)",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY s) FROM {t}",
    "SELECT id FROM {t} WHERE k = 1 UNION SELECT id + 1 FROM {t} WHERE k = 2 EXCEPT SELECT 7L",
    "WITH v AS (SELECT k, id FROM {t}) SELECT a.k, b.id FROM v a JOIN v b USING (k) WHERE a.id = 3",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("settings", [{}, _WITHOUT_BROADCASTS], ids=["broadcasts", "sorts"])
def test_sparks_reader_is_a_part_of_the_statement(prod: Any, query: str, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        prod.conf.set(name, value)
    frame = prod.sql(query.format(t="prod.db.t"))
    expected = prod.sql(query.format(t="model")).collect()
    assert sorted(frame.collect()) == sorted(expected)
    plan = plan_of(frame)
    assert "FileScan parquet icefield db.t files=2" in plan
    assert "BatchScan" not in plan


def test_files_with_deletes_are_given_as_rows_where_spark_does_not_read_them(prod: Any) -> None:
    prod.sql("DELETE FROM prod.db.t WHERE id % 10 = 3")
    prod.sql("ALTER TABLE prod.db.t SET TBLPROPERTIES ('write.format.default'='orc')")
    prod.sql("INSERT INTO prod.db.t VALUES (100, 0, 's100')")
    frame = prod.sql("SELECT sum(id), count(*) FROM prod.db.t")
    assert frame.collect() == [(sum(each for each in range(101) if each % 10 != 3), 91)]
    assert "BatchScan" in plan_of(frame)


def test_a_cached_table_is_found_again(prod: Any) -> None:
    prod.sql("CACHE TABLE prod.db.t")
    try:
        assert "In-memory table" in plan_of(prod.sql("SELECT sum(id) FROM prod.db.t"))
    finally:
        prod.sql("UNCACHE TABLE prod.db.t")
