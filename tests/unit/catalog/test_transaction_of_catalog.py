"""Changes of several tables in one step."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument, NoSuchTable, NotSupportedByCatalog

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("test", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    made.create_namespace("db")
    for name in ("db.a", "db.b"):
        made.create_table(name, ROWS.schema, properties={"commit.retry.min-wait-ms": "1"})
    return made


def counts(catalog: Catalog) -> list[int]:
    return [catalog.load_table(name).scan().count() for name in ("db.a", "db.b")]


def test_all_changes_are_visible_or_none(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.table("db.a").append(ROWS)
        tx.table("db.b").append(ROWS)
        tx.table("db.a").append(ROWS)
        assert counts(catalog) == [0, 0]
    assert counts(catalog) == [4, 2]
    assert len(catalog.load_table("db.a").snapshots()) == 2
    with pytest.raises(ZeroDivisionError), catalog.transaction() as tx:  # noqa: PT012
        tx.table("db.a").append(ROWS)
        raise ZeroDivisionError
    assert counts(catalog) == [4, 2]


def test_what_comes_between_is_built_upon(catalog: Catalog) -> None:
    tx = catalog.transaction()
    tx.table("db.a").append(ROWS)
    tx.table("db.b").append(ROWS)
    catalog.load_table("db.a").append(ROWS)
    tx.commit_transaction()
    assert counts(catalog) == [4, 2]
    with pytest.raises(InvalidArgument, match="ended"):
        tx.commit_transaction()


def test_a_transaction_that_is_given_up_leaves_no_file(catalog: Catalog, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*.parquet"))
    tx = catalog.transaction()
    tx.table("db.a").append(ROWS)
    tx.table("db.b").append(ROWS)
    tx.abort()
    assert sorted(tmp_path.rglob("*.parquet")) == before
    tx = catalog.transaction()
    tx.table("db.a").append(ROWS)
    tx.table("db.b").append(ROWS)
    catalog.drop_table("db.b")
    with pytest.raises(NoSuchTable):
        tx.commit_transaction()
    assert catalog.load_table("db.a").scan().count() == 0
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_a_catalog_that_cannot_refuses_the_second_table(tmp_path: Path) -> None:
    catalog = load_catalog("test", type="directory", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    for name in ("db.a", "db.b"):
        catalog.create_table(name, ROWS.schema)
    tx = catalog.transaction()
    tx.table("db.a").append(ROWS)
    with pytest.raises(NotSupportedByCatalog, match="several tables"):
        tx.table("db.b")
    tx.commit_transaction()
    assert counts(catalog) == [2, 0]
