"""Views that ``ice.sql`` and Iceberg's Java runtime share through `icefield serve`: each uses views of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_engines import spark_catalog
from rest_lake import served_by_command
from servers.spark_runtime import SparkError, SparkRuntime
from servers.stock_spark import StockSpark

pytestmark = pytest.mark.slow

Run = Callable[[str], list[Any]]


@pytest.fixture
def sides(spark_runtime: SparkRuntime, stock_spark: StockSpark, tmp_path: Path) -> Iterator[tuple[Run, Run]]:
    """Two functions that run a statement, by Icefield and by Java, with the same catalog name and current namespace."""
    with served_by_command(tmp_path) as served:
        name = spark_catalog(spark_runtime, served)
        stock_spark.attach(name, type="rest", uri=served.uri, token=served.token)

        def here(text: str) -> list[Any]:
            return list(stock_spark.run(name, text.replace("{c}", name))["rows"])

        def there(text: str) -> list[Any]:
            return list(spark_runtime.run(text.replace("{c}", name))["rows"])

        here("CREATE NAMESPACE {c}.db")
        here("CREATE NAMESPACE {c}.other")
        here("CREATE TABLE db.t (id bigint, kind string) USING iceberg")
        here("INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
        here("USE {c}.db")
        there("USE {c}.db")
        try:
            yield here, there
        finally:
            there("USE spark_catalog")


VIEWS = {
    "columns": "CREATE VIEW v (number COMMENT 'an id', sort) COMMENT 'all' AS SELECT id, kind FROM t",
    "current": "CREATE VIEW v TBLPROPERTIES ('a' = 'b') AS SELECT id FROM t WHERE kind = 'a'",
    "named": "CREATE VIEW v AS SELECT x.id, x.kind FROM {c}.db.t x JOIN other.w y ON x.id = y.most",
    "common": "CREATE VIEW v AS WITH chosen AS (SELECT * FROM t) SELECT kind, count(*) FROM chosen GROUP BY kind",
    "types": "CREATE VIEW v AS SELECT CAST(id AS smallint) AS a, array(id) AS b, 1.5 AS c FROM t",
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("maker", [0, 1], ids=["here", "there"])
def test_each_reads_the_views_of_the_other(sides: tuple[Run, Run], view: str, maker: int) -> None:
    make, read = sides[maker], sides[1 - maker]
    make("CREATE VIEW {c}.other.w AS SELECT max(id) AS most FROM {c}.db.t")
    make(VIEWS[view])
    for run in (make, read):
        run("USE {c}.other")
    shown = make("SELECT * FROM {c}.db.v ORDER BY 1")
    assert shown
    assert read("SELECT * FROM {c}.db.v ORDER BY 1") == shown
    for statement in (
        "DESCRIBE {c}.db.v",
        "SHOW VIEWS IN {c}.db",
        "SHOW TBLPROPERTIES {c}.db.v",
    ):
        assert sorted(read(statement)) == sorted(make(statement)), statement


@pytest.mark.parametrize("first", [0, 1], ids=["here", "there"])
def test_each_changes_the_views_of_the_other(sides: tuple[Run, Run], first: int) -> None:
    one, other = sides[first], sides[1 - first]
    one("CREATE VIEW v AS SELECT id FROM t")
    other("CREATE OR REPLACE VIEW v AS SELECT kind, id FROM t WHERE id > 1")
    assert sorted(one("SELECT * FROM v")) == [["a", 3], ["b", 2]]
    one("ALTER VIEW v SET TBLPROPERTIES ('x' = 'y', 'z' = '1')")
    other("ALTER VIEW v UNSET TBLPROPERTIES ('z')")
    assert ["x", "y"] in one("SHOW TBLPROPERTIES v")
    assert not [row for row in one("SHOW TBLPROPERTIES v") if row[0] == "z"]
    other("ALTER VIEW v RENAME TO {c}.other.v2")
    assert one("SHOW VIEWS IN {c}.other") == [["other", "v2", False]]
    one("INSERT INTO t VALUES (9, 'z')")
    assert sorted(other("SELECT id FROM {c}.other.v2")) == [[2], [3], [9]]
    one("DROP VIEW {c}.other.v2")
    with pytest.raises(SparkError):
        other("SELECT * FROM {c}.other.v2")
    assert other("SHOW VIEWS IN {c}.other") == []
