"""The properties of a table are its owner's: they bound nothing but its own maintenance, and faults are reported."""

from __future__ import annotations

import datetime as dt
import time
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Table
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.tend import Goals, Policy, Tending, runner
from icefield_maintenance.tend.goals import GOALS, goals_in
from icefield_maintenance.tend.lease import LeasedTable
from icefield_maintenance.tend.quantities import Span, StatisticsAge
from tables import ids, memory_catalog, new_table, rows
from unchecked_properties import stated

DAY_MS = 86_400_000
# fmt: off
HOSTILE = [
    "", "0", "-1", "1", "NaN", "inf", "-inf", "1e-300", "1e300", "9" * 400, "0x10", "1_0", "١٢", "true", "null", "[]",
    "1 B", "0 MiB", "999999999999999 PB", "999999999w", "0s", "never", "x" * 100_000, "a\x00b\nc\x1b[31m",
    "someone 999999999999999", "x" * 5000 + " 1", "a 1\nb 999999999999999", "streaming\n", "__class__",
]
# fmt: on


def appended(catalog: Catalog, name: str, count: int = 3, size: int = 1) -> Table:
    table = new_table(catalog=catalog, name=name)
    for number in range(count):
        table.append(rows(range(number * size, (number + 1) * size)))
    return table


def policy(budget: dict[str, Any] | None = None, **more: Any) -> Policy:
    goals = {"files-per-scan": 2, "snapshots": 9, "bytes-per-file": "512 MiB"}
    return Policy.from_mapping({"rules": [{"tables": "db.*", **goals}], "budget": budget or {}, **more})


@pytest.fixture
def catalog() -> Catalog:
    return memory_catalog()


def of(found: list[Any], table: str) -> list[tuple[str, str]]:
    return [(each.operation, each.outcome) for each in found if each.table == table]


@pytest.mark.parametrize("name", GOALS)
def test_a_goal_of_a_table_is_within_bounds_or_reported(name: str) -> None:
    base = Goals(files_per_scan=4, snapshots=3, statistics_age=StatisticsAge.parse("2d"))
    field = name.replace("-", "_")
    for value in HOSTILE:
        found, faults = goals_in({f"tend.{name}": value}, base)
        if faults:
            assert found == base
            assert f"tend.{name}" in faults[0]
            assert len(faults[0]) < 300
        else:
            least, most = WITHIN[name]
            assert least <= getattr(found, field) <= most, value
    assert len(goals_in(dict.fromkeys([f"tend.{each}" for each in GOALS], "-7"), base)[1]) == len(GOALS)


WITHIN = {
    "files-per-scan": (1, 1_000_000),
    "bytes-per-file": (1 << 20, 8 << 30),
    "deleted-rows": (0.01, 1.0),
    "delete-files": (1, 1_000_000),
    "manifests": (1, 1_000_000),
    "snapshot-age": (60_000, Span.parse("never")),
    "snapshots": (1, 1_000_000),
    "orphan-age": (DAY_MS, Span.parse("never")),
    "statistics-age": (DAY_MS // 24, Span.parse("never")),
}


@pytest.mark.parametrize("value", HOSTILE[::4], ids=range(len(HOSTILE[::4])))
def test_no_value_of_any_property_stops_a_run_or_asks_for_work_without_end(catalog: Catalog, value: str) -> None:
    for name in ("db.goals", "db.lease", "db.on", "db.other"):
        appended(catalog, name)
    stated(
        catalog.load_table("db.goals"),
        tend_preset=value,
        **{f"tend_{each.replace('-', '__')}": value for each in GOALS},
    )
    stated(catalog.load_table("db.lease"), tend_lease=value)
    stated(catalog.load_table("db.on"), tend_enabled=value)
    found = [*Tending(catalog, policy(record="ops.tend")).run()]
    assert of(found, "db.other") == [("rewrite_data_files", "done")]
    assert ("rewrite_data_files", "done") in of(found, "db.lease")
    for each in found:
        assert len(each.message) <= 1000
        assert each.outcome == "done" or (each.operation, each.outcome) == ("plan", "failed"), each
    for name in ("db.goals", "db.lease", "db.on"):
        table = catalog.load_table(name)
        assert len(table.inspect.files()) <= 3
        assert ids(table) == [0, 1, 2]
    assert [each for each in Tending(catalog, policy()).run() if each.operation != "plan"] == []


def test_a_fault_is_reported_and_the_goals_of_the_policy_hold(catalog: Catalog) -> None:
    table = appended(catalog, "db.t")
    stated(table, tend_files__per__scan="-1")
    stated(table, tend_preset="mine\x1b[2J")
    (fault, *done) = Tending(catalog, policy()).run()
    assert (fault.operation, fault.outcome) == ("plan", "failed")
    assert "table property tend.preset" in fault.message
    assert "table property 'tend.files-per-scan'" in fault.message
    assert "\x1b" not in fault.message
    assert [each.operation for each in done] == ["rewrite_data_files"]


@pytest.mark.parametrize("name", ["tend.bytes-per-file", "write.target-file-size-bytes"])
@pytest.mark.parametrize("value", ["1", "1000", str(2**62)])
def test_a_target_size_makes_no_file_of_each_row_and_no_endless_rewrite(
    catalog: Catalog, name: str, value: str
) -> None:
    table = appended(catalog, "db.t", size=1000)
    stated(table, **{name.replace("-", "__").replace(".", "_"): value})
    wanted = Policy.from_mapping({"rules": [{"tables": "db.*", "files-per-scan": 2}]})
    found = [each for each in Tending(catalog, wanted).run() if each.operation != "plan"]
    assert [each.outcome for each in found] == ["done"]
    assert len(table.refresh().inspect.files()) == 1
    assert [each for each in Tending(catalog, wanted).run() if each.operation != "plan"] == []


@pytest.mark.parametrize("properties", [{"tend_enabled": "false"}, {"tend_enabled": "no"}, {"tend_snapshots": "all"}])
def test_no_property_of_a_table_stops_an_erasure(catalog: Catalog, properties: dict[str, str]) -> None:
    table = appended(catalog, "db.t")
    stated(table, **properties)
    erasure = {"name": "seven", "tables": "db.*", "where": "id = 1", "by": dt.date(2026, 1, 1)}
    given = Policy.from_mapping({"record": "ops.tend", "erasures": [erasure]})
    assert ("erase", "done") in of([*Tending(catalog, given).run()], "db.t")
    assert ids(table.refresh()) == [0, 2]


def test_a_lease_that_ends_later_than_any_honest_one_is_taken_over(catalog: Catalog) -> None:
    table = appended(catalog, "db.t")
    now = time.time_ns() // 1_000_000
    for until in (999_999_999_999_999, now + 2 * DAY_MS):
        stated(table, tend_lease=f"mallory {until}")
        with LeasedTable(table, "honest", 60_000, is_compared=True) as taken:
            assert taken.was_abandoned
    stated(table, tend_lease=f"slow:clock {now + DAY_MS}")
    assert [each.outcome for each in Tending(catalog, policy()).run()] == ["held"]


def test_an_error_that_nobody_foresaw_concerns_one_table(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("db.a", "db.b", "db.c"):
        appended(catalog, name)
    original = MaintenanceTable.rewrite_data_files

    def failing(self: MaintenanceTable, **options: Any) -> Any:
        if self._table.name() == ("db", "a") or (self._table.name() == ("db", "b") and not options.get("dry_run")):
            raise RecursionError("too deep")
        return original(self, **options)

    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", failing)
    found = [*Tending(catalog, policy()).run()]
    assert of(found, "db.a") == [("plan", "failed")]
    assert of(found, "db.b") == [("rewrite_data_files", "failed")]
    assert of(found, "db.c") == [("rewrite_data_files", "done")]
    assert {each.message for each in found} == {"", "RecursionError: too deep"}


@pytest.mark.parametrize("with_record", [True, False])
def test_a_table_that_always_gains_most_does_not_spend_the_budget_of_all_days(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, with_record: bool
) -> None:
    ahead = 0
    now = runner._now_ms
    monkeypatch.setattr(runner, "_now_ms", lambda: now() + ahead)
    greedy = appended(catalog, "db.greedy", 8)
    others = [appended(catalog, f"db.t{number}", 3, size=3000) for number in range(3)]
    each_bytes = max(sum(each.inspect.files()["file_size_in_bytes"].to_pylist()) for each in (greedy, *others))
    more = {"record": "ops.tend"} if with_record else {}
    limited = Policy.from_mapping(
        {
            "rules": [{"tables": "db.*", "files-per-scan": 2}],
            "budget": {"bytes-per-day": 3 * each_bytes // 2},
            **more,
        }
    )
    tending = Tending(catalog, limited)
    order = []
    for day in range(4):
        ahead = day * DAY_MS + 1000
        done = [each.table for each in tending.run() if each.outcome == "done"]
        if day and len(waiting := {"db.t0", "db.t1", "db.t2"}.difference(order)):
            assert done[0] in waiting
        order += done
        for number in range(8):
            greedy.append(rows([number]))
    assert order[0] == "db.greedy"
    assert {*order} == {"db.greedy", "db.t0", "db.t1", "db.t2"}


def test_a_rewrite_that_gains_nothing_is_not_repeated_at_once(catalog: Catalog) -> None:
    value = {"id": pa.array([1, 2], pa.int64()), "text": [("x" + str(n)) * 10 for n in range(2)]}
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table("db.t", pa.table(value).schema, properties={"write.target-file-size-bytes": "10"})
    table.append(pa.table(value))
    monkey = Policy.from_mapping({"rules": [{"tables": "db.*", "files-per-scan": 1}], "record": "ops.tend"})
    with pytest.MonkeyPatch.context() as patch:
        # As if each row were larger than any file should be.
        patch.setattr("icefield_maintenance.tend.planning.FileSize.nearest", lambda size: size)
        first = [*Tending(catalog, monkey).run()]
        assert [each.outcome for each in first] == ["done"]
        assert first[0].measured_requests <= 0
        second = [each.outcome for each in Tending(catalog, monkey).run()]
    assert second == ["postponed"]


def test_a_slow_table_holds_up_one_thread_alone(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"db.t{number}" for number in range(8)]
    for name in names:
        appended(catalog, name)
    others_done = Event()
    original = MaintenanceTable.rewrite_data_files
    finished: list[str] = []

    def slow(self: MaintenanceTable, **options: Any) -> Any:
        if self._table.name() == ("db", "t0") and not options.get("dry_run"):
            assert others_done.wait(60)
        return original(self, **options)

    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", slow)
    for each in Tending(catalog, policy({"concurrency": 2})).run():
        finished.append(each.table)
        if len(set(finished) - {"db.t0"}) == 7:
            others_done.set()
    assert finished[-1] == "db.t0"
