"""The command prints what the examination of a catalog finds, and fails when a check did."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from icefield import MemoryFileSystem
from icefield_cli.main import main
from planted_plugins import plant
from unhealthy_stores import PLUGIN, SECRET

Run = Callable[..., Any]
NAMES = {"configuration", "catalog", "connection", "file system", "credentials", "write", "read", "ranges", "clock"}


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Any]:
    """Run the doctor on a warehouse of a planted scheme; rows by check, and how it ended."""
    plant(monkeypatch, "planted", PLUGIN)
    monkeypatch.setattr(MemoryFileSystem, "files", {})

    def examined(scheme: str, *more: str) -> Any:
        options = ["-p", "type=sql", "-p", f"uri=sqlite:///{tmp_path}/c.db", "-p", f"warehouse={scheme}://w"]
        status = main(["doctor", "--output", "json", *options, "-p", f"sick.token={SECRET}", *more])
        captured = capsys.readouterr()
        assert SECRET not in captured.out + captured.err
        rows = {row["check"]: row for row in map(json.loads, captured.out.splitlines())}
        return SimpleNamespace(status=status, rows=rows, err=captured.err)

    return examined


def test_every_check_passes_on_a_local_disk_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir(exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    ran = run("doctor", "--output", "json")
    assert ran.status == 0
    assert {row["check"] for row in ran.objects} > NAMES
    assert {row["result"] for row in ran.objects} == {"ok"}
    assert {*ran.objects[0]} == {"check", "result", "found", "advice", "seconds"}
    assert sorted(tmp_path.rglob("*")) == before
    assert run("namespaces").lines == ["namespace", "db"]


def test_text_shows_a_line_a_check_and_below_it_what_to_do(run: Run, tmp_path: Path) -> None:
    ran = run("doctor")
    clock = next(line for line in ran.lines if " clock " in line)
    assert re.fullmatch(r"ok         +\d+\.\d\d s  clock                   within 5 s of this machine's", clock)
    ran = run("doctor", "--location", "nosuch://x")
    at = next(at for at, line in enumerate(ran.lines) if line.startswith("failed"))
    assert re.fullmatch(r"failed     +\d+\.\d\d s  file system             no file system for 'nosuch'", ran.lines[at])
    assert ran.lines[at + 1].startswith("          -> installed are: ")
    assert ran.status == 1


def test_a_failed_check_fails_the_command(examine: Callable[..., Any]) -> None:
    found = examine("ignorespreconditions")
    assert found.status == 1
    for check in ("atomic create", "atomic rename"):
        assert found.rows[check]["result"] == "failed"
        assert "commits would lose updates" in found.rows[check]["found"]
        assert "a metastore catalog" in found.rows[check]["advice"]
    assert "sick.conditional-put=false" in found.rows["atomic create"]["advice"]
    assert found.err == f"icefield: 2 of {len(found.rows)} checks failed: atomic create, atomic rename\n"


def test_a_warning_does_not_fail_the_command(examine: Callable[..., Any]) -> None:
    found = examine("behind")
    assert found.status == 0
    assert found.rows["clock"]["result"] == "warning"
    assert "NTP" in found.rows["clock"]["advice"]


def test_an_error_of_an_sdk_is_shown_without_the_credential_in_it(examine: Callable[..., Any]) -> None:
    found = examine("raises")
    assert found.status == 1
    assert "sig=*** failed" in found.rows["write"]["found"]


def test_nothing_is_changed_when_only_reading_is_asked_for(examine: Callable[..., Any]) -> None:
    found = examine("denieswrites", "--read-only")
    assert found.status == 0
    assert "write" not in found.rows
    assert found.rows["list"]["result"] == "ok"


def test_a_namespace_that_is_there_serves(run: Run) -> None:
    ran = run("doctor", "--namespace", "db", "--output", "json")
    assert ran.status == 0
    assert "create a namespace" not in {row["check"] for row in ran.objects}
    assert run("tables", "db").lines == ["table"]


def test_a_plugin_that_fails_to_load_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plant(monkeypatch, "sad", ImportError("no module named 'sdk'"), "icefield-sad", "1.0")
    assert main(["doctor", "-p", "type=directory", "-p", f"warehouse={tmp_path}/w"]) == 1
    captured = capsys.readouterr()
    assert "ImportError: no module named 'sdk'" in captured.out
    assert "-> reinstall icefield-sad" in captured.out
    assert "plugin sad" in captured.err


def test_a_catalog_that_cannot_be_opened_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-p", "type=nosuch"]) == 1
    assert "no catalog for 'nosuch'" in capsys.readouterr().out


def test_a_catalog_without_a_warehouse_is_examined_as_far_as_it_goes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", "-p", "type=sql", "-p", f"uri=sqlite:///{tmp_path}/c.db"]) == 0
    assert "the catalog has no property 'warehouse'" in capsys.readouterr().out
