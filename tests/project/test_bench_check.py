"""The check of benchmarks fails for more CPU time and for quadratic growth, and results of two runs are compared."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The modules ``check`` and ``run`` of the folder of benchmarks."""
    monkeypatch.syspath_prepend(str(FOLDER))
    found = importlib.import_module("check"), importlib.import_module("run")
    for name in ("check", "run"):
        monkeypatch.delitem(sys.modules, name)
    return found


def costs(once: list[float], twice: list[float]) -> dict[str, list[list[dict[str, float]]]]:
    return {"work": [[{"cpu": cpu} for cpu in once], [{"cpu": cpu} for cpu in twice]]}


@pytest.mark.parametrize(
    ("once", "twice", "before", "said"),
    [
        ([1.0], [2.0], [2.0], []),
        ([1.0], [2.4], [2.0], []),
        ([1.0], [2.6], [2.0], ["30% more CPU than the last release"]),
        ([1.0], [2.6, 2.1], [2.0], []),
        ([1.0], [2.6, 2.7, 3.0], [2.0, 2.7, 3.0], []),
        ([1.0], [2.6, 3.6, 2.8], [2.0, 2.8, 2.9], ["30% more CPU than the last release"]),
        ([1.0], [4.0], [4.0], ["4.0 times the CPU for twice the work"]),
        ([0.001], [0.009], [0.003], []),
    ],
)
def test_more_cpu_time_and_quadratic_growth_fail_the_check(once, twice, before, said, modules):
    check, _ = modules
    assert check.failures("work", costs(once, twice), costs(once, before)) == said


def test_work_that_the_last_release_cannot_run_is_held_against_its_growth_alone(modules):
    check, _ = modules
    assert check.failures("work", costs([1.0], [2.0]), {}) == []
    assert check.failures("work", {}, {}) == ["it does not run"]


def test_a_suspect_is_measured_again_until_it_passes_and_at_most_three_times(modules):
    check, _ = modules
    slow, base = costs([1.0], [2.6]), costs([1.0], [2.0])
    slow["fine"], base["fine"] = costs([1.0], [2.0])["work"], costs([1.0], [2.0])["work"]
    asked = []

    def again(names: list[str], cpu: float) -> None:
        asked.append(names)
        slow["work"][1].append({"cpu": cpu})

    check.measure_suspects(list(slow), slow, base, lambda names: again(names, 2.6))
    assert asked == [["work"]] * 3
    assert check.failures("work", slow, base) == ["30% more CPU than the last release"]
    asked.clear()
    times = iter([2.6, 2.1])
    check.measure_suspects(list(slow), slow, base, lambda names: again(names, next(times)))
    assert asked == [["work"]] * 2
    assert check.failures("work", slow, base) == []


def test_the_base_is_the_commit_that_added_the_newest_history_and_a_shallow_clone_has_none(
    modules, monkeypatch, tmp_path
):
    check, run = modules
    name = run.releases()[-1].name

    def git(folder: Path, *arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    def look_in(folder: Path) -> None:
        monkeypatch.setattr(check, "ROOT", folder)
        monkeypatch.setattr(check, "HISTORY", folder / "history")

    whole = tmp_path / "whole"
    (whole / "history").mkdir(parents=True)
    git(whole, "init", "-q")
    for number in (1, 2):
        (whole / "history" / name).write_text(str(number), "utf-8")
        git(whole, "add", ".")
        git(whole, "commit", "-q", "-m", str(number))
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{whole}", "shallow")
    look_in(whole)
    assert check.released() == git(whole, "rev-parse", "HEAD~1")
    look_in(tmp_path / "shallow")
    with pytest.raises(SystemExit, match="fetch it whole"):
        check.released()


def test_a_workload_that_does_not_run_fails_the_check(modules, monkeypatch, tmp_path):
    check, _ = modules
    cost = {"cpu": 1.0, "wall": 1.0, "memory": 1, "requests": 1}
    runs = {"now": {"good": [cost, {**cost, "cpu": 2.0}], "bad": None}, "then": {"good": [cost, cost], "bad": None}}
    monkeypatch.setattr(check, "measure", lambda names, folder, path: runs["then" if path == "then" else "now"])
    monkeypatch.setattr(check, "code_of", lambda commit, folder: "then")
    monkeypatch.setattr(check, "TIMES_AGAIN", 1)
    monkeypatch.setattr(check, "MOST_MORE", 3.0)
    monkeypatch.setattr("sys.argv", ["check.py", "--base", "any", "--output", str(tmp_path / "costs.json")])
    assert check.main() == 1
    runs["now"]["bad"] = runs["now"]["good"]
    assert check.main() == 0


def test_times_are_compared_only_with_a_file_of_the_same_machine(modules):
    _, run = modules
    result = {"ratio": 2.0, "cpu": 3.0, "wall": 4.0, "memory": 100, "requests": 7}
    old = {"machine": "a", "results": {"avro": {"read": {**result, "ratio": 1.0, "cpu": 6.0}}}}
    (head, line) = run.compared({"machine": "a", "results": {"avro": {"read": result}}}, old)
    assert head.split() == ["workload", "ratio", "cpu", "wall", "memory", "requests"]
    assert "1 > 2 +100%" in line
    assert "6 > 3 -50%" in line
    (head, line) = run.compared({"machine": "b", "results": {"avro": {"read": result}}}, old)
    assert head.split() == ["workload", "ratio"]
    assert "1 > 2 +100%" in line


def test_the_history_is_drawn_with_one_column_a_release(modules):
    _, run = modules
    first, second = {"avro": {"read": {"ratio": 1.5}}}, {"avro": {"read": {"ratio": 2.0}, "write": {"ratio": 3.0}}}
    head, read, write = run.drawn([("0.1.0", first), ("0.2.0", second)])
    assert head.split() == ["workload", "0.1.0", "0.2.0"]
    assert read.split() == ["avro:", "read", "1.50", "2.00", "########"]
    assert write.split() == ["avro:", "write", "-", "3.00", "############"]


def test_the_files_of_all_releases_have_one_form(modules):
    _, run = modules
    for path in run.releases():
        document = json.loads(path.read_text("utf-8"))
        assert document["version"] == path.stem
        for workloads in document["results"].values():
            assert all("ratio" in result for result in workloads.values())
