"""Work beyond the limits: a rewrite that fits no budget is done in parts, and a table that hangs delays no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Table
from icefield.errors import InvalidArgument
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.tend import Policy, TendedOperation, Tending, outlook_of, runner
from tables import ids, memory_catalog, new_table, rows

DAY_MS = 86_400_000
RECORD = "ops.tend"


@pytest.fixture
def catalog() -> Catalog:
    return memory_catalog()


def appended(catalog: Catalog, name: str = "db.t", count: int = 6, size: int = 1, **more: Any) -> Table:
    table = new_table(catalog=catalog, name=name, **more)
    for number in range(count):
        table.append(rows(range(number * size, (number + 1) * size)))
    return table


def sizes_of(table: Table) -> list[int]:
    found: list[int] = table.refresh().inspect.data_files()["file_size_in_bytes"].to_pylist()
    return found


def policy(budget: dict[str, Any], **goals: Any) -> Policy:
    rule = {"tables": "db.*", **{name.replace("_", "-"): value for name, value in goals.items()}}
    return Policy.from_mapping({"rules": [rule], "budget": budget, "record": RECORD})


def outcomes(found: Iterator[TendedOperation]) -> list[tuple[str, str, str]]:
    return [(each.table, each.operation, each.outcome) for each in found]


# -- more bytes than the budget has


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_rewrite_of_more_bytes_than_any_day_has_is_done_in_parts_day_by_day(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    ahead, now = 0, runner._now_ms
    monkeypatch.setattr(runner, "_now_ms", lambda: now() + ahead)
    table = new_table(["kind"] if partitioned else None, catalog=catalog)
    for number in range(8):
        table.append(pa.concat_tables([rows([2 * number], "a"), rows([2 * number + 1], "b")]))
    places = 2 if partitioned else 1
    day = sum(sizes_of(table)) // 3
    limited = policy({"bytes-per-day": day}, files_per_scan=2)
    files = [len(sizes_of(table))]
    for number in range(20):
        ahead = number * (DAY_MS + 60_000)
        done = [*Tending(catalog, limited).run()]
        if not done:
            break
        assert all(each.outcome in ("done", "postponed") for each in done)
        assert 0 < sum(each.rewritten_bytes for each in done) <= day
        files.append(len(sizes_of(table)))
        assert files[-1] < files[-2]
    assert files[-1] <= 2 * places
    assert 3 <= number <= 8
    assert ids(table) == list(range(16))


def test_a_part_is_made_for_what_the_budget_has_left_but_not_for_a_rest(catalog: Catalog) -> None:
    table = appended(catalog, count=12)
    total = sum(sizes_of(table))
    (done,) = Tending(catalog, policy({"bytes-per-day": total // 2}, files_per_scan=2)).run()
    assert (done.outcome, done.planned_requests, done.measured_requests) == ("done", 5, 5)
    assert total // 3 < done.rewritten_bytes == done.planned_rewrite <= total // 2
    # Less than a tenth of the budget is left.
    waiting = [*Tending(catalog, policy({"bytes-per-day": done.rewritten_bytes * 21 // 20}, files_per_scan=2)).run()]
    assert [each.outcome for each in waiting] == ["postponed"]
    assert "bytes left today" in waiting[0].message


def test_a_rewrite_that_no_day_allows_is_a_failure_of_each_run_and_on_the_page(catalog: Catalog) -> None:
    table = new_table(catalog=catalog, properties={"write.delete.mode": "merge-on-read", "format-version": "2"})
    table.append(rows(range(1000)))
    table.delete("id < 500")
    limited = policy({"bytes-per-day": 1000}, deleted_rows=0.2)
    for _ in range(2):
        (found,) = Tending(catalog, limited).run()
        assert (found.operation, found.outcome) == ("rewrite_data_files", "failed")
        assert "the whole budget of a day is 1,000: it can never be done. Raise bytes-per-day" in found.message
    ((decision, waits),) = outlook_of(table.refresh(), limited, None, time.time_ns() // 1_000_000).plan
    assert decision.fault == waits == found.message
    assert not catalog.table_exists(RECORD)
    assert outcomes(Tending(catalog, policy({"bytes-per-day": 10**6}, deleted_rows=0.2)).run()) == [
        ("db.t", "rewrite_data_files", "done")
    ]


def test_a_budget_of_no_bytes_postpones(catalog: Catalog) -> None:
    appended(catalog)
    assert [each.outcome for each in Tending(catalog, policy({"bytes-per-day": 0}, files_per_scan=2)).run()] == [
        "postponed"
    ]


# -- more time than a table has


class Hanging:
    """Makes a method hang for some tables until ``end`` is called. Other work is never overdue, however slow it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, *names: str) -> None:
        self.calls = 0
        self._ended = Event()
        original, late, hung = getattr(owner, method), Tending._late, set[tuple[str, ...]]()

        def hanging(table: Any, *args: Any, **options: Any) -> Any:
            of = args[0] if isinstance(table, Catalog) else table._table.name()
            if ".".join(of) in names and not options.get("dry_run"):
                self.calls += 1
                hung.add(of)
                assert self._ended.wait(60)
            return original(table, *args, **options)

        def late_if_it_hangs(tending: Tending, name: tuple[str, ...], **options: Any) -> Any:
            return late(tending, name, **options) if name in hung else None

        monkeypatch.setattr(owner, method, hanging)
        monkeypatch.setattr(Tending, "_late", late_if_it_hangs)
        monkeypatch.setattr(Tending, "_patience", 60.0)  # of the record, which does not hang

    def end(self) -> None:
        self._ended.set()


def until(tending: Tending) -> None:
    end = time.monotonic() + 60
    while tending._at_work:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_a_rewrite_that_hangs_is_overdue_and_the_run_goes_on_with_one_thread(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended(catalog, "db.a", 9)  # it gains most, and comes first
    appended(catalog, "db.b")
    hanging = Hanging(monkeypatch, MaintenanceTable, "rewrite_data_files", "db.a")
    tending = Tending(catalog, policy({"time-per-table": "3s"}, files_per_scan=2, snapshots=2))
    begun = time.time()
    found = [*tending.run()]  # the rewrite hangs until the end of this test
    assert [(each.table, each.operation, each.outcome) for each in found] == [
        ("db.a", "rewrite_data_files", "overdue"),
        ("db.b", "rewrite_data_files", "done"),
        ("db.b", "expire_snapshots", "done"),
    ]
    assert found[0].at.timestamp() + found[0].seconds > begun + 2.998  # both are rounded to ms
    assert "the run goes on without it" in found[0].message
    # Neither the same process nor another one works on it meanwhile.
    (waiting,) = tending.run()
    assert (waiting.table, waiting.outcome) == ("db.a", "postponed")
    assert "rewrite_data_files is overdue" in waiting.message
    others = [*Tending(catalog, policy({}, snapshots=2)).run()]
    assert [(each.table, each.outcome) for each in others] == [("db.a", "held")]
    assert hanging.calls == 1
    hanging.end()
    until(tending)
    assert tending._record.flush(60)
    recorded = catalog.load_table(RECORD).scan("table = 'db.a'").to_arrow().to_pylist()
    # No operation follows an overdue one.
    assert {each["operation"] for each in recorded} == {"rewrite_data_files"}
    assert sorted(each["outcome"] for each in recorded) == ["done", "overdue"]
    assert "tend.lease" not in catalog.load_table("db.a").properties
    assert outcomes(tending.run()) == [("db.a", "expire_snapshots", "done")]


def test_metadata_that_hangs_is_overdue_and_tried_again_after_a_pause(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("db.a", "db.b"):
        appended(catalog, name)
    hanging = Hanging(monkeypatch, Catalog, "load_table", "db.a")
    monkeypatch.setattr(runner, "_SURVEY_SECONDS", 0.3)
    tending = Tending(catalog, policy({}, files_per_scan=2))
    assert sorted(outcomes(tending.run())) == [("db.a", "plan", "overdue"), ("db.b", "rewrite_data_files", "done")]
    (waiting,) = tending.run()
    assert "plan is overdue" in waiting.message
    (paused,) = Tending(catalog, tending.policy).run()
    assert (paused.table, paused.outcome) == ("db.a", "postponed")
    assert "its plan took too long before: the next attempt is in" in paused.message
    assert hanging.calls == 1
    hanging.end()
    until(tending)
    now = runner._now_ms
    monkeypatch.setattr(runner, "_now_ms", lambda: now() + 3_700_000)
    assert outcomes(tending.run()) == [("db.a", "rewrite_data_files", "done")]


@pytest.mark.slow
def test_a_store_that_hangs_for_many_tables_has_few_threads(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"db.t{number}" for number in range(6)]
    for name in names:
        appended(catalog, name, 3)
    hanging = Hanging(monkeypatch, MaintenanceTable, "rewrite_data_files", *names)
    monkeypatch.setattr(runner, "_MOST_OVERDUE", 2)
    tending = Tending(catalog, policy({"time-per-table": "1s"}, files_per_scan=2))
    found = [*tending.run()]
    assert sorted(each.outcome for each in found) == ["overdue"] * 2 + ["postponed"] * 4
    assert "2 tables are overdue at a time: their store may hang" in found[-1].message
    hanging.end()
    until(tending)


def test_a_dry_run_that_hangs_leaves_no_record(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    appended(catalog, "db.a")
    hanging = Hanging(monkeypatch, Catalog, "load_table", "db.a")
    monkeypatch.setattr(runner, "_SURVEY_SECONDS", 0.2)
    tending = Tending(catalog, policy({}, files_per_scan=2))
    assert outcomes(tending.run(dry_run=True)) == [("db.a", "plan", "overdue")]
    assert not catalog.table_exists(RECORD)
    hanging.end()
    until(tending)


@pytest.mark.parametrize("given", ["0s", "2d", "never"])
def test_the_time_of_a_table_is_bounded(given: str) -> None:
    with pytest.raises(InvalidArgument, match="is not from 1s to 1d"):
        policy({"time-per-table": given})
