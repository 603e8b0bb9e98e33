"""Values that a join finds leave out files of a scan at run time, and the rows of the others stay right."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def prod(prod: Any) -> Any:
    """A partition of each format and layout: Parquet, Parquet with an older name of a column, and ORC."""
    prod.sql("CREATE TABLE prod.db.t (id BIGINT, k INT, was STRING) PARTITIONED BY (k)")
    prod.sql("INSERT INTO prod.db.t SELECT id, CAST(id % 2 AS INT), concat('s', id) FROM range(8)")
    prod.sql("ALTER TABLE prod.db.t RENAME COLUMN was TO s")
    prod.sql("INSERT INTO prod.db.t SELECT id, CAST(id % 2 + 2 AS INT), concat('s', id) FROM range(8, 16)")
    prod.sql("ALTER TABLE prod.db.t SET TBLPROPERTIES ('write.format.default' = 'orc')")
    prod.sql("INSERT INTO prod.db.t SELECT id, CAST(id % 4 + 4 AS INT), concat('s', id) FROM range(16, 32)")
    prod.sql("SELECT CAST(id AS INT) AS k, id % 4 AS kind FROM range(8)").createOrReplaceTempView("kinds")
    prod.table("prod.db.t").createOrReplaceTempView("model")
    prod.createDataFrame(prod.table("model").collect(), "id long, k int, s string").createOrReplaceTempView("model")
    return prod


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_rows_are_right_whatever_files_a_join_leaves_out(prod: Any, adaptive: str) -> None:
    prod.conf.set("spark.sql.adaptive.enabled", adaptive)
    wanted = ["kinds.kind = 3", "kinds.k = 6", "kinds.k IN (2, 7)", "kinds.k > 4", "kinds.k IN (0, 3, 5)"]
    query = "SELECT t.id, t.s, kinds.kind FROM {t} t JOIN kinds ON t.k = kinds.k WHERE "
    try:
        for where in wanted:
            expected = sorted(prod.sql(query.format(t="model") + where).collect())
            assert sorted(prod.sql(query.format(t="prod.db.t") + where).collect()) == expected, where
    finally:
        prod.conf.unset("spark.sql.adaptive.enabled")


def test_one_scan_in_two_places_of_a_plan_gives_each_its_rows(prod: Any) -> None:
    query = (
        "WITH v AS (SELECT t.id, t.s, kinds.kind FROM {t} t JOIN kinds ON t.k = kinds.k WHERE kinds.k > 5) "
        "SELECT a.id, b.s FROM v a JOIN v b ON a.id = b.id UNION ALL SELECT id, s FROM v EXCEPT ALL SELECT id, s FROM v"
    )
    expected = sorted(prod.sql(query.format(t="model")).collect())
    assert sorted(prod.sql(query.format(t="prod.db.t")).collect()) == expected
