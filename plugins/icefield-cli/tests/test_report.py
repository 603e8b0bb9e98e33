"""The command ``report``: a page of a table, one of a catalog, and what to install where it cannot be made."""

from __future__ import annotations

from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield_cli.main import main
from planted_plugins import uninstall


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    warehouse = f"file://{tmp_path}/lake"
    catalog = icefield.load_catalog("lake", type="directory", warehouse=warehouse)
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    return ["-o", str(tmp_path / "r.html"), "--catalog", "lake", "-p", "type=directory", "-p", f"warehouse={warehouse}"]


def test_a_page_of_a_table_or_of_the_catalog_is_written(options: list[str], tmp_path: Path) -> None:
    assert main(["report", "db.t", *options]) == 0
    assert "<title>db.t: table report</title>" in (tmp_path / "r.html").read_text("utf-8")
    assert main(["report", *options]) == 0
    assert "<title>lake: catalog report</title>" in (tmp_path / "r.html").read_text("utf-8")


def test_what_to_install_is_said(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uninstall(monkeypatch, "report")
    assert main(["report", "db.t", *options]) == 1
    assert 'pip install "icefield[report]"' in capsys.readouterr().err


@pytest.mark.parametrize("path", ["no/such/folder.html", "/dev/full", "."])
def test_a_page_that_cannot_be_written_is_one_line_that_says_why(
    options: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "db.t", "-o", path, *options[2:]]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"icefield: {path} cannot be written: ")
