"""Example projects of other tools, each run by its own command beside a catalog ``lake``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import icefield
from icefield import Catalog
from repository import ROOT
from servers.process import answers, free_port, running


class ExampleProject:
    """A copy of an example, and how its tool is run in it."""

    def __init__(self, name: str, folder: Path, program: list[str | Path], **environment: str) -> None:
        self.folder = Path(shutil.copytree(ROOT / "examples" / name, folder / "project"))
        self._program = program
        self._environment = {**os.environ, "ICEFIELD_CONFIG": str(folder / "icefield.toml"), **environment}

    def run(self, *arguments: str) -> str:
        """The output of the tool, which succeeds."""
        command = [*self._program, *arguments]
        ran = subprocess.run(command, cwd=self.folder, env=self._environment, capture_output=True, encoding="utf-8")
        assert ran.returncode == 0, ran.stdout + ran.stderr[-2_000:]
        return ran.stdout

    def change_seeds(self) -> None:
        """Change the third order, and add a fourth one."""
        seeds = self.folder / "seeds/orders.csv"
        seeds.write_text(seeds.read_text().replace("3,Ann,5.25", "3,Ann,6.25") + "4,Cid,1.0,2026-01-03\n")


@contextmanager
def lake(folder: Path) -> Iterator[Catalog]:
    """A catalog that ``icefield.toml`` in the folder configures as ``lake``."""
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": f"{folder.as_uri()}/files"}
    lines = [f'{name} = "{value}"\n' for name, value in properties.items()]
    (folder / "icefield.toml").write_text("[catalog.lake]\n" + "".join(lines))
    with icefield.load_catalog("lake", **properties) as opened:
        yield opened


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """``icefield serve`` of the catalog ``lake``; the environment for a program whose DuckDB uses it."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    here = {"ICEFIELD_CONFIG": str(folder / "icefield.toml")}
    with running(command, lambda: answers(f"{address}/health/live"), environment=here, seconds=120):
        yield {"HOME": str(_home(folder)), "ICEFIELD_ENDPOINT": address}


def rows(catalog: Catalog, name: str) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted."""
    return sorted(tuple(row.values()) for row in catalog.load_table(name).scan().to_arrow().to_pylist())


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
