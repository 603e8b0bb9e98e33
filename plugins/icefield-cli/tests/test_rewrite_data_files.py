"""The command rewrites data files as it is told, and shows how far it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield_progress import ProgressBar

Run = Callable[..., Any]


@pytest.fixture
def small(catalog: icefield.Catalog) -> icefield.Table:
    """Six data files of one row each, in three partitions."""
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    table = catalog.create_table("db.small", schema, partition_spec=["kind"])
    for number in range(6):
        table.append(pa.table({"id": [number], "kind": ["abc"[number % 3]]}))
    return table


def test_data_files_are_rewritten_after_a_dry_run_that_changes_nothing(
    run: Run, catalog: icefield.Catalog, small: icefield.Table
) -> None:
    options = ("rewrite-data-files", "db.small", "--min-input-files", "2", "--where", "kind < 'c'")
    before = small.metadata.current_snapshot_id
    foreseen = run(*options, "--dry-run").lines
    assert foreseen[0] == "would rewrite 4 data files of db.small"
    assert catalog.load_table("db.small").metadata.current_snapshot_id == before
    made = run(*options, "--output", "json").object
    assert (made["rewritten_data_files"], made["added_data_files"], made["dry_run"]) == (4, 2, False)
    assert sorted(group["partition"] for group in made["groups"]) == ["kind=a", "kind=b"]
    table = catalog.load_table("db.small")
    assert made["snapshot_ids"] == [str(table.metadata.current_snapshot_id)]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(6)]
    assert run(*options).lines[0] == "rewrote 0 data files of db.small"


@pytest.mark.parametrize(
    ("options", "ids_"),
    [
        (("--sort", "id desc"), [4, 3, 2, 1]),
        (("--strategy", "sort", "--sort", "id desc"), [4, 3, 2, 1]),
        (("--zorder", "id,kind"), [1, 2, 3, 4]),
        ((), [2, 1, 4, 3]),
    ],
    ids=str,
)
def test_data_files_are_written_in_the_order_that_is_asked_for(
    run: Run, catalog: icefield.Catalog, options: tuple[str, ...], ids_: list[int]
) -> None:
    table = catalog.create_table("db.sorted", pa.schema([("id", pa.int64()), ("kind", pa.string())]))
    for pair in ([2, 1], [4, 3]):
        table.append(pa.table({"id": pair, "kind": ["a", "a"]}))
    ran = run("rewrite-data-files", "db.sorted", "--all", *options)
    assert (ran.status, ran.lines[0]) == (0, "rewrote 2 data files of db.sorted"), ran.err
    assert catalog.load_table("db.sorted").scan().to_arrow()["id"].to_pylist() == ids_


def test_a_rewrite_shows_how_many_groups_of_files_it_has_written(
    run: Run, small: icefield.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(ProgressBar, "reach", lambda self, *given: seen.append(given))
    assert run("rewrite-data-files", "db.small", "--min-input-files", "2").status == 0
    assert seen == [("groups of files", number, 3) for number in range(4)]


def test_orders_that_exclude_each_other_are_wrong_usage(
    run: Run, small: icefield.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("rewrite-data-files", "db.small", "--sort", "id", "--zorder", "id")
    assert ended.value.code == 2
    assert "'--sort' and '--zorder' exclude each other" in capsys.readouterr().err


_INTERRUPTED_AFTER_A_COMMIT = """
import os, signal, sys
from icefield import Plugins
LocalFileSystem = Plugins.installed().file_system("file")
whole, written = LocalFileSystem.open_output, []
def open_output(self, location):
    if "/data/" in location:
        if len(written) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        written.append(location)
    return whole(self, location)
LocalFileSystem.open_output = open_output
from icefield_cli.main import main
sys.exit(main())
"""


@pytest.mark.slow
def test_a_rewrite_that_was_interrupted_keeps_its_commits_and_the_next_goes_on(
    run: Run, catalog: icefield.Catalog, properties: dict[str, str], small: icefield.Table
) -> None:
    settings = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    options = ["rewrite-data-files", "db.small", "--min-input-files", "2", "--partial-progress", "--max-commits", "3"]
    command = [sys.executable, "-c", _INTERRUPTED_AFTER_A_COMMIT, *options, "--catalog", "test", *settings]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.startswith("icefield: interrupted after a commit was made (snapshot "), ended.stderr
    assert ended.stderr.count("\n") == 1
    kept = catalog.load_table("db.small")
    commits = len(kept.metadata.snapshots) - len(small.metadata.snapshots)
    assert commits in (1, 2)
    again = run(*options, "--output", "json").object
    assert again["rewritten_data_files"] == 6 - 2 * commits
    table = catalog.load_table("db.small")
    assert table.inspect.data_files().num_rows == 3
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(6)]
