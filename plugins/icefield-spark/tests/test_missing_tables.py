"""Names that no table has: the error names the nearest table, and a name that Spark only tries costs no listing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.abc import Page
from icefield.errors import AccessDenied, NoSuchTable
from icefield_spark import attach
from icefield_spark.missing import did_you_mean


@pytest.fixture
def orders(catalog: icefield.Catalog) -> icefield.Catalog:
    """The test's catalog, with the table ``db.orders``."""
    catalog.create_table("db.orders", pa.schema([("id", pa.int64())]))
    return catalog


@pytest.fixture
def prod(spark: Any, orders: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``."""
    attach(spark, orders, name="prod")
    yield spark
    spark.sql("USE spark_catalog.default")


@pytest.fixture
def listings(orders: icefield.Catalog, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The namespaces of the tables that were listed."""
    asked: list[tuple[str, ...]] = []
    kind = type(orders.backend)
    real = kind.list_tables

    def noted(self: Any, namespace: tuple[str, ...], *, token: str | None = None) -> Any:
        asked.append(namespace)
        return real(self, namespace, token=token)

    monkeypatch.setattr(kind, "list_tables", noted)
    return asked


STATEMENTS = [
    "SELECT * FROM {}",
    "INSERT INTO {} VALUES (1)",
    "DELETE FROM {}",
    "UPDATE {} SET id = 1",
    "MERGE INTO {} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "DROP TABLE {}",
    "DESCRIBE {}",
]


@pytest.mark.spark
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("name", ["db.oders", "test.db.oders"])
def test_a_statement_on_a_wrong_name_says_the_nearest(
    spark: Any, orders: icefield.Catalog, statement: str, name: str
) -> None:
    said = r"^no table db.oders in catalog 'test'; did you mean db.orders\?$"
    if spark.version < "4.2" and name.startswith("test."):
        said += "|REQUIRES_SINGLE_PART_NAMESPACE"  # an error that does not state the name of the table
    with pytest.raises(Exception, match=said) as caught:
        attach(spark, orders).sql(statement.format(name))
    assert isinstance(caught.value, NoSuchTable) or "SINGLE_PART" in said


@pytest.mark.spark
def test_a_method_given_a_wrong_name_says_the_nearest(spark: Any, orders: icefield.Catalog) -> None:
    ice = attach(spark, orders)
    for method in (
        lambda: ice.table("db.ORDRES"),
        lambda: ice.append(spark.range(1), "db.order"),
        lambda: ice.delete("db.orderss", "id = 1"),
        lambda: ice.update("db.ordrs", {"id": "1"}),
        lambda: ice.maintenance("db.oorders"),
    ):
        with pytest.raises(NoSuchTable, match=r"^no table db.\w+ in catalog 'test'; did you mean db.orders\?$"):
            method()
    with pytest.raises(NoSuchTable, match=r"^no table db.other in catalog 'test'$"):
        ice.table("db.other")
    ice.sql("USE db")
    with pytest.raises(NoSuchTable, match=r"did you mean db.orders\?"):
        ice.sql("SELECT * FROM oders")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        ice.sql("SELECT * FROM nosuch.orders")


@pytest.mark.spark
@pytest.mark.slow
def test_readers_and_writers_of_a_wrong_name_say_the_nearest(prod: Any, listings: list[tuple[str, ...]]) -> None:
    frame = prod.range(1)
    for method in (
        lambda: prod.read.format("iceberg").load("prod.db.oders"),
        lambda: prod.readStream.format("iceberg").load("prod.db.oders"),
        lambda: frame.write.format("iceberg").mode("append").save("prod.db.oders"),
        lambda: frame.write.insertInto("prod.db.oders"),
    ):
        listings.clear()
        with pytest.raises(Exception, match=r"no table db.oders in catalog 'prod'; did you mean db.orders\?") as caught:
            method()
        assert "\n" not in str(caught.value).strip()
        assert listings == [("db",)]


@pytest.mark.spark
@pytest.mark.slow
def test_names_that_spark_only_tries_list_nothing(prod: Any, listings: list[tuple[str, ...]], tmp_path: Path) -> None:
    prod.range(3).write.parquet(f"file://{tmp_path}/rows")
    for statement in (
        "DROP TABLE IF EXISTS prod.db.oders",
        "CREATE TABLE IF NOT EXISTS prod.db.oders (id BIGINT)",
        "CREATE TABLE IF NOT EXISTS prod.db.orders (id BIGINT)",
        "UNCACHE TABLE IF EXISTS prod.db.orderss",
        "WITH c AS (SELECT * FROM prod.db.orders) SELECT * FROM c",
    ):
        prod.sql(statement).collect()
    assert not prod.catalog.tableExists("prod.db.orderss")
    prod.range(1).write.saveAsTable("prod.db.saved")
    prod.range(1).createOrReplaceTempView("orderss")
    prod.sql("USE prod.db")
    assert prod.sql("SELECT * FROM orderss").count() == 1
    assert prod.sql(f"SELECT * FROM parquet.`file://{tmp_path}/rows`").count() == 3
    prod.catalog.dropTempView("orderss")
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND"):
        prod.sql("SELECT * FROM prod.db.orderss")
    assert listings == []


def test_a_catalog_that_may_not_be_listed_gives_no_name(
    orders: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Any, namespace: tuple[str, ...], *, token: str | None = None) -> Any:
        raise AccessDenied("you may not list")

    monkeypatch.setattr(type(orders.backend), "list_tables", refused)
    assert did_you_mean(orders, ("db", "oders")) == ""


def test_a_namespace_of_many_tables_is_not_listed_to_its_end(
    orders: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[str | None] = []

    def endless(self: Any, namespace: tuple[str, ...], *, token: str | None = None) -> Page[tuple[str, ...]]:
        pages.append(token)
        return Page(tuple((*namespace, f"t{len(pages)}_{each}") for each in range(100)), "more")

    monkeypatch.setattr(type(orders.backend), "list_tables", endless)
    assert did_you_mean(orders, ("db", "t3_7")) == "; did you mean db.t3_7?"
    assert len(pages) == 10
