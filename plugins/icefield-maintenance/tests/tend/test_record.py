"""The record: few commits, in bounded time, by a thread that holds up nothing when its store hangs or fails."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from icefield import Catalog, Table
from icefield.errors import CommitFailed, CommitStateUnknown
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.tend import Policy, TendedOperation, Tending, runner
from icefield_maintenance.tend import record as record_module
from icefield_maintenance.tend.past import RecordedPast, bytes_left, ms_of
from tables import memory_catalog, new_table, rows
from tended_tables import add_to_record

DAY_MS = 86_400_000
RECORD = "ops.record"  # the records of other tests may be written later


@pytest.fixture
def catalog() -> Catalog:
    return memory_catalog()


def appended(catalog: Catalog, name: str, count: int = 4) -> Table:
    table = new_table(catalog=catalog, name=name)
    for number in range(count):
        table.append(rows([number]))
    return table


def policy(budget: dict[str, Any] | None = None, **more: Any) -> Policy:
    rule = {"tables": "db.*", "files-per-scan": 2, "snapshots": 2}
    return Policy.from_mapping({"rules": [rule], "record": RECORD, "budget": budget or {}, **more})


def recorded(catalog: Catalog) -> list[tuple[str, str, str]]:
    found = catalog.load_table(RECORD).scan().to_arrow().sort_by("at").to_pylist()
    return [(each["table"], each["operation"], each["outcome"]) for each in found]


def outcomes(found: Iterator[TendedOperation]) -> list[tuple[str, str, str]]:
    return [(each.table, each.operation, each.outcome) for each in found]


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


class AppendsToRecord:
    """Runs a function before each append to the record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]) -> None:
        self.calls = 0
        original = Table.append

        def append(table: Table, *args: Any, **options: Any) -> Any:
            if table.name() == tuple(RECORD.split(".")):
                self.calls += 1
                before()
            return original(table, *args, **options)

        monkeypatch.setattr(Table, "append", append)


def test_the_operations_of_many_tables_are_few_commits_to_the_record(catalog: Catalog) -> None:
    for number in range(8):
        appended(catalog, f"db.t{number}")
    done = outcomes(Tending(catalog, policy()).run())
    assert len(done) == 16
    assert sorted(recorded(catalog)) == sorted(done)
    assert len(catalog.load_table(RECORD).snapshots()) <= 3


def test_an_operation_is_recorded_while_the_next_one_goes_on(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "_GATHERING_SECONDS", 0.2)
    for name in ("db.a", "db.b", "db.c"):
        appended(catalog, name)
    seen: list[int] = []
    original = MaintenanceTable.expire_snapshots

    def expiring(self: MaintenanceTable, *args: Any, **options: Any) -> Any:
        if not options.get("dry_run"):
            expected = 1 + 2 * len(seen)
            until(lambda: catalog.table_exists(RECORD) and len(recorded(catalog)) == expected)
            seen.append(expected)
        return original(self, *args, **options)

    monkeypatch.setattr(MaintenanceTable, "expire_snapshots", expiring)
    assert len([*Tending(catalog, policy()).run()]) == 6
    assert seen == [1, 3, 5]


def test_an_operation_that_is_added_during_a_write_is_written_after_it(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_module, "_GATHERING_SECONDS", 0.01)
    added = Event()
    appends = AppendsToRecord(monkeypatch, lambda: until(added.is_set))
    now = dt.datetime.now(dt.UTC)
    record = record_module.TendRecord(catalog, RECORD, lambda: ms_of(now))
    record.add(TendedOperation(at=now, table="db.a", operation="expire_snapshots", outcome="done"))
    until(lambda: appends.calls == 1)
    record.add(TendedOperation(at=now, table="db.b", operation="expire_snapshots", outcome="done"))
    added.set()
    until(lambda: appends.calls == 2 and len(recorded(catalog)) == 2)


def test_an_operation_is_written_by_a_later_thread_if_none_can_start(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    now = dt.datetime.now(dt.UTC)
    record = record_module.TendRecord(catalog, RECORD, lambda: ms_of(now))
    with monkeypatch.context() as exhausted:
        exhausted.setattr(Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            record.add(TendedOperation(at=now, table="db.a", operation="expire_snapshots", outcome="done"))
    assert record.flush(60)
    assert recorded(catalog) == [("db.a", "expire_snapshots", "done")]


def test_a_record_that_hangs_holds_up_no_table_and_is_overdue(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()
    appends = AppendsToRecord(monkeypatch, lambda: until(ended.is_set))
    patience = property(lambda tending: 1.0 if tending._record._thread else 60.0)
    monkeypatch.setattr(Tending, "_patience", patience)  # the record hangs whenever a thread works on it
    for number in range(5):
        appended(catalog, f"db.t{number}")
    tending = Tending(catalog, policy({"concurrency": 2}))
    *done, last = tending.run()
    assert [each.outcome for each in done] == ["done"] * 10
    assert (last.table, last.operation, last.outcome) == (RECORD, "record", "overdue")
    assert "the record takes longer than 1 s" in last.message
    # Without a record, no further run of this process begins, and one thread waits.
    appended(catalog, "db.t9")
    assert outcomes(tending.run()) == [(RECORD, "record", "overdue")]
    assert appends.calls == 1
    ended.set()
    until(lambda: tending._record.flush(60))
    assert len(recorded(catalog)) == 10
    assert {each[0] for each in outcomes(tending.run())} == {"db.t9"}
    assert len(recorded(catalog)) == 12


def test_a_record_that_cannot_be_read_in_time_stops_a_run(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    appended(catalog, "db.t")
    ended, original = Event(), Catalog.load_table

    def hanging(self: Catalog, name: Any) -> Any:
        if name == RECORD:
            until(ended.is_set)
        return original(self, name)

    monkeypatch.setattr(Catalog, "load_table", hanging)
    monkeypatch.setattr(runner, "_SURVEY_SECONDS", 0.2)
    tending = Tending(catalog, policy())
    for is_dry in (True, False):
        assert outcomes(tending.run(dry_run=is_dry)) == [(RECORD, "record", "overdue")]
    ended.set()
    until(lambda: tending._record.flush(60))
    monkeypatch.setattr(runner, "_SURVEY_SECONDS", 60.0)
    assert [each[2] for each in outcomes(tending.run())] == ["done", "done"]


def test_operations_whose_commit_failed_are_written_by_the_next_run(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [CommitFailed("others commit faster"), CommitFailed("still faster")]

    def failing() -> None:
        if faults:
            raise faults.pop(0)

    AppendsToRecord(monkeypatch, failing)
    appended(catalog, "db.a")
    tending = Tending(catalog, policy())
    with pytest.raises(CommitFailed, match="faster"):
        [*tending.run()]
    while faults:
        faults.pop()
    assert [*tending.run()] == []
    done = recorded(catalog)
    assert done[0] == ("db.a", "rewrite_data_files", "done")
    assert len(done) == len(set(done))


def test_a_run_ends_when_the_record_cannot_be_written(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise CommitFailed("no one may")

    monkeypatch.setattr(record_module, "_GATHERING_SECONDS", 0.0)
    appends = AppendsToRecord(monkeypatch, failing)
    original = MaintenanceTable.expire_snapshots

    def expiring(self: MaintenanceTable, *args: Any, **options: Any) -> Any:
        assert options.get("dry_run") or until(lambda: appends.calls > 0) is None
        return original(self, *args, **options)

    monkeypatch.setattr(MaintenanceTable, "expire_snapshots", expiring)
    for number in range(4):
        appended(catalog, f"db.t{number}")
    with pytest.raises(CommitFailed, match="no one may"):
        [*Tending(catalog, policy()).run()]
    left = [len(catalog.load_table(f"db.t{number}").inspect.files()) for number in range(4)]
    assert 4 in left


def test_operations_whose_commit_has_an_unknown_state_are_not_written_twice(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Table.append
    unknown = [True]

    def append(table: Table, *args: Any, **options: Any) -> Any:
        result = original(table, *args, **options)
        if table.name() == tuple(RECORD.split(".")) and unknown:
            unknown.clear()
            raise CommitStateUnknown("no reply")
        return result

    monkeypatch.setattr(Table, "append", append)
    appended(catalog, "db.a")
    tending = Tending(catalog, policy())
    with pytest.raises(CommitStateUnknown):
        [*tending.run()]
    [*tending.run()]
    assert recorded(catalog) == [("db.a", "rewrite_data_files", "done"), ("db.a", "expire_snapshots", "done")]


def test_a_consumer_that_stops_in_the_middle_leaves_a_whole_record(catalog: Catalog) -> None:
    for name in ("db.a", "db.b"):
        appended(catalog, name)
    found = Tending(catalog, policy()).run()
    next(found)
    found.close()  # type: ignore[attr-defined]
    files = {name: len(catalog.load_table(name).inspect.files()) for name in ("db.a", "db.b")}
    done = {table for table, operation, _ in recorded(catalog) if operation == "rewrite_data_files"}
    assert done == {name for name, count in files.items() if count < 4}


def test_processes_that_run_at_the_same_time_share_the_bytes_of_a_day(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_module, "_GATHERING_SECONDS", 0.0)
    for number in range(6):
        appended(catalog, f"db.t{number}")
    size = sum(catalog.load_table("db.t0").inspect.files()["file_size_in_bytes"].to_pylist())
    limited = policy({"bytes-per-day": 3 * size + size // 8})
    first, second = Tending(catalog, limited), Tending(catalog, limited)
    running = first.run()
    # The first has read the record and done one table when the other begins, which does the rest of the budget.
    found = [next(running)]
    done = [each for each in second.run() if each.operation == "rewrite_data_files" and each.outcome == "done"]
    assert len(done) == 2
    found += running
    rewritten = [each for each in (*found, *done) if each.operation == "rewrite_data_files" and each.outcome == "done"]
    assert sum(each.rewritten_bytes for each in rewritten) <= 3 * size + size // 8
    assert len(rewritten) == 3


def test_bytes_are_reserved_until_they_count_as_spent(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    appended(catalog, "db.a")
    limited = policy({"bytes-per-day": "1 MB"})
    tending = Tending(catalog, limited)
    left = []
    original = RecordedPast.note

    def noting(self: RecordedPast, operation: TendedOperation, now_ms: int) -> None:
        left.append(bytes_left(self, limited.budget, now_ms, tending._reserved))
        original(self, operation, now_ms)

    monkeypatch.setattr(RecordedPast, "note", noting)
    (rewrite, *_) = tending.run()
    assert left[0] == 1_000_000 - rewrite.rewritten_bytes


def test_the_bytes_of_a_rewrite_that_lost_to_writers_are_spent(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended(catalog, "db.a")
    original = MaintenanceTable.rewrite_data_files

    def losing(self: MaintenanceTable, **options: Any) -> Any:
        if not options.get("dry_run"):
            raise CommitFailed("others commit faster")
        return original(self, **options)

    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", losing)
    (lost, _) = Tending(catalog, policy()).run()
    assert lost.outcome == "lost"
    assert lost.rewritten_bytes == lost.planned_rewrite > 0


@pytest.mark.parametrize("outcome", ["done", "failed"])
def test_a_row_with_the_time_of_a_wrong_clock_makes_no_pause_and_spends_no_budget(
    catalog: Catalog, outcome: Any
) -> None:
    table = appended(catalog, "db.t")
    size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    ahead = dt.datetime.now(dt.UTC) + dt.timedelta(days=400)
    for operation in ("rewrite_data_files", "remove_orphan_files"):
        wrong = TendedOperation(at=ahead, table="db.t", operation=operation, outcome=outcome, rewritten_bytes=size)
        add_to_record(catalog, RECORD, wrong)
    found = outcomes(Tending(catalog, policy({"bytes-per-day": size + 1})).run())
    assert found[0] == ("db.t", "rewrite_data_files", "done")
    past, now_ms = RecordedPast(), ms_of(dt.datetime.now(dt.UTC))
    past.note(wrong, now_ms)
    assert past.done("db.t", None).orphans_ms is None


def erasing(where: str = "id = 1") -> Policy:
    erasure = {"name": "seven", "tables": "db.*", "where": where, "by": dt.date(2026, 1, 1)}
    return Policy.from_mapping({"record": RECORD, "erasures": [erasure]})


def test_an_erasure_is_done_again_in_a_table_that_takes_the_name_of_another(catalog: Catalog) -> None:
    appended(catalog, "db.t")
    given = erasing()
    assert outcomes(Tending(catalog, given).run()) == [("db.t", "erase", "done")]
    catalog.drop_table("db.t")
    appended(catalog, "db.t")
    assert outcomes(Tending(catalog, given).run()) == [("db.t", "erase", "done")]
    assert catalog.load_table("db.t").scan("id = 1").count() == 0
    assert outcomes(Tending(catalog, given).run()) == []
