"""The modules that a process imports to load a table, to scan it and to run a command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield import load_catalog

LOAD = "import icefield\ntable = icefield.load_catalog('start', **{place!r}).load_table('db.t')\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A SQL catalog with a table of one row."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("start")
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    with load_catalog("start", **properties) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"id": [1], "name": ["a"]})
        catalog.create_table("db.t", rows.schema).append(rows)
        yield properties


def imported(code: str, folder: Path) -> set[str]:
    run = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.check_output(run, text=True, cwd=folder).splitlines()[-1].split())


def of_icefield(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] == "icefield")


def test_loading_a_table_imports_no_scan_no_change_and_no_event_loop(place: dict[str, str], tmp_path: Path) -> None:
    modules = imported(LOAD.format(place=place), tmp_path)
    assert modules.isdisjoint({"pandas", "asyncio", "ssl", "sqlalchemy", "pyarrow.compute", "pyarrow.parquet"})
    assert modules.isdisjoint({"icefield.scan.table_scan", "icefield.transaction.transaction", "icefield.writing"})
    assert len(of_icefield(modules)) <= 160


def test_a_first_scan_imports_no_pandas_and_no_writer(place: dict[str, str], tmp_path: Path) -> None:
    """pyarrow imports it with the first conversion to or from NumPy, a list or a scalar."""
    modules = imported(LOAD.format(place=place) + "assert table.scan().to_arrow().num_rows == 1", tmp_path)
    assert modules.isdisjoint({"pandas", "asyncio", "sqlalchemy", "numpy.ma", "numpy.random"})
    assert modules.isdisjoint({"icefield.writing", "icefield_avro.writer", "icefield_parquet.writing"})
    assert len(of_icefield(modules)) <= 230
