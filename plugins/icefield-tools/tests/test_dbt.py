"""The projects of dbt in ``examples``: on DuckDB over ``icefield serve``, and in a Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield import Catalog
from tool_projects import ExampleProject, lake, rows, served

DBT = Path(sys.executable).with_name("dbt")
OPTIONS = ("--no-use-colors", "--no-send-anonymous-usage-stats", "build", "--profiles-dir", ".")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lake(tmp_path) as opened:
        yield opened


@pytest.fixture
def on_duckdb(tmp_path: Path, catalog: Catalog) -> Iterator[ExampleProject]:
    with served(tmp_path) as environment:
        yield ExampleProject("dbt-duckdb", tmp_path, [DBT, *OPTIONS], **environment)


@pytest.fixture
def in_spark(tmp_path: Path, catalog: Catalog) -> ExampleProject:
    return ExampleProject("dbt-spark", tmp_path, [sys.executable, "run_dbt.py", *OPTIONS])


def test_a_project_builds_on_duckdb_again_and_again(on_duckdb: ExampleProject, catalog: Catalog) -> None:
    build_twice(on_duckdb, catalog, 7)
    on_duckdb.run("--full-refresh")
    expected = {"customers", "days", "newest_orders", "orders", "orders_history"}
    assert {name for _, name in catalog.list_tables("shop")} == expected


def test_a_project_builds_in_spark_again(in_spark: ExampleProject, catalog: Catalog) -> None:
    build_twice(in_spark, catalog, 7)
    assert list(catalog.list_views("shop")) == [], "the view of a snapshot is dropped"
    assert len(list(catalog.load_table("shop.customers").snapshots())) == 2, "a replaced table keeps its snapshots"


def build_twice(project: ExampleProject, catalog: Catalog, passes: int) -> None:
    """Build a project, change its seeds, build it again and look at its tables."""
    assert f"PASS={passes} WARN=0 ERROR=0" in project.run()
    project.change_seeds()
    assert f"PASS={passes} WARN=0 ERROR=0" in project.run()
    assert rows(catalog, "shop.customers") == [("Ann", 2, 16.75), ("Bob", 1, 20.0), ("Cid", 1, 1.0)]
    assert [amount for _, amount in rows(catalog, "shop.days")] == [30.5, 6.25, 1.0]
    assert [row[2] for row in rows(catalog, "shop.newest_orders")] == [10.5, 20.0, 6.25, 1.0]
    history = sorted(row["amount"] for row in catalog.load_table("shop.orders_history").scan().to_arrow().to_pylist())
    assert history == [1.0, 5.25, 6.25, 10.5, 20.0], "the snapshot keeps the old row"
    merged = list(catalog.load_table("shop.newest_orders").snapshots())
    assert len(merged) > 1, "the second run merges into the table of the first"
