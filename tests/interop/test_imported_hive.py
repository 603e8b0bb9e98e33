"""Tables of Hive that Spark made, imported where they are: PyIceberg and DuckDB read the rows that Spark reads."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import DuckDBEngine
from icefield import Catalog
from icefield_import import import_hive
from java_programs import java_17
from peers import duckdb_rows, fitted, pyiceberg_catalog
from servers.hive import drop_databases

pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).parent / "spark" / "hive_tables.py"
_NAMES = ("parquet", "orc", "spark")


@pytest.fixture(scope="module")
def spark_rows(hive: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The rows of the tables ``legacy.t_*`` as Spark reads them."""
    folder = tmp_path_factory.mktemp("legacy")
    environment = {**os.environ, "JAVA_HOME": str(Path(java_17()[0]).resolve().parent.parent), "TZ": "UTC"}
    command = [sys.executable, str(_PROGRAM), hive, str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    yield dict(zip(_NAMES, map(json.loads, done.stdout.splitlines()), strict=True))
    drop_databases(hive)


def as_spark_shows(row: dict[str, Any]) -> dict[str, Any]:
    """A row of an imported table in the form of the program's JSON."""
    inner = row.pop("s") or {}
    flat = {**row, "a": inner.get("A"), "b": _micros(inner.get("b"))}
    flat["ts"] = _micros(flat["ts"])
    for name in {"amount", "d", "day", "n"} & flat.keys():
        flat[name] = None if flat[name] is None else str(flat[name])
    flat["m"] = None if flat["m"] is None else dict(flat["m"])
    return flat


def _micros(time: dt.datetime | None) -> int | None:
    return (
        None
        if time is None
        else (time.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    )


@pytest.mark.parametrize("name", _NAMES)
def test_peers_read_the_rows_of_spark(
    catalog: Catalog, duck: DuckDBEngine, hive: str, tmp_path: Path, name: str, spark_rows: dict[str, Any]
) -> None:
    made = import_hive(catalog, "db.t", f"legacy.t_{name}", metastore=hive)
    assert made.table is not None
    schema = made.table.schema()
    kinds = {field.name: str(field.field_type) for field in schema.fields}
    assert kinds["userName"] == "string"
    assert kinds["ts"] == ("timestamp" if name == "orc" else "timestamptz")
    reads: dict[str, Callable[[], Any]] = {"ours": lambda: made.table.scan().to_arrow()}
    if name != "orc":
        reads["duckdb"] = lambda: duckdb_rows(duck, made.table)
    with pyiceberg_catalog(tmp_path) as theirs:
        reads["pyiceberg"] = lambda: theirs.load_table("db.t").scan().to_arrow()
        assert theirs.load_table("db.t").scan("kind = 'a b/c'").to_arrow().num_rows == 1
        for reader, read in reads.items():
            found = sorted(fitted(read(), schema).to_pylist(), key=lambda row: row["id"])
            assert [as_spark_shows(row) for row in found] == spark_rows[name], reader
