"""What the commands print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield_cli.main import main


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """The options that name a catalog with the table ``db.t``."""
    warehouse = f"file://{tmp_path}/warehouse"
    catalog = icefield.load_catalog("test", type="directory", warehouse=warehouse)
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2], "text": ["plain", "\x1b[31mred"]})
    catalog.create_table("db.t", rows.schema, partition_spec=["id"]).append(rows)
    return ["--catalog", "test", "-p", "type=directory", "-p", f"warehouse={warehouse}"]


def test_plugins_are_listed_with_what_they_provide(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--output", "json"]) == 0
    listed = {row["plugin"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert listed["builtin"]["distribution"] == "icefield"
    assert "commit strategy rename" in listed["builtin"]["provides"].split(", ")


def test_a_table_is_described_with_each_id_once(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "db.t", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  1: id: optional long" in lines
    assert "  1000: id: identity(1)" in lines


def test_every_check_of_the_doctor_passes_on_a_local_disk(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *options, "--output", "json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["check"] for row in found} >= {"catalog", "write and read", "atomic create", "atomic rename", "list"}
    assert {row["result"] for row in found} == {"ok"}
    assert not [*tmp_path.rglob(".icefield-doctor-*/*")]


def test_no_control_character_of_a_table_reaches_the_terminal(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", "db.t", *options]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_an_error_is_one_line_and_status_1(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "db.no", *options]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "icefield: no table db.no in catalog 'test'\n"


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["scan"], ["scan", "db.t", "--limit", "many"]])
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_a_property_that_is_no_pair_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["namespaces", "-p", "warehouse"]) == 1
    assert "KEY=VALUE" in capsys.readouterr().err
