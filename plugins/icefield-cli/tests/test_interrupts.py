"""Maintenance that was interrupted says what was committed, and the next run finishes it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest
from event_rows import ids, rows
from icefield_progress import ProgressBar

Run = Callable[..., Any]


def test_an_interrupt_says_what_was_committed(
    run: Run, catalog: icefield.Catalog, deleted: icefield.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    time.sleep(0.002)
    options = ("expire-snapshots", "db.events", "--older-than", "0s", "--retain-last", "1")
    with monkeypatch.context() as patched:
        patched.setattr(ProgressBar, "reach", interrupt)  # heard while files are deleted, after the commit
        ran = run(*options)
    assert ran.status == 130
    assert ran.err.startswith("icefield: interrupted after a commit was made")
    assert ran.err.endswith("; expire-snapshots can be run again, and finishes what is left\n")
    assert len(catalog.load_table("db.events").metadata.snapshots) == 1
    with monkeypatch.context() as patched:
        patched.setattr(icefield.Table, "manage_snapshots", interrupt)
        ran = run("rollback", "db.events", "--before", "1h")
    assert (ran.status, "before a commit was confirmed" in ran.err) == (130, True)


_READS_AS_PYTHON_ENDS = """
import sys, time
from threading import Event, Thread
import pyarrow.parquet as pq
from icefield_cli.main import main
reads = Event()
class File:
    closed = False
    def seek(self, *given): return 100
    def tell(self): return 100
    def read(self, *given):
        reads.set()
        while True: time.sleep(0.01)
class LastObject:
    def __del__(self, sleep=time.sleep): sleep(2)
last = LastObject()
Thread(target=pq.read_table, args=(File(),), daemon=True).start()
reads.wait()
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("given", "status"), [("plugins", 0), ("nothing", 2), ("tables", 1)])
def test_a_thread_that_still_reads_does_not_break_the_end_of_a_command(given: str, status: int, tmp_path: Path) -> None:
    """Arrow would abort the process when Python ends a thread that holds Python's lock by Arrow."""
    command = [sys.executable, "-c", _READS_AS_PYTHON_ENDS, given]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ended.returncode, "Fatal" in ended.stderr) == (status, False), ended.stderr
    assert ended.stdout or ended.stderr


_EXITS_WITH_WORDS = """
import sys
from icefield_cli import command_line
from icefield_cli.main import main
command_line.run = lambda arguments: sys.exit("some words")
sys.exit(main())
"""


def test_a_command_that_exits_with_words_shows_them_and_has_status_1() -> None:
    ended = subprocess.run([sys.executable, "-c", _EXITS_WITH_WORDS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "some words\n")


_INTERRUPTED_AT_A_CALL = """
import os, signal, sys
from icefield import Plugins
from icefield_maintenance import MaintenanceTable
name, number = sys.argv.pop(1).split(":")
LocalFileSystem = Plugins.installed().file_system("file")
owner = LocalFileSystem if hasattr(LocalFileSystem, name) else MaintenanceTable
whole, calls = getattr(owner, name), []
def call(self, *given, **more):
    calls.append(given)
    if len(calls) == int(number):
        os.kill(os.getpid(), signal.SIGINT)
    return whole(self, *given, **more)
setattr(owner, name, call)
from icefield_cli.main import main
sys.exit(main())
"""
_SOON = ("--older-than", "0s")


def _interrupted(properties: dict[str, str], at: str, *given: str) -> str:
    """What a command says on the standard error whose call to the library of that name and number is interrupted."""
    settings = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    command = [sys.executable, "-c", _INTERRUPTED_AT_A_CALL, at, *given, "--catalog", "test", *settings]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (130, 1), ended.stderr
    return ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "at", "said"),
    [
        (("expire-snapshots", *_SOON, "--retain-last", "1"), "delete_many:1", "after a commit was made"),
        (("remove-orphans", *_SOON, "--allow-recent", "--delete"), "delete_many:1", "before a commit was confirmed"),
        (("rewrite-manifests",), "open_output:1", "before a commit was confirmed"),
        (
            ("rewrite-deletes", "--convert-equality", "--min-input-files", "2"),
            "open_output:2",
            "before a commit was confirmed",
        ),
        (
            ("rewrite-deletes", "--convert-equality", "--min-input-files", "2"),
            "rewrite_position_delete_files:1",
            "after a commit was made (snapshot ",
        ),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else each,
)
def test_what_was_interrupted_is_finished_by_the_next_run(
    run: Run,
    catalog: icefield.Catalog,
    properties: dict[str, str],
    events: icefield.Table,
    command: tuple[str, ...],
    at: str,
    said: str,
) -> None:
    events.append(rows(events, *((number, "a") for number in range(3, 9))))
    events.set_properties({"write.delete.mode": "merge-on-read", "format-version": "2"})
    events.delete("id = 3")
    events.delete("id = 4")
    events.delete_by_equality(rows(events, (5, "a")), ["id", "kind"])
    events.delete("kind = 'b'")
    for number in range(3):
        (Path(events.location().removeprefix("file://")) / "data" / f"lost-{number}.parquet").write_bytes(b"lost")
    time.sleep(0.01)
    name, *options = command
    ended = _interrupted(properties, at, name, "db.events", *options)
    assert ended.startswith(f"icefield: interrupted {said}"), ended
    assert ended.endswith(f"; {name} can be run again, and finishes what is left\n"), ended
    assert ids(catalog) == [1, 6, 7, 8]

    assert run(name, "db.events", *options).status == 0
    assert ids(catalog) == [1, 6, 7, 8]
    third = run(name, "db.events", *options, "--output", "json").objects[-1]
    done = ("snapshot_id", "snapshot_ids", "files", "rewritten_manifests", "rewritten_position_delete_files")
    assert not any(third.get(each) for each in done), third
    run("remove-orphans", "db.events", *_SOON, "--allow-recent", "--delete")
    assert run("doctor", "db.events", "--whole").status == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("open_output:1", "before a commit was confirmed"),
        ("compute_partition_stats:1", "after a commit was made"),
    ],
)
def test_statistics_that_were_interrupted_are_computed_by_the_next_run(
    run: Run, catalog: icefield.Catalog, properties: dict[str, str], events: icefield.Table, at: str, said: str
) -> None:
    ended = _interrupted(properties, at, "compute-stats", "db.events")
    assert ended == f"icefield: interrupted {said}; compute-stats can be run again, and finishes what is left\n"
    assert run("compute-stats", "db.events").status == 0
    table = catalog.load_table("db.events")
    current = table.current_snapshot().snapshot_id
    for stored in (table.metadata.statistics, table.metadata.partition_statistics):
        assert [each.snapshot_id for each in stored] == [current]
    run("remove-orphans", "db.events", *_SOON, "--allow-recent", "--delete")
    assert run("doctor", "db.events", "--whole").status == 0


@pytest.mark.slow
def test_a_repair_that_was_interrupted_is_made_by_the_next_run(
    run: Run, catalog: icefield.Catalog, properties: dict[str, str], events: icefield.Table, tmp_path: Path
) -> None:
    next((tmp_path / "warehouse").rglob("*.parquet")).unlink()
    command = ("doctor", "db.events", "--repair", "forget-missing-files")
    ended = _interrupted(properties, "open_output:1", *command)
    assert ended == (
        "icefield: interrupted before a commit was confirmed; doctor --repair can be run again, and finishes what is "
        "left\n"
    )
    assert run(*command).status == 0
    assert len(ids(catalog)) == 1
    assert run("doctor", "db.events", "--whole").status == 0
