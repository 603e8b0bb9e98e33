"""Statements of Spark's own SQL on tables of a catalog, each as Iceberg's Java runtime answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icefield
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = ("copy-on-write", "merge-on-read")


def ids(spark: Any) -> list[int]:
    return sorted(row.id for row in spark.table("prod.db.t").collect())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("of", ["", " WHERE true", " WHERE 1 = 1", " WHERE id >= 0"])
def test_all_rows_are_deleted(prod: Any, mode: str, of: str) -> None:
    prod.sql(f"CREATE TABLE prod.db.t (id BIGINT) TBLPROPERTIES ('write.delete.mode' = '{mode}')")
    prod.sql("INSERT INTO prod.db.t SELECT id FROM range(5)")
    prod.sql("DELETE FROM prod.db.t WHERE false")
    prod.sql("DELETE FROM prod.db.t WHERE CAST(NULL AS BOOLEAN)")
    assert ids(prod) == [0, 1, 2, 3, 4]
    prod.sql("DELETE FROM prod.db.t WHERE id = 3")
    prod.sql(f"DELETE FROM prod.db.t{of}")
    assert ids(prod) == []


def test_all_rows_are_replaced_by_a_condition_that_is_true(prod: Any) -> None:
    from pyspark.sql import functions as f

    prod.sql("CREATE TABLE prod.db.t (id BIGINT)")
    prod.sql("INSERT INTO prod.db.t SELECT id FROM range(5)")
    prod.range(7, 9).writeTo("prod.db.t").overwrite(f.lit(True))
    assert ids(prod) == [7, 8]
    prod.sql("INSERT INTO prod.db.t REPLACE WHERE true SELECT 9")
    assert ids(prod) == [9]


def test_a_table_is_moved_by_its_location(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT)")
    prod.sql("INSERT INTO prod.db.t VALUES (1)")
    there = catalog.load_table("db.t").location() + "-moved"
    prod.sql(f"ALTER TABLE prod.db.t SET LOCATION '{there}'")
    table = catalog.load_table("db.t")
    assert table.location() == there
    assert "location" not in table.properties
    prod.sql("INSERT INTO prod.db.t VALUES (2)")
    assert ids(prod) == [1, 2]


def test_the_order_and_the_key_of_a_table_are_among_its_properties(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT NOT NULL, s STRING)")
    table = catalog.load_table("db.t")
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.set_identifier_fields("id")
        with transaction.update_sort_order() as order:
            order.asc("id", "bucket[4]").desc("s", "truncate[2]")
    shown = dict(prod.sql("SHOW TBLPROPERTIES prod.db.t").collect())
    assert shown["sort-order"] == "bucket(4, id) ASC NULLS FIRST, truncate(s, 2) DESC NULLS LAST"
    assert shown["identifier-fields"] == "[id]"


def test_the_format_version_is_raised_by_its_property(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT)")
    prod.sql("ALTER TABLE prod.db.t SET TBLPROPERTIES ('format-version' = '3')")
    assert catalog.load_table("db.t").format_version == 3


def test_rows_of_a_table_are_counted_by_metadata_where_that_is_exact(prod: Any) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    assert prod.sql("SELECT count(*) FROM prod.db.t").collect() == [(0,)]
    prod.sql("INSERT INTO prod.db.t SELECT id FROM range(10)")
    first = prod.sql("SELECT snapshot_id FROM prod.db.t.snapshots").first()[0]
    prod.sql("INSERT INTO prod.db.t SELECT NULL")
    for query, counts in (
        ("SELECT count(*) AS n, count(1) FROM prod.db.t", [(11, 11)]),
        (f"SELECT count(*) FROM prod.db.t VERSION AS OF {first}", [(10,)]),
    ):
        assert prod.sql(query).collect() == counts
        plan = prod.sql(f"EXPLAIN {query}").first()[0]
        assert "LocalTableScan" in plan
        assert "files=" not in plan
    for query, rows in (
        ("SELECT count(id), count(*) + 1 FROM prod.db.t", [(10, 12)]),
        ("SELECT count(NULL) FROM prod.db.t", [(0,)]),
        ("SELECT count(*) FROM prod.db.t WHERE id > 4", [(5,)]),
        ("SELECT count(DISTINCT 1) FROM prod.db.t", [(1,)]),
        ("SELECT id % 2 AS k, count(*) FROM prod.db.t GROUP BY k ORDER BY k", [(None, 1), (0, 5), (1, 5)]),
        ("SELECT count(*) FROM (SELECT id FROM prod.db.t LIMIT 3)", [(3,)]),
        ("SELECT count(*) FILTER (WHERE id < 3) FROM prod.db.t", [(3,)]),
        ("SELECT count(*) FROM prod.db.t HAVING count(*) > 20", []),
        ("SELECT count(*) FROM prod.db.t TABLESAMPLE (0 PERCENT)", [(0,)]),
        ("SELECT count(*) FROM prod.db.t a JOIN prod.db.t b ON a.id = b.id", [(10,)]),
    ):
        assert prod.sql(query).collect() == rows, query
    prod.sql("DELETE FROM prod.db.t WHERE id = 3")
    assert prod.sql("SELECT count(*) FROM prod.db.t").collect() == [(10,)]


def test_an_old_version_is_read_with_the_columns_that_it_had(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT, p INT) PARTITIONED BY (p)")
    prod.sql("INSERT INTO prod.db.t SELECT id, id % 2 FROM range(6)")
    then = catalog.load_table("db.t").current_snapshot()
    assert then is not None
    prod.sql("REPLACE TABLE prod.db.t PARTITIONED BY (q) AS SELECT concat('n', id) AS name, 1 AS q FROM prod.db.t")
    old = f"prod.db.t VERSION AS OF {then.snapshot_id}"
    assert prod.sql(f"SELECT count(*) FROM {old} WHERE rand() >= 0").collect() == [(6,)]
    assert prod.sql(f"SELECT count(*) FROM {old} a JOIN (SELECT 1 AS p) b ON a.p = b.p").collect() == [(3,)]
    assert prod.sql(f"SELECT count(*), max(id) FROM {old} WHERE p = 1").collect() == [(3, 5)]
    assert prod.sql("SELECT count(*) FROM prod.db.t WHERE rand() >= 0").collect() == [(6,)]


def test_the_statement_that_creates_a_table_can_be_run(prod: Any, catalog: icefield.Catalog, tmp_path: Path) -> None:
    there = f"file://{tmp_path}/far"
    prod.sql(f"CREATE TABLE prod.db.t (id BIGINT, s STRING) PARTITIONED BY (bucket(4, id)) LOCATION '{there}'")
    prod.sql("INSERT INTO prod.db.t VALUES (1, 'a')")
    with catalog.load_table("db.t").update_sort_order() as order:
        order.asc("id")
    assert catalog.load_table("db.t").location() == there
    (statement,) = prod.sql("SHOW CREATE TABLE prod.db.t").first()
    prod.sql(statement.replace("prod.db.t ", "prod.db.copy ").replace("/far", "/copy"))
    table, copy = catalog.load_table("db.t"), catalog.load_table("db.copy")
    assert copy.schema() == table.schema()
    assert copy.spec() == table.spec()
    assert copy.properties == table.properties
    assert copy.location() == f"file://{tmp_path}/copy"
