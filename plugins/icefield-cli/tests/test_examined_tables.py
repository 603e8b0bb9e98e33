"""The command examines one table, and repairs it by name only."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest

Run = Callable[..., Any]


def test_a_sound_table_passes_its_examination_group_by_group(run: Run, events: icefield.Table) -> None:
    ran = run("doctor", "db.events", "--whole")
    assert (ran.status, ran.err) == (0, "")
    groups = [re.fullmatch(r"(\w+): (\d+) of \2 ok, \d+\.\d\d s", line) for line in ran.lines if line[0] != " "]
    assert [each and each[1] for each in groups] == ["metadata", "manifests", "entries", "files", "rows", "maintenance"]
    checks = [line for line in ran.lines if line[0] == " "]
    assert all(re.fullmatch(r"  ok +\d+\.\d\d s  [\w-]+", line) for line in checks), checks
    found = run("doctor", "db.events", "--output", "json").objects
    assert len(found) == len(checks)
    assert {row["result"] for row in found} <= {"ok", "skipped"}
    assert {"check", "found", "advice", "location", "section", "repair"} <= {*found[0]}
    seconds = {row["group"]: row["group_seconds"] for row in found}
    for group, whole in seconds.items():
        # Each number is rounded to a thousandth.
        assert 0 <= sum(row["seconds"] for row in found if row["group"] == group) <= whole + 0.01
    assert any(row["seconds"] for row in found)


def test_a_missing_data_file_is_given_up_by_name_only_and_after_a_dry_run(
    run: Run, events: icefield.Table, tmp_path: Path, catalog: icefield.Catalog
) -> None:
    lost = next((tmp_path / "warehouse").rglob("*.parquet"))
    lost.unlink()
    ran = run("doctor", "db.events", "--repair")
    assert ran.status == 1
    assert "repair: --repair forget-missing-files" in ran.out
    ran = run("doctor", "db.events", "--repair", "forget-missing-files", "--dry-run")
    assert ran.lines[0].startswith("would repair  forget-missing-files of branch main: files-missing; files: 1")
    ran = run("doctor", "db.events", "--repair", "forget-missing-files", "--output", "json")
    assert (ran.status, ran.err) == (0, "")
    assert [(row["step"], row["repair"], row["branch"]) for row in ran.objects] == [
        ("repaired", "forget-missing-files", "main")
    ]
    assert run("doctor", "db.events", "--whole", "--repair").lines == ["nothing is wrong now"]


def test_a_repair_that_there_is_none_of_is_wrong_usage(run: Run, events: icefield.Table) -> None:
    with pytest.raises(SystemExit) as left:
        run("doctor", "db.events", "--repair", "everything")
    assert left.value.code == 2


def test_a_missing_data_file_fails_the_examination_and_is_named(
    run: Run, events: icefield.Table, tmp_path: Path
) -> None:
    lost = next((tmp_path / "warehouse").rglob("*.parquet"))
    lost.unlink()
    ran = run("doctor", "db.events")
    assert ran.status == 1
    assert "checks failed" in ran.err
    at = next(at for at, line in enumerate(ran.lines) if line.startswith("  failed"))
    assert lost.name in "".join(ran.lines[at : at + 3])
    assert any(line.lstrip().startswith("-> ") for line in ran.lines[at:])
    failed = [row for row in run("doctor", "db.events", "--output", "json").objects if row["result"] == "failed"]
    assert lost.name in failed[0]["location"]
    assert failed[0]["advice"]
