"""The commands that look after a table, on a catalog of each kind."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.maintenance import MaintenanceTable
from icefield_cli.progress import Progress

Run = Callable[..., Any]


def rows(table: icefield.Table, *given: tuple[int, str]) -> pa.Table:
    ids_, kinds = zip(*given, strict=True)
    return pa.table({"id": ids_, "kind": kinds}, schema=table.scan().to_arrow().schema)


def ids(catalog: icefield.Catalog) -> list[int]:
    return sorted(catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def deleted(events: icefield.Table) -> icefield.Table:
    """Its first rows are gone, so that expiry finds a file to delete."""
    events.delete("id = 1")
    return events


def test_a_sound_table_passes_its_examination_group_by_group(run: Run, events: icefield.Table) -> None:
    ran = run("doctor", "db.events", "--whole")
    assert (ran.status, ran.err) == (0, "")
    groups = [re.fullmatch(r"(\w+): (\d+) of \2 ok, \d+\.\d\d s", line) for line in ran.lines if line[0] != " "]
    assert [each and each[1] for each in groups] == ["metadata", "manifests", "entries", "files", "rows", "upkeep"]
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


def test_repairs_are_of_tables_and_dry_runs_of_repairs(run: Run, events: icefield.Table) -> None:
    assert "are for tables" in run("doctor", "--repair").err
    assert "goes with --repair" in run("doctor", "db.events", "--dry-run").err
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


def test_options_of_the_other_examination_are_refused(run: Run, events: icefield.Table) -> None:
    assert "for catalogs" in run("doctor", "db.events", "--read-only").err
    assert "name one" in run("doctor", "--whole").err


def test_expiry_deletes_what_its_dry_run_names(
    run: Run, catalog: icefield.Catalog, deleted: icefield.Table, tmp_path: Path
) -> None:
    time.sleep(0.002)
    options = ("expire-snapshots", "db.events", "--older-than", "0s", "--retain-last", "1")
    named = run(*options, "--dry-run", "--files", "--output", "json").objects
    data = [row["location"] for row in named if row["kind"] == "data"]
    assert len(data) == 1
    assert run(*options, "--dry-run").out.startswith("would expire 2 snapshots of db.events; files: ")
    assert Path(data[0].removeprefix("file://")).exists()
    made = run(*options, "--output", "json").object
    assert (made["operation"], made["data_files"], len(made["snapshot_ids"])) == ("expire-snapshots", 1, 2)
    assert not Path(data[0].removeprefix("file://")).exists()
    assert run(*options).out == "expired 0 snapshots of db.events; files: 0\n"
    assert ids(catalog) == [2]


def test_orphans_are_listed_and_only_deleted_when_that_is_asked_for(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    orphan = Path(events.location().removeprefix("file://")) / "data" / "lost.parquet"
    orphan.write_bytes(b"lost")
    time.sleep(0.01)
    options = ("remove-orphans", "db.events", "--older-than", "0s", "--allow-recent")
    listed = run(*options, "--output", "json").objects
    assert [(Path(row["location"]).name, row["size"]) for row in listed] == [("lost.parquet", 4)]
    assert orphan.exists()
    removed = run(*options, "--delete")
    assert removed.out.startswith("deleted 1 orphan files of db.events, 4 B\n"), removed.err
    assert not orphan.exists()
    assert ids(catalog) == [1, 2]


def test_manifests_are_rewritten_after_a_dry_run_that_changes_nothing(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    before = catalog.load_table("db.events").metadata.current_snapshot_id
    assert run("rewrite-manifests", "db.events", "--dry-run").lines[0] == "would rewrite 2 manifests of db.events"
    assert catalog.load_table("db.events").metadata.current_snapshot_id == before
    made = run("rewrite-manifests", "db.events", "--cluster-by", "kind", "--output", "json").object
    assert (made["rewritten_manifests"], made["added_manifests"], made["entries"]) == (2, 1, 2)
    assert run("rewrite-manifests", "db.events").out == "rewrote 0 manifests of db.events\n  kept manifests  1\n"
    assert ids(catalog) == [1, 2]


def test_deletes_are_converted_packed_and_dropped(run: Run, catalog: icefield.Catalog, events: icefield.Table) -> None:
    events.append(rows(events, (3, "a"), (4, "a"), (5, "a")))
    events.delete_by_equality(rows(events, (3, "a")), ["id", "kind"])
    options = ("rewrite-deletes", "db.events", "--convert-equality", "--remove-dangling", "--all")
    foreseen = run(*options, "--dry-run", "--output", "json").objects
    assert [row["operation"] for row in foreseen] == [
        "convert-equality-deletes",
        "rewrite-position-deletes",
        "remove-dangling-deletes",
    ]
    assert run(*options).lines[0] == "converted 1 equality delete files"
    assert catalog.load_table("db.events").inspect.delete_files().num_rows == 1
    assert ids(catalog) == [1, 2, 4, 5]


def test_statistics_of_a_table_and_its_partitions_are_registered(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    made = run("compute-stats", "db.events", "--columns", "id", "--output", "json").objects
    assert [row["statistics"] for row in made] == ["table", "partitions"]
    metadata = catalog.load_table("db.events").metadata
    assert [file.statistics_path for file in metadata.statistics] == [made[0]["location"]]
    assert [file.statistics_path for file in metadata.partition_statistics] == [made[1]["location"]]


def test_a_table_goes_back_to_a_snapshot_a_time_and_a_tag(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    first, second = (snapshot.snapshot_id for snapshot in events.metadata.snapshots)
    assert run("tag", "db.events", "both").out == "created tag both of db.events\n"
    went = run("rollback", "db.events", "--snapshot", str(first))
    assert went.out == f"db.events is at snapshot {first}; it was at {second}\n"
    assert ids(catalog) == [1]
    refused = run("rollback", "db.events", "--snapshot", str(second))
    assert (refused.status, "no ancestor" in refused.err) == (1, True)
    assert run("rollback", "db.events", "--ref", "both", "--output", "json").object["snapshot_id"] == second
    assert run("rollback", "db.events", "--before", "2000-01-01").status == 1
    assert run("rollback", "db.events", "--snapshot", str(first), "--any").status == 0


def test_branches_and_tags_are_made_moved_kept_and_deleted(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    first, second = (snapshot.snapshot_id for snapshot in events.metadata.snapshots)

    def refs() -> dict[str, Any]:
        return {row["name"]: row for row in run("refs", "db.events", "--output", "json").objects}

    run("branch", "db.events", "work", "--snapshot", str(first), "--max-ref-age", "7d", "--min-snapshots", "3")
    assert refs()["work"]["snapshot_id"] == first
    assert (refs()["work"]["max_reference_age_in_ms"], refs()["work"]["min_snapshots_to_keep"]) == (604_800_000, 3)
    assert run("branch", "db.events", "work", "--fast-forward", "main").out == "moved branch work of db.events\n"
    assert refs()["work"]["snapshot_id"] == second
    run("tag", "db.events", "v1", "--from", "work")
    run("tag", "db.events", "v1", "--replace", "--snapshot", str(first))
    run("tag", "db.events", "v1", "--retain", "--max-ref-age", "1h")
    assert (refs()["v1"]["snapshot_id"], refs()["v1"]["max_reference_age_in_ms"]) == (first, 3_600_000)
    assert "has no branch or tag 'no'; it has main, v1, work" in run("tag", "db.events", "v2", "--from", "no").err
    assert run("branch", "db.events", "work", "--rename", "done").status == 0
    assert run("branch", "db.events", "done", "--delete").status == 0
    assert run("tag", "db.events", "v1", "--delete").out == "deleted tag v1 of db.events\n"
    assert {*refs()} == {"main"}


def test_a_staged_snapshot_is_published(run: Run, catalog: icefield.Catalog, events: icefield.Table) -> None:
    run("branch", "db.events", "work")
    events.refresh()
    events.append(rows(events, (3, "c")), branch="work")
    staged = events.metadata.ref("work")
    assert staged is not None
    assert ids(catalog) == [1, 2]
    picked = run("cherry-pick", "db.events", "--snapshot", str(staged.snapshot_id))
    assert picked.out.startswith("db.events is at snapshot "), picked.err
    assert ids(catalog) == [1, 2, 3]


def test_changes_are_printed_in_their_order(run: Run, deleted: icefield.Table) -> None:
    ids_ = [snapshot.snapshot_id for snapshot in deleted.metadata.snapshots]
    found = run("changes", "db.events", "--output", "json").objects
    assert [(row["id"], row["_change_type"]) for row in found] == [(1, "INSERT"), (2, "INSERT"), (1, "DELETE")]
    assert [row["_commit_snapshot_id"] for row in found] == ids_
    later = run("changes", "db.events", "--after", str(ids_[0]), "--limit", "1", "--output", "json").objects
    assert [row["id"] for row in later] == [2]
    assert run("changes", "db.events", "--net", "--count", "--output", "json").object == {"rows": 1}
    assert run("changes", "db.events", "--where", "kind = 'b'", "--columns", "id").lines[1].split()[:2] == [
        "2",
        "INSERT",
    ]


def test_an_interrupt_says_what_was_committed(
    run: Run, catalog: icefield.Catalog, deleted: icefield.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    time.sleep(0.002)
    options = ("expire-snapshots", "db.events", "--older-than", "0s", "--retain-last", "1")
    with monkeypatch.context() as patched:
        patched.setattr(Progress, "reach", interrupt)  # heard while files are deleted, after the commit
        ran = run(*options)
    assert ran.status == 130
    assert ran.err.startswith("icefield: interrupted after a commit was made")
    assert ran.err.endswith("; expire-snapshots can be run again, and finishes what is left\n")
    assert len(catalog.load_table("db.events").metadata.snapshots) == 1
    with monkeypatch.context() as patched:
        patched.setattr(icefield.Table, "manage_snapshots", interrupt)
        ran = run("rollback", "db.events", "--before", "1h")
    assert (ran.status, "before a commit was confirmed" in ran.err) == (130, True)


@pytest.mark.parametrize("given", ["yesterday", "7", "7y", "-1d"])
def test_a_time_that_is_none_is_wrong_usage(run: Run, events: icefield.Table, given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run("expire-snapshots", "db.events", f"--older-than={given}")
    assert ended.value.code == 2


# -- rewrite-data-files ---------------------------------------------------------------------------------------------


BY_CALLS_ONLY = {"file_format", "incremental", "predicate"}
"""What has no option: a function, and two of statistics that no reader looks at."""


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        (["expire-snapshots"], ["expire_snapshots"]),
        (["remove-orphans"], ["remove_orphan_files"]),
        (["rewrite-data-files"], ["rewrite_data_files"]),
        (["rewrite-manifests"], ["rewrite_manifests"]),
        (
            ["rewrite-deletes", "--convert-equality", "--remove-dangling"],
            ["rewrite_position_delete_files", "convert_equality_deletes", "remove_dangling_deletes"],
        ),
        (["compute-stats"], ["compute_table_stats", "compute_partition_stats"]),
    ],
    ids=str,
)
def test_a_command_passes_on_all_that_its_call_takes(
    run: Run, events: icefield.Table, monkeypatch: pytest.MonkeyPatch, command: list[str], calls: list[str]
) -> None:
    passed: dict[str, set[str]] = {}

    def listen(name: str) -> None:
        called = getattr(MaintenanceTable, name)
        signature = inspect.signature(called)

        def listened(*given: Any, **named: Any) -> Any:
            passed[name] = {*signature.bind(*given, **named).arguments}
            return called(*given, **named)

        monkeypatch.setattr(MaintenanceTable, name, listened)

    takes = {name: {*inspect.signature(getattr(MaintenanceTable, name)).parameters} for name in calls}
    for name in calls:
        listen(name)
    ran = run(*command, "db.events")
    assert ran.status == 0, ran.err
    assert {*passed} == {*calls}
    left = {parameter for name, given in passed.items() for parameter in takes[name] - given}
    assert left <= BY_CALLS_ONLY


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
    assert made["snapshot_ids"] == [table.metadata.current_snapshot_id]
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
    monkeypatch.setattr(Progress, "reach", lambda self, *given: seen.append(given))
    assert run("rewrite-data-files", "db.small", "--min-input-files", "2").status == 0
    assert seen == [("groups of files", number, 3) for number in (1, 2, 3)]


def test_orders_that_exclude_each_other_are_wrong_usage(
    run: Run, small: icefield.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("rewrite-data-files", "db.small", "--sort", "id", "--zorder", "id")
    assert ended.value.code == 2
    assert "'--sort' and '--zorder' exclude each other" in capsys.readouterr().err


_INTERRUPTED_AFTER_A_COMMIT = """
import os, signal, sys
from icefield.maintenance.compaction.running import RewriteGroup
whole, ran = RewriteGroup.do, []
def do(self, group, attempt):
    if len(ran) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    ran.append(group)
    return whole(self, group, attempt)
RewriteGroup.do = do
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


_INTERRUPTED_AT_A_CALL = """
import os, signal, sys
from icefield.builtin.local import LocalFileSystem
from icefield.maintenance import MaintenanceTable
name, number = sys.argv.pop(1).split(":")
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
