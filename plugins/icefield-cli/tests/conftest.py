"""A catalog of each kind, with a table whose names and values try to speak to the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield_cli.main import main

ESCAPE = "\x1b[31mred\x9b31m\u202e"
"""What turns a terminal's text red, twice, and then round."""


@dataclass
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[Any]:
        """What JSON lines hold."""
        return [json.loads(line) for line in self.lines]

    @property
    def object(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of this machine reaches a test."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["sql", "directory"])
def properties(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The properties of a catalog."""
    found = {"type": request.param, "warehouse": f"file://{tmp_path}/warehouse", "file.sync": "false"}
    return found if request.param == "directory" else {**found, "uri": f"sqlite:///{tmp_path}/catalog.db"}


@pytest.fixture
def catalog(properties: dict[str, str]) -> icefield.Catalog:
    catalog = icefield.load_catalog("test", **properties)
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def run(catalog: icefield.Catalog, properties: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the catalog."""
    options = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]

    def ran(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main([*arguments, "--catalog", "test", *options])
        return Ran(status, *capsys.readouterr())

    return ran


@pytest.fixture
def events(catalog: icefield.Catalog) -> icefield.Table:
    """Two snapshots of one row each, partitioned by kind."""
    table = catalog.create_table(
        "db.events",
        pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string())]),
        partition_spec=["kind"],
        properties={"owner": "me"},
    )
    for id_, kind in ((1, "a"), (2, "b")):
        table.append(pa.table({"id": pa.array([id_]), "kind": [kind]}, schema=table.scan().to_arrow().schema))
    return table


@pytest.fixture
def deleted(events: icefield.Table) -> icefield.Table:
    """Its first rows are gone, so that expiry finds a file to delete."""
    events.delete("id = 1")
    return events


@pytest.fixture
def loud(catalog: icefield.Catalog) -> icefield.Table:
    """A table that holds control characters wherever text goes."""
    schema = pa.schema([(ESCAPE, pa.string())])
    table = catalog.create_table("db.loud", schema, properties={ESCAPE: ESCAPE})
    table.append(pa.table({ESCAPE: [ESCAPE, None]}), snapshot_properties={ESCAPE: ESCAPE})
    return table
