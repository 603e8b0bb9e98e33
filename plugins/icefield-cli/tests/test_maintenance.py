"""The commands that look after a table, on a catalog of each kind."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest
from event_rows import ids, rows
from icefield_maintenance import MaintenanceTable

Run = Callable[..., Any]


def test_expiry_deletes_what_its_dry_run_names(
    run: Run, catalog: icefield.Catalog, deleted: icefield.Table, tmp_path: Path
) -> None:
    time.sleep(0.002)
    options = ("expire-snapshots", "db.events", "--older-than", "0s", "--retain-last", "1")
    named = run(*options, "--dry-run", "--files", "--output", "json").objects
    data = [row["location"] for row in named if row["kind"] == "data"]
    assert len(data) == 1
    assert run(*options, "--dry-run", "--output", "json").object["files"] == len(named)
    assert run(*options, "--dry-run").out.startswith("would expire 2 snapshots of db.events; files: ")
    assert Path(data[0].removeprefix("file://")).exists()
    made = run(*options, "--output", "json").object
    assert (made["operation"], made["data_files"], len(made["snapshot_ids"])) == ("expire-snapshots", 1, 2)
    assert made["files"] == len(named)
    assert not Path(data[0].removeprefix("file://")).exists()
    assert run(*options).out == "expired 0 snapshots of db.events; files: 0\n"
    assert ids(catalog) == [2]


def test_an_expiry_that_deletes_no_file_says_so(run: Run, catalog: icefield.Catalog, deleted: icefield.Table) -> None:
    time.sleep(0.002)
    current = catalog.load_table("db.events").current_snapshot()
    icefield.clear_caches()
    Path(current.manifest_list.removeprefix("file://")).write_bytes(b"damaged")
    failed = run("expire-snapshots", "db.events", "--older-than", "0s", "--retain-last", "1")
    assert failed.status == 1
    assert failed.err.count("\n") == 1
    assert failed.err.endswith(
        ". The snapshots have expired, and no file was deleted: expire again when this can be read.\n"
    )
    assert len(catalog.load_table("db.events").snapshots()) == 1


def test_expiry_lists_files_in_a_dry_run_only_and_changes_nothing_before_it_says_so(
    run: Run, catalog: icefield.Catalog, deleted: icefield.Table
) -> None:
    time.sleep(0.002)
    with pytest.raises(SystemExit) as ended:
        run("expire-snapshots", "db.events", "--older-than", "0s", "--files")
    assert ended.value.code == 2
    assert len(catalog.load_table("db.events").snapshots()) == 3


def test_orphans_are_listed_and_only_deleted_when_that_is_asked_for(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    orphan = Path(events.location().removeprefix("file://")) / "data" / "lost.parquet"
    orphan.write_bytes(b"lost")
    time.sleep(0.01)
    options = ("remove-orphans", "db.events", "--older-than", "0s", "--allow-recent")
    *listed, whole = run(*options, "--output", "json").objects
    assert [(Path(row["location"]).name, row["size"]) for row in listed] == [("lost.parquet", 4)]
    assert (whole["operation"], whole["dry_run"], whole["files"], whole["bytes"]) == ("remove-orphans", True, 1, 4)
    assert orphan.exists()
    removed = run(*options, "--delete")
    assert removed.out.startswith("deleted 1 orphan files of db.events, 4 B\n"), removed.err
    assert not orphan.exists()
    assert ids(catalog) == [1, 2]


def test_the_object_of_a_removal_of_orphans_counts_them_and_their_bytes(run: Run, events: icefield.Table) -> None:
    for number in range(3):
        lost = Path(events.location().removeprefix("file://")) / "data" / f"lost-{number}.parquet"
        lost.write_bytes(b"lost")
    time.sleep(0.01)
    options = ("remove-orphans", "db.events", "--older-than", "0s", "--allow-recent", "--delete")
    made = run(*options, "--output", "json").object
    assert (made["operation"], made["files"], made["bytes"], made["dry_run"]) == ("remove-orphans", 3, 12, False)
    again = run(*options, "--output", "json").object
    assert (again["files"], again["bytes"]) == (0, 0)


def test_a_folder_without_files_is_told_from_one_without_orphans(
    run: Run, events: icefield.Table, tmp_path: Path
) -> None:
    nowhere = f"file://{tmp_path}/nowhere"
    said = f"no file is below {nowhere}: it is not there, or empty\n"
    assert run("remove-orphans", "db.events", "--location", nowhere).err == said
    found = run("remove-orphans", "db.events", "--location", nowhere, "--output", "json")
    assert (found.err, found.object["listed"]) == (said, 0)
    data = f"{events.location()}/data"
    assert run("remove-orphans", "db.events", "--location", data).out == f"no orphan files below {data}\n"
    assert run("remove-orphans", "db.events").out == "no orphan files below db.events\n"


def test_the_folder_of_another_table_is_named_where_it_is_left_alone(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    other = catalog.create_table("db.other", events.schema()).location()
    said = f"left alone: {other}/ holds metadata files of another table\n"
    assert run("remove-orphans", "db.events", "--location", other).err == said
    made = run("remove-orphans", "db.events", "--location", other, "--output", "json")
    assert (made.err, made.object["others"]) == (said, [f"{other}/"])


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


def test_a_dry_run_counts_a_delete_file_in_the_step_that_takes_it(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    events.delete_by_equality(rows(events, (1, "a")), ["id", "kind"])
    events.overwrite(rows(events, (6, "a")), "kind = 'a'")  # after which the equality delete applies to nothing
    options = ("rewrite-deletes", "db.events", "--convert-equality", "--remove-dangling", "--output", "json")
    counted = ("converted_equality_delete_files", "rewritten_position_delete_files", "removed_equality_delete_files")

    def counts(*more: str) -> list[int]:
        return [row[name] for name, row in zip(counted, run(*options, *more).objects, strict=True)]

    assert counts("--dry-run") == [1, 0, 0]
    assert counts() == [1, 0, 0]
    assert ids(catalog) == [2, 6]


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
    assert run("rollback", "db.events", "--ref", "both", "--output", "json").object["snapshot_id"] == str(second)
    assert run("rollback", "db.events", "--before", "2000-01-01").status == 1
    assert run("rollback", "db.events", "--snapshot", str(first), "--any").status == 0


def test_branches_and_tags_are_made_moved_kept_and_deleted(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    first, second = (snapshot.snapshot_id for snapshot in events.metadata.snapshots)

    def refs() -> dict[str, Any]:
        return {row["name"]: row for row in run("refs", "db.events", "--output", "json").objects}

    run("branch", "db.events", "work", "--snapshot", str(first), "--max-ref-age", "7d", "--min-snapshots", "3")
    assert refs()["work"]["snapshot_id"] == str(first)
    assert (refs()["work"]["max_reference_age_in_ms"], refs()["work"]["min_snapshots_to_keep"]) == (604_800_000, 3)
    assert run("branch", "db.events", "work", "--fast-forward", "main").out == "moved branch work of db.events\n"
    assert refs()["work"]["snapshot_id"] == str(second)
    run("tag", "db.events", "v1", "--from", "work")
    run("tag", "db.events", "v1", "--replace", "--snapshot", str(first))
    run("tag", "db.events", "v1", "--retain", "--max-ref-age", "1h")
    assert (refs()["v1"]["snapshot_id"], refs()["v1"]["max_reference_age_in_ms"]) == (str(first), 3_600_000)
    assert "has no branch or tag 'no'; it has main, v1, work" in run("tag", "db.events", "v2", "--from", "no").err
    assert run("branch", "db.events", "work", "--rename", "done").status == 0
    assert run("branch", "db.events", "done", "--delete").status == 0
    assert run("tag", "db.events", "v1", "--delete").out == "deleted tag v1 of db.events\n"
    assert {*refs()} == {"main"}


def test_how_long_a_branch_or_tag_is_kept_changes_only_where_it_is_there_and_of_that_kind(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    run("branch", "db.events", "work")
    run("tag", "db.events", "v1")
    before = catalog.load_table("db.events").metadata.refs
    age = ("--retain", "--max-ref-age", "3d")
    for command, name, said in (
        ("branch", "no", "db.events has no branch 'no'; it has main, work"),
        ("tag", "no", "db.events has no tag 'no'; it has v1"),
        ("branch", "v1", "'v1' of db.events is a tag, not a branch"),
        ("tag", "work", "'work' of db.events is a branch, not a tag"),
    ):
        refused = run(command, "db.events", name, *age)
        assert (refused.status, refused.err) == (1, f"icefield: {said}\n")
    assert catalog.load_table("db.events").metadata.refs == before


def test_a_branch_is_not_created_where_it_is_to_be_renamed_or_moved_and_the_name_is_empty(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    for option in ("--rename", "--fast-forward"):
        assert run("branch", "db.events", "new", option, "").status == 1
    assert {*catalog.load_table("db.events").metadata.refs} == {"main"}


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
    assert [row["_commit_snapshot_id"] for row in found] == [str(each) for each in ids_]
    later = run("changes", "db.events", "--after", str(ids_[0]), "--limit", "1", "--output", "json").objects
    assert [row["id"] for row in later] == [2]
    assert run("changes", "db.events", "--net", "--count", "--output", "json").object == {"rows": 1}
    assert run("changes", "db.events", "--where", "kind = 'b'", "--columns", "id").lines[1].split()[:2] == [
        "2",
        "INSERT",
    ]


@pytest.mark.parametrize("given", ["yesterday", "7", "7y", "-1d"])
def test_a_time_that_is_none_is_wrong_usage(run: Run, events: icefield.Table, given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run("expire-snapshots", "db.events", f"--older-than={given}")
    assert ended.value.code == 2


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


def test_rows_are_erased_after_a_yes(run: Run, catalog: icefield.Catalog, events: icefield.Table) -> None:
    refused = run("erase", "db.events", "--where", "id = 1")
    assert refused.status == 1
    assert "Nobody can be asked here" in refused.err
    made = run("erase", "db.events", "--where", "id = 1", "--yes", "--output", "json").object
    assert made["operation"] == "erase"
    assert made["rows_deleted"] == 1
    assert catalog.load_table("db.events").scan("id = 1").count() == 0


def test_rows_that_differ_between_two_versions_are_printed(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    before = events.current_snapshot()
    assert before is not None
    events.update("id = 1", {"kind": "z"})
    after = catalog.load_table("db.events").current_snapshot()
    assert after is not None
    rows = run("diff", "db.events", str(before.snapshot_id), "--key", "id", "--output", "json").objects
    assert [(row["id"], row["kind"], row["_change_type"]) for row in rows] == [
        (1, "a", "UPDATE_BEFORE"),
        (1, "z", "UPDATE_AFTER"),
    ]
    back = run("diff", "db.events", "main", str(before.snapshot_id), "--key", "id", "--output", "csv").lines
    assert [line.rpartition(",")[2] for line in back] == ['"_change_type"', '"UPDATE_BEFORE"', '"UPDATE_AFTER"']
    assert "nothere" in run("diff", "db.events", "nothere").err
