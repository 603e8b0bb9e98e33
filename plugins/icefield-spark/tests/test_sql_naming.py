"""What a name in a statement means: tables, common table expressions and views that are called alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(ice: Any, spark: Any) -> Iterator[Any]:
    """``db.w`` of the catalog with rows, where Spark has an empty table ``w``, and ``other.w``."""
    spark.sql("CREATE TABLE default.w (id int, v int) USING parquet")
    ice.sql("CREATE TABLE db.w (id int, v int)")
    ice.sql("INSERT INTO db.w VALUES (1, 10), (2, 20), (3, 30)")
    ice.sql("CREATE NAMESPACE other")
    ice.sql("CREATE TABLE other.w (id int)")
    ice.sql("USE test.db")
    yield ice
    spark.sql("DROP TABLE default.w")


def rows(ice: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(each) for each in ice.sql(query).collect())


@pytest.mark.slow
def test_a_common_table_expression_hides_a_table_only_where_it_is_visible(numbers: Any) -> None:
    assert rows(numbers, "WITH w AS (SELECT id FROM w WHERE id < 3) SELECT * FROM w") == [(1,), (2,)]
    inner = "(SELECT max(z) FROM (WITH w AS (SELECT 7 AS z) SELECT * FROM w))"
    assert rows(numbers, f"SELECT {inner} AS z, count(*) FROM w") == [(7, 3)]
    later = "WITH a AS (SELECT max(id) AS n FROM w), w AS (SELECT n FROM a) SELECT * FROM w UNION ALL SELECT n FROM w"
    assert rows(numbers, later) == [(3,), (3,)]
    nested = "WITH w AS (SELECT 5 AS n) SELECT * FROM (WITH w AS (SELECT n + 1 AS n FROM w) SELECT * FROM w)"
    assert rows(numbers, nested) == [(6,)]
    numbers.sql("INSERT INTO w WITH w AS (SELECT * FROM w WHERE id = 2) SELECT id + 100, v FROM w")
    assert rows(numbers, "SELECT id FROM w") == [(1,), (2,), (3,), (102,)]
    bucket = "WITH w AS (SELECT id FROM w WHERE id = 3) SELECT system.bucket(4, w.id) IS NOT NULL FROM w"
    assert rows(numbers, bucket) == [(True,)]


def test_a_recursive_expression_is_visible_in_its_own_query(numbers: Any, spark: Any) -> None:
    if spark.version < "4.1":
        pytest.skip("Spark has no recursive expressions before 4.1")
    query = "WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM w WHERE n < 3) SELECT * FROM w"
    assert rows(numbers, query) == [(1,), (2,), (3,)]


@pytest.mark.slow
def test_a_column_is_named_by_any_end_of_its_tables_whole_name(numbers: Any) -> None:
    for query in (
        "SELECT db.w.id FROM test.db.w WHERE w.id = 2",
        "SELECT test.db.w.id FROM db.w WHERE db.w.id = 2",
        "SELECT db.w.id FROM w WHERE test.db.w.id = 2",
        "SELECT db.w.id FROM w AS x JOIN db.w ON x.id = db.w.id WHERE x.v = 20",
    ):
        assert rows(numbers, query) == [(2,)], query
    assert rows(numbers, "SELECT DB.W.* FROM test.db.w WHERE id = 2") == [(2, 20)]
    assert rows(numbers, "SELECT system.truncate(10, db.w.v) FROM w WHERE id = 2") == [(20,)]
    numbers.sql("CREATE TABLE places (id int, home struct<city: string>)")
    numbers.sql("INSERT INTO places VALUES (1, named_struct('city', 'Oslo'))")
    query = "SELECT test.db.places.home.city, db.places.home.city FROM places WHERE db.places.home.city = 'Oslo'"
    assert rows(numbers, query) == [("Oslo", "Oslo")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT id FROM db.w WHERE EXISTS (SELECT 1 FROM other.w WHERE other.w.id = db.w.id)", [(2,)]),
        ("SELECT DISTINCT db.w.id FROM db.w JOIN other.w ON true", [(1,), (2,), (3,)]),
        ("SELECT id FROM db.w WHERE EXISTS (SELECT 1 FROM (SELECT 1 AS id) AS w WHERE w.id = db.w.id)", [(1,)]),
    ],
)
def test_a_qualifier_means_the_table_that_it_names(numbers: Any, query: str, found: list[Any]) -> None:
    numbers.sql("INSERT INTO other.w VALUES (2)")
    assert rows(numbers, query) == found


@pytest.mark.slow
def test_identifier_gives_a_name_in_reads_and_in_changes(numbers: Any) -> None:
    numbers.sql("INSERT INTO IDENTIFIER('w') SELECT id + 10, v FROM IDENTIFIER('test.db.w') AS x WHERE x.id = 1")
    numbers.sql("DELETE FROM IDENTIFIER('db.`w`') WHERE IDENTIFIER('id') = 2")
    assert rows(numbers, "SELECT IDENTIFIER('id'), IDENTIFIER('abs')(-v) FROM w") == [(1, 10), (3, 30), (11, 10)]
    numbers.sql("CREATE VIEW shown AS SELECT id FROM IDENTIFIER('w')")
    assert rows(numbers, "SELECT * FROM shown") == [(1,), (3,), (11,)]
    numbers.sql("CREATE TABLE db.`identifier` (id int)")
    numbers.sql("INSERT INTO db.`identifier` (id) VALUES (5)")
    assert rows(numbers, "SELECT id AS `identifier` FROM `identifier`") == [(5,)]
    with pytest.raises(PySparkException, match="SYNTAX_ERROR"):
        numbers.sql("DELETE FROM IDENTIFIER('w x')")
    assert rows(numbers, "SELECT count(*) FROM IDENTIFIER('w' || '')") == [(3,)]


@pytest.mark.slow
def test_a_temporary_view_comes_before_the_current_namespace(numbers: Any, spark: Any) -> None:
    numbers.sql("CREATE VIEW db.kept AS SELECT max(id) AS id FROM w")
    numbers.sql("CREATE TEMPORARY VIEW w AS SELECT 42 AS id")
    try:
        assert rows(numbers, "SELECT * FROM w") == [(42,)]
        assert rows(numbers, "SELECT count(*) FROM w JOIN db.w AS x ON x.id < w.id") == [(3,)]
        assert rows(numbers, "SELECT * FROM kept") == [(3,)]
        for statement in ("INSERT INTO w VALUES (7, 7)", "DELETE FROM w", "ALTER TABLE w ADD COLUMN x int"):
            with pytest.raises(Exception, match=r"is a view|UNSUPPORTED_INSERT|EXPECT_TABLE|Unexpected table"):
                numbers.sql(statement)
        numbers.sql("CREATE OR REPLACE TABLE w (id int)")
        assert rows(numbers, "SELECT * FROM w") == [(42,)]
        numbers.sql("DROP VIEW w")
        assert rows(numbers, "SELECT * FROM w") == []
    finally:
        spark.catalog.dropTempView("w")


@pytest.mark.slow
def test_the_current_catalog_and_namespace_are_those_that_use_named(numbers: Any) -> None:
    found = numbers.sql("SELECT current_catalog(), current_database ( ), current_schema() AS s, id FROM w WHERE id = 1")
    assert found.collect() == [("test", "db", "db", 1)]
    assert found.columns == ["current_catalog()", "current_schema()", "s", "id"]
    query = "SELECT system.truncate(1, current_database()) FROM w WHERE current_catalog() || id = 'test2'"
    assert rows(numbers, query) == [("d",)]
    assert {("test",), ("spark_catalog",)} <= set(rows(numbers, "SHOW CATALOGS"))
    assert rows(numbers, "SHOW CATALOGS LIKE 'te*'") == [("test",)]
    numbers.sql("USE spark_catalog.default")
    assert rows(numbers, "SELECT current_catalog(), current_database()") == [("spark_catalog", "default")]
