"""The projects of SQLMesh in ``examples``: on DuckDB over ``icefield serve``, and in a Spark session."""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

from icefield import Catalog
from tool_projects import ExampleProject, lake, rows, served

FIRST, SECOND, THIRD = (date(2026, 1, day) for day in (1, 2, 3))
SQLMESH = Path(sys.executable).with_name("sqlmesh")
APPLY = ("plan", "--auto-apply", "--no-prompts")
CHANGED = {
    "orders": [(1, "Ann", 10.5, FIRST), (2, "Bob", 20.0, FIRST), (3, "Ann", 6.25, SECOND), (4, "Cid", 1.0, THIRD)],
    "customers": [("Ann", 2, 16.75), ("Bob", 1, 20.0), ("Cid", 1, 1.0)],
    "days": [(FIRST, 30.5), (SECOND, 6.25), (THIRD, 1.0)],
}
"""The rows of each model after the seed was changed."""


def test_a_project_is_planned_applied_and_run_on_duckdb(tmp_path: Path) -> None:
    with lake(tmp_path) as catalog, served(tmp_path) as environment:
        project = ExampleProject("sqlmesh-duckdb", tmp_path, [SQLMESH], **environment)
        project.run(*APPLY, "--execution-time", "2026-01-02")
        assert rows(catalog, "shop.days") == [(FIRST, 30.5)], "a plan fills the days before its time"
        project.run("run")
        assert rows(catalog, "shop.days") == [(FIRST, 30.5), (SECOND, 5.25)], "a run fills the days since"
        assert {name for _, name in catalog.list_tables("shop")} == CHANGED.keys()
        project.change_seeds()
        project.run("plan", "dev", *APPLY[1:])
        assert "Cid" in project.run("fetchdf", "SELECT * FROM views.shop__dev.customers")
        assert len(rows(catalog, "shop.customers")) == 2, "another environment changes no table of production"
        project.run(*APPLY)
        project.run(*APPLY, "--restate-model", "shop.customers", "--restate-model", "shop.days")
        assert {name: rows(catalog, f"shop.{name}") for name in CHANGED} == CHANGED
        project.run("invalidate", "dev")
        assert "Deleted object views.shop__dev" in project.run("janitor")


def test_a_project_is_planned_applied_and_run_in_spark(tmp_path: Path) -> None:
    with lake(tmp_path) as catalog:
        project = ExampleProject("sqlmesh-spark", tmp_path, [SQLMESH])
        project.run(*APPLY, "--execution-time", "2026-01-02")
        assert rows(catalog, table_of(catalog, "days")) == [(FIRST, 30.5)], "a plan fills the days before its time"
        project.run("run")
        assert rows(catalog, table_of(catalog, "days")) == [(FIRST, 30.5), (SECOND, 5.25)], "a run fills the days since"
        project.change_seeds()
        project.run(*APPLY)
        assert {name: rows(catalog, table_of(catalog, name)) for name in CHANGED} == CHANGED


def table_of(catalog: Catalog, model: str) -> str:
    """The table that the view of a model shows."""
    [found] = re.findall(r"FROM `?lake`?\.`?(\w+)`?\.`?(\w+)`?", catalog.load_view(f"shop.{model}").sql["spark"])
    return ".".join(found)
