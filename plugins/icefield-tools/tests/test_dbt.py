"""The projects of dbt in ``examples``: on DuckDB over ``icefield serve``, and in a Spark session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import icefield
import pytest
from icefield import Catalog
from repository import ROOT
from servers.process import answers, free_port, running

DBT = Path(sys.executable).with_name("dbt")


class Project:
    """A copy of the example, and how dbt is run in it."""

    def __init__(self, name: str, folder: Path, program: list[str | Path], **environment: str) -> None:
        self.folder = Path(shutil.copytree(ROOT / "examples" / name, folder / "project"))
        self._program = program
        self._environment = {**os.environ, **environment, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def build(self, *options: str) -> str:
        """The output of ``dbt build``, which succeeds."""
        command = [*self._program, "--no-use-colors", "build", "--profiles-dir", ".", *options]
        ran = subprocess.run(command, cwd=self.folder, env=self._environment, capture_output=True, encoding="utf-8")
        assert ran.returncode == 0, ran.stdout + ran.stderr[-2_000:]
        return ran.stdout


def _home(folder: Path) -> Path:
    """A home folder where DuckDB finds its extensions, which come from PyPI: nothing is downloaded."""
    found = version("duckdb")
    for name in ("avro", "httpfs", "iceberg"):
        source = Path(str(files(f"duckdb_extension_{name}"))) / "extensions" / f"v{found}" / f"{name}.duckdb_extension"
        ((platform,),) = duckdb.execute("PRAGMA platform").fetchall()
        place = folder / "home/.duckdb/extensions" / f"v{found}" / platform
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
    return folder / "home"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"{tmp_path.as_uri()}/files"}
    lines = [f'{name} = "{value}"\n' for name, value in properties.items()]
    (tmp_path / "icefield.toml").write_text("[catalog.lake]\n" + "".join(lines))
    with icefield.load_catalog("lake", **properties) as opened:
        yield opened


@pytest.fixture
def on_duckdb(tmp_path: Path, catalog: Catalog) -> Iterator[Project]:
    port = free_port()
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    here = {"ICEFIELD_CONFIG": str(tmp_path / "icefield.toml")}
    address = f"http://127.0.0.1:{port}"
    with running(command, lambda: answers(f"{address}/health/live"), environment=here, seconds=120):
        yield Project("dbt-duckdb", tmp_path, [DBT], HOME=str(_home(tmp_path)), ICEFIELD_ENDPOINT=address)


@pytest.fixture
def in_spark(tmp_path: Path, catalog: Catalog) -> Project:
    environment = {"ICEFIELD_CONFIG": str(tmp_path / "icefield.toml"), "PYSPARK_PYTHON": sys.executable}
    return Project("dbt-spark", tmp_path, [sys.executable, "run_dbt.py"], **environment)


def test_a_project_builds_on_duckdb_again_and_again(on_duckdb: Project, catalog: Catalog) -> None:
    build_twice(on_duckdb, catalog, 7)
    assert len(rows(catalog, "orders_history")) == 5
    on_duckdb.build("--full-refresh")
    expected = {"customers", "days", "newest_orders", "orders", "orders_history"}
    assert {name for _, name in catalog.list_tables("shop")} == expected


def test_a_project_builds_in_spark_again(in_spark: Project, catalog: Catalog) -> None:
    build_twice(in_spark, catalog, 6)
    assert len(list(catalog.load_table("shop.customers").snapshots())) == 2, "a replaced table keeps its snapshots"


def build_twice(project: Project, catalog: Catalog, passes: int) -> None:
    """Build a project, change its seeds, build it again and look at its tables."""
    assert f"PASS={passes} WARN=0 ERROR=0" in project.build()
    seeds = project.folder / "seeds/orders.csv"
    seeds.write_text(seeds.read_text().replace("3,Ann,5.25", "3,Ann,6.25") + "4,Cid,1.0,2026-01-03\n")
    assert f"PASS={passes} WARN=0 ERROR=0" in project.build()
    assert rows(catalog, "customers") == [("Ann", 2, 16.75), ("Bob", 1, 20.0), ("Cid", 1, 1.0)]
    assert [amount for _, amount in rows(catalog, "days")] == [30.5, 6.25, 1.0]
    assert [row[2] for row in rows(catalog, "newest_orders")] == [10.5, 20.0, 6.25, 1.0]
    merged = list(catalog.load_table("shop.newest_orders").snapshots())
    assert len(merged) > 1, "the second run merges into the table of the first"


def rows(catalog: Catalog, name: str) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted."""
    return sorted(tuple(row.values()) for row in catalog.load_table(f"shop.{name}").scan().to_arrow().to_pylist())
