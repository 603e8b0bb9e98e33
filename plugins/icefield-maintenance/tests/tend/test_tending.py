"""A run by a policy brings tables to their goals, within its budget, and leaves a record."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Table, clear_caches
from icefield.abc import PutMode
from icefield.errors import CommitFailed
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.tend import CommittedTables, Policy, TendedOperation, Tending, runner
from icefield_maintenance.tend.past import RecordedPast
from icefield_maintenance.tend.record import SCHEMA
from pickling_runner import PicklingRunner
from tables import ids, memory_catalog, new_table, rows
from tended_tables import add_to_record

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Clock:
    """The time of the runner, which a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0
        now = runner._now_ms
        monkeypatch.setattr(runner, "_now_ms", lambda: now() + self.ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    return memory_catalog()


def appended(catalog: Catalog, name: str = "db.t", count: int = 6, **more: Any) -> Table:
    table = new_table(catalog=catalog, name=name, **more)
    for number in range(count):
        table.append(rows([number]))
    return table


def policy(record: str | None = "ops.tend", budget: dict[str, Any] | None = None, **goals: Any) -> Policy:
    rule = {"tables": "db.*", **{name.replace("_", "-"): value for name, value in goals.items()}}
    given: dict[str, Any] = {"rules": [rule], "budget": budget or {}}
    return Policy.from_mapping(given if record is None else {**given, "record": record})


def outcomes(operations: Iterator[TendedOperation]) -> list[tuple[str, str, str]]:
    return [(each.table, each.operation, each.outcome) for each in operations]


def recorded(catalog: Catalog) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalog.load_table("ops.tend").scan().to_arrow().sort_by("at").to_pylist()
    return found


def test_a_run_brings_a_table_to_its_goals_and_the_next_one_does_nothing(catalog: Catalog) -> None:
    table = appended(catalog)
    tending = Tending(catalog, policy(files_per_scan=4, snapshots=3))
    foreseen = outcomes(tending.run(dry_run=True))
    assert foreseen == [("db.t", "rewrite_data_files", "planned"), ("db.t", "expire_snapshots", "planned")]
    assert len(table.refresh().snapshots()) == 6
    done = outcomes(tending.run())
    assert done == [("db.t", "rewrite_data_files", "done"), ("db.t", "expire_snapshots", "done")]
    assert outcomes(Tending(catalog, tending.policy).run()) == []
    table.refresh()
    assert (len(table.inspect.files()), len(table.snapshots()), ids(table)) == (1, 3, list(range(6)))
    assert "tend.lease" not in table.properties


def test_the_record_holds_the_planned_and_the_measured_gain(catalog: Catalog) -> None:
    appended(catalog)
    [*Tending(catalog, policy(files_per_scan=4)).run()]
    (row,) = recorded(catalog)
    assert (row["table"], row["operation"], row["outcome"]) == ("db.t", "rewrite_data_files", "done")
    assert (row["planned_requests"], row["measured_requests"]) == (5, 5)
    assert row["rewritten_bytes"] == row["planned_rewrite"] > 0
    assert row["seconds"] > 0
    assert row["reason"] == "6 data files in 1 partition become about 1"


def test_tables_come_by_their_gain_for_each_rewritten_byte(catalog: Catalog) -> None:
    appended(catalog, "db.few", 5)
    appended(catalog, "db.many", 9)
    big = new_table(catalog=catalog, name="db.big")
    for _ in range(9):
        big.append(rows(range(20_000)))
    found = [each.table for each in Tending(catalog, policy(files_per_scan=4)).run(dry_run=True)]
    assert found == ["db.many", "db.few", "db.big"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_bytes_of_a_day_are_not_exceeded(catalog: Catalog, clock: Clock, concurrency: int) -> None:
    for name in ("db.a", "db.b", "db.c"):
        appended(catalog, name)
    size = sum(catalog.load_table("db.a").inspect.files()["file_size_in_bytes"].to_pylist())
    limited = policy(files_per_scan=4, budget={"bytes-per-day": 2 * size + size // 8, "concurrency": concurrency})
    found = [each.outcome for each in Tending(catalog, limited).run()]
    assert sorted(found) == ["done", "done", "postponed"]
    assert [each.outcome for each in Tending(catalog, limited).run()] == ["postponed"]
    clock.ahead = DAY_MS
    assert [each.outcome for each in Tending(catalog, limited).run()] == ["done"]


def test_outside_of_its_windows_nothing_is_done(catalog: Catalog) -> None:
    table = appended(catalog)
    now = dt.datetime.now(dt.UTC)
    closed = f"{(now + dt.timedelta(hours=2)):%H:%M}-{(now + dt.timedelta(hours=3)):%H:%M}"
    (found,) = Tending(catalog, policy(files_per_scan=4, budget={"windows": [closed]})).run()
    assert (found.outcome, found.message) == ("postponed", f"no window is open: {closed} UTC")
    assert len(table.refresh().inspect.files()) == 6


def test_a_loss_to_writers_makes_a_pause_that_grows(
    catalog: Catalog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended(catalog)

    def losing(self: MaintenanceTable, **options: Any) -> None:
        raise CommitFailed("others commit faster")

    planned = policy(files_per_scan=4)
    dry = MaintenanceTable.rewrite_data_files
    monkeypatch.setattr(
        MaintenanceTable,
        "rewrite_data_files",
        lambda self, **options: dry(self, **options) if options.get("dry_run") else losing(self, **options),
    )
    waited = []
    for _ in range(3):
        (lost,) = Tending(catalog, planned).run()
        assert (lost.outcome, lost.message) == ("lost", "others commit faster")
        hours = 0
        while outcomes(Tending(catalog, planned).run(dry_run=True))[0][2] == "postponed":
            clock.ahead += HOUR_MS
            hours += 1
        waited.append(hours)
    assert waited == [1, 2, 4]
    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", dry)
    assert [each.outcome for each in Tending(catalog, planned).run()] == ["done"]


def test_without_a_record_a_process_knows_its_own_losses(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    appended(catalog)

    def losing(self: MaintenanceTable, **options: Any) -> None:
        raise CommitFailed("others commit faster")

    monkeypatch.setattr(MaintenanceTable, "compute_table_stats", losing)
    tending = Tending(catalog, policy(None, statistics_age="1d"))
    assert [each.outcome for each in tending.run()] == ["lost"]
    assert [each.outcome for each in tending.run()] == ["postponed"]
    assert not catalog.table_exists("ops.tend")


def test_an_unreadable_table_does_not_hinder_others(catalog: Catalog) -> None:
    broken = appended(catalog, "db.a")
    appended(catalog, "db.b")
    snapshot = broken.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    broken.io.storage(snapshot.manifest_list).delete_many([snapshot.manifest_list])
    clear_caches()
    found = outcomes(Tending(catalog, policy(files_per_scan=4)).run())
    assert found == [("db.a", "plan", "failed"), ("db.b", "rewrite_data_files", "done")]


def test_deletes_are_converted_packed_and_dropped_before_files_are_rewritten(catalog: Catalog) -> None:
    table = new_table(catalog=catalog, properties={"format-version": "2"})
    table.append(rows(range(100)))
    for number in range(8):
        table.delete_by_equality(pa.table({"id": pa.array([number], pa.int64())}), ["id"])
    found = outcomes(Tending(catalog, policy(delete_files=2, deleted_rows=0.05)).run())
    assert ("db.t", "convert_equality_deletes", "done") in found
    assert ids(table.refresh()) == list(range(8, 100))
    assert table.inspect.delete_files().num_rows <= 2
    assert outcomes(Tending(catalog, policy(delete_files=2, deleted_rows=0.05)).run()) == []


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_plan_of_a_conversion_counts_the_file_that_it_adds(catalog: Catalog, version: str) -> None:
    table = new_table(catalog=catalog, properties={"format-version": version})
    table.append(rows(range(100)))
    for number in range(6):
        table.delete_by_equality(pa.table({"id": pa.array([number], pa.int64())}), ["id"])
    (found,) = Tending(catalog, policy(delete_files=2)).run()
    assert (found.operation, found.outcome) == ("convert_equality_deletes", "done")
    assert found.planned_requests == found.measured_requests == 5


def test_statistics_are_renewed_by_their_age(catalog: Catalog, clock: Clock) -> None:
    table = appended(catalog, partition_spec=["kind"])
    wanted = policy(statistics_age="1d")
    both = [("db.t", "compute_table_stats", "done"), ("db.t", "compute_partition_stats", "done")]
    assert outcomes(Tending(catalog, wanted).run()) == both
    clock.ahead = 2 * DAY_MS
    assert outcomes(Tending(catalog, wanted).run()) == []  # nothing has changed
    table.append(rows([9]))
    assert outcomes(Tending(catalog, wanted).run()) == both


def test_the_bytes_that_statistics_read_are_of_the_budget_and_not_in_vain(catalog: Catalog) -> None:
    for name in ("db.a", "db.b"):
        appended(catalog, name)
    size = sum(catalog.load_table("db.a").inspect.files()["file_size_in_bytes"].to_pylist())
    wanted = policy(statistics_age="1h", budget={"bytes-per-day": size * 3 // 2})
    done, waiting = Tending(catalog, wanted).run()
    assert (done.outcome, done.rewritten_bytes, done.planned_rewrite) == ("done", size, size)
    assert not done.was_in_vain
    assert (waiting.outcome, "bytes left today" in waiting.message) == ("postponed", True)


def test_orphans_are_looked_for_once_in_their_age(catalog: Catalog, clock: Clock) -> None:
    appended(catalog)
    wanted = policy(orphan_age="3d")
    assert outcomes(Tending(catalog, wanted).run(dry_run=True)) == []
    clock.ahead = 4 * DAY_MS
    (planned,) = Tending(catalog, wanted).run(dry_run=True)
    assert (planned.operation, planned.reason) == (
        "remove_orphan_files",
        "the last search for orphan files was 96 hours ago",
    )
    add_to_record(catalog, "ops.tend", replace(planned, outcome="done"))
    assert outcomes(Tending(catalog, wanted).run(dry_run=True)) == []


def test_an_erasure_is_done_once_and_the_record_does_not_hold_its_filter(catalog: Catalog) -> None:
    table = appended(catalog)
    given = {
        "record": "ops.tend",
        "budget": {"bytes-per-day": 0, "windows": ["00:00-00:01"]},
        "erasures": [{"name": "seven", "tables": "db.*", "where": "id = 3", "by": dt.date(2026, 1, 1)}],
    }
    assert outcomes(Tending(catalog, Policy.from_mapping(given)).run()) == [("db.t", "erase", "done")]
    assert ids(table.refresh()) == [0, 1, 2, 4, 5]
    assert outcomes(Tending(catalog, Policy.from_mapping(given)).run()) == []
    assert "id = 3" not in str(recorded(catalog))
    assert "erasure seven, due on 2026-01-01" in str(recorded(catalog))


def test_the_message_of_a_failed_erasure_does_not_quote_its_filter(catalog: Catalog) -> None:
    appended(catalog)
    erasure = {"name": "eight", "tables": "db.*", "where": "email = 'ann@a.example'", "by": dt.date(2026, 1, 1)}
    (found,) = Tending(catalog, Policy.from_mapping({"record": "ops.tend", "erasures": [erasure]})).run()
    assert (found.outcome, found.message) == ("failed", "InvalidExpression")
    assert "ann@" not in str(recorded(catalog))


@pytest.mark.parametrize(
    ("properties", "tag", "message"),
    [
        ({"gc.enabled": "false"}, None, "its property 'gc.enabled' is false"),
        ({}, "release", "tag 'release' keeps a version with rows to erase"),
    ],
)
def test_the_record_says_why_a_table_refuses_an_erasure(
    catalog: Catalog, properties: dict[str, str], tag: str | None, message: str
) -> None:
    table = appended(catalog, properties=properties)
    if tag:
        head = table.refresh().current_snapshot()
        assert head is not None
        table.manage_snapshots().create_tag(head.snapshot_id, tag).commit()
    erasure = {"name": "nine", "tables": "db.*", "where": "id = 3", "by": dt.date(2026, 1, 1)}
    (found,) = Tending(catalog, Policy.from_mapping({"record": "ops.tend", "erasures": [erasure]})).run()
    assert found.outcome == "failed"
    assert message in found.message
    assert message in str(recorded(catalog))
    assert "id = 3" not in str(recorded(catalog))


def test_the_record_says_that_files_outside_of_a_table_still_hold_erased_rows(catalog: Catalog) -> None:
    table = appended(catalog)
    outside = f"{table.location()}-outside/id=7/file.parquet"
    (path,) = (each.file.file_path for each in table.scan("id = 3").plan_files())
    table.io.put(outside, table.io.read(path), PutMode.CREATE)
    table.add_files([outside])
    erasure = {"name": "ten", "tables": "db.*", "where": "id = 3", "by": dt.date(2026, 1, 1)}
    (found,) = Tending(catalog, Policy.from_mapping({"record": "ops.tend", "erasures": [erasure]})).run()
    assert found.outcome != "done"
    assert "1 of their files are outside of its folders and were kept" in found.message
    assert "id=7" not in str(recorded(catalog))


@pytest.mark.parametrize("method", ["_surveyed", "_maintained"])
def test_a_table_that_is_dropped_meanwhile_is_left_out(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    for name in ("db.a", "db.b", "db.c"):
        appended(catalog, name)
    original = getattr(Tending, method)

    def dropping(tending: Tending, of: Any) -> Any:
        if getattr(of, "table", of) == ("db", "b"):
            catalog.drop_table("db.b")
        return original(tending, of)

    monkeypatch.setattr(Tending, method, dropping)
    found = outcomes(Tending(catalog, policy(files_per_scan=4)).run())
    assert sorted(found) == [(name, "rewrite_data_files", "done") for name in ("db.a", "db.c")]


def test_a_table_keeps_the_snapshots_that_its_properties_ask_for(catalog: Catalog) -> None:
    table = appended(catalog, properties={"history.expire.min-snapshots-to-keep": "5"})
    assert outcomes(Tending(catalog, policy(snapshots=2)).run()) == [("db.t", "expire_snapshots", "done")]
    assert len(table.refresh().snapshots()) == 5
    assert outcomes(Tending(catalog, policy(snapshots=2)).run()) == []


def test_a_number_of_snapshots_of_main_expires_no_staged_write_and_no_snapshot_of_a_branch(catalog: Catalog) -> None:
    table = appended(catalog, count=2, properties={"write.wap.enabled": "true"})
    table.append(rows([7]), snapshot_properties={"wap.id": "w1"}, branch=None)
    staged = table.refresh().metadata.snapshots[-1].snapshot_id
    table.manage_snapshots().create_branch(None, "b").commit()
    for number in range(3):
        table.append(rows([number]), branch="b")
    of_branch = {each.snapshot_id for each in table.refresh().metadata.snapshots[-3:]}
    for number in range(3):
        table.append(rows([number]))
    assert outcomes(Tending(catalog, policy(snapshots=2)).run()) == [("db.t", "expire_snapshots", "done")]
    left = [each.snapshot_id for each in table.refresh().snapshots()]
    assert {staged} | of_branch <= set(left)
    assert len(left) == 1 + 3 + 2
    table.manage_snapshots().cherry_pick(staged).commit()
    assert 7 in ids(table.refresh())


def test_an_erasure_that_failed_a_thousand_times_stops_no_other_erasure() -> None:
    past = RecordedPast()
    failed = TendedOperation(at=dt.datetime.now(dt.UTC), table="db.t", operation="erase", outcome="failed")
    now_ms = int(failed.at.timestamp() * 1000)
    for _ in range(1100):
        past.note(failed, now_ms)
    assert 23 * HOUR_MS < past.pause_ms("db.t", "erase", now_ms) <= DAY_MS


def test_work_is_done_by_a_runner(catalog: Catalog) -> None:
    table = appended(catalog)
    found = Tending(catalog, policy(files_per_scan=4), runner=PicklingRunner()).run()
    assert outcomes(found) == [("db.t", "rewrite_data_files", "done")]
    assert ids(table.refresh()) == list(range(6))


def test_commits_name_the_tables_to_maintain() -> None:
    committed = CommittedTables()
    catalog = memory_catalog(committed)
    appended(catalog, "db.a")
    appended(catalog, "db.b", 1)
    assert committed.take() == [("db", "a"), ("db", "b")]
    assert committed.take(0.01) == []
    appended(catalog, "db.c")
    tending = Tending(catalog, policy(files_per_scan=4))
    assert outcomes(tending.run(committed.take())) == [("db.c", "rewrite_data_files", "done")]
    assert ("db", "c") not in committed.take()  # the maintenance itself asks for none


def test_a_table_opts_out_by_a_property(catalog: Catalog) -> None:
    appended(catalog, properties={"tend.enabled": "false"})
    assert outcomes(Tending(catalog, policy(files_per_scan=1)).run()) == []


def test_only_the_given_tables_are_maintained(catalog: Catalog) -> None:
    appended(catalog, "db.a")
    appended(catalog, "db.b")
    found = Tending(catalog, policy(files_per_scan=4)).run([("db", "b"), ("ops", "tend")])
    assert outcomes(found) == [("db.b", "rewrite_data_files", "done")]


def test_a_table_that_is_given_twice_is_maintained_once(catalog: Catalog) -> None:
    appended(catalog, "db.t")
    tending = Tending(catalog, policy(files_per_scan=4))
    assert outcomes(tending.run([("db", "t"), ("db", "t")])) == [("db.t", "rewrite_data_files", "done")]


def test_the_record_is_read_with_its_columns(catalog: Catalog) -> None:
    appended(catalog)
    [*Tending(catalog, policy(files_per_scan=4)).run()]
    assert catalog.load_table("ops.tend").scan().to_arrow().schema.names == SCHEMA.names


def test_a_row_of_the_record_without_costs_stops_no_run(catalog: Catalog) -> None:
    appended(catalog)
    done = TendedOperation(at=dt.datetime.now(dt.UTC), table="db.t", operation="erase", outcome="done")
    add_to_record(catalog, "ops.tend", done)
    row = {"at": dt.datetime.now(dt.UTC), "table": "db.t", "operation": "erase", "outcome": "done"}
    catalog.load_table("ops.tend").append(pa.Table.from_pylist([row], schema=SCHEMA))
    found = Tending(catalog, policy(files_per_scan=4, budget={"hours-per-day": 1})).run()
    assert outcomes(found) == [("db.t", "rewrite_data_files", "done")]
