"""Processes that tend a table are killed at any step: no other works beside them, and the next run finishes."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from catalogs import properties_of
from census import path_of
from forked import forking
from icefield import Table, load_catalog
from icefield_maintenance.doctor import examine_table
from icefield_maintenance.doctor.findings import failures
from icefield_maintenance.tend import Policy, TendedOperation, Tending, lease, record, runner
from killing import CHANGING, Steps, dies_at, killing_plugins
from maintenance_calls import all_named, all_there
from rest_process import serving
from tables import ids
from tended_tables import add_to_record, overlapping, policy_of, tend_until, tended_to_the_end

STRIDE = 1 if os.environ.get("ICEFIELD_SOAK") else 23
"""Every step is walked by `make soak`."""
GOALS: Final[dict[str, Any]] = {"files_per_scan": 2, "snapshots": 2}
GOALS_OF_ALL: Final[dict[str, Any]] = {**GOALS, "delete_files": 1, "manifests": 2, "orphan_age": "2d"}
OPERATIONS: Final = {"rewrite_data_files", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"}
OLD: Final = time.time() - 4 * 86_400


def rows(number: int) -> pa.Table:
    return pa.table({"id": pa.array(range(number, number + 3), pa.int64())})


def made(given: dict[str, str], names: tuple[str, ...] = ("t",)) -> None:
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    for name in names:
        catalog.create_table(f"db.{name}", rows(0).schema, properties={"file.sync": "false"})


def grown(given: dict[str, str], name: str = "t") -> Table:
    table = load_catalog("test", **given).load_table(f"db.{name}")
    for number in range(4):
        table.append(rows(3 * number))
    return table


class Walk:
    """Runs of ``tend`` on a table with work for every operation, killed at chosen steps; a table for each walk."""

    def __init__(self, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given = properties_of(kind, folder)
        made(self.given)
        self.ahead = 0
        self.is_resumed = False
        for module in (lease, runner):
            now = module._now_ms
            monkeypatch.setattr(module, "_now_ms", lambda now=now: now() + self.ahead)

    def killed(self, steps: Sequence[int]) -> bool:
        """Kill a run at each of the steps, the later ones at the work that the earlier have left; False: none died.

        Between two runs, the lease of the dead process ends. Check that no run works before, and the state afterwards.
        """
        name, self.ahead = f"t{steps[0]}", 0
        table, rows = worked_on(self.given, name)
        orphans = [*planted(table)]
        policy = policy_of("60s", record=f"ops.{name}", tables=f"db.{name}", **GOALS_OF_ALL)
        add_to_record(load_catalog("test", **self.given), f"ops.{name}", searched(f"db.{name}"))

        def tend(_: Table) -> None:
            operations = [*Tending(load_catalog("test", plugins=killing_plugins(), **self.given), policy).run()]
            assert all(each.outcome == "done" for each in operations), operations
            assert self.is_resumed or {each.operation for each in operations} >= OPERATIONS

        self.is_resumed = False
        died = self._dies_at(steps[0], tend, policy, f"db.{name}")
        self.is_resumed = True
        for step in steps[1:] if died else ():
            self._dies_at(step, tend, policy, f"db.{name}")
        tending = Tending(load_catalog("test", **self.given), policy)
        while found := [*tending.run()]:
            assert all(each.outcome == "done" for each in found), (steps, found)
        table.refresh()
        assert ids(table) == rows
        assert "tend.lease" not in table.properties
        assert table.inspect.data_files().num_rows <= 2 * 6
        assert table.inspect.delete_files().num_rows <= 1
        assert len(table.snapshots()) <= 2
        assert not [each for each in orphans if each.exists()]
        assert all_named(table) <= all_there(table), f"live files are gone after {steps}"
        assert not failures([each for group in examine_table(table) for each in group.findings])
        for each in all_there(table) - all_named(table):  # left by the dead, and younger than the goal allows
            os.utime(each, (OLD, OLD))
        table.maintenance.remove_orphan_files(dry_run=False)
        assert all_named(table) == all_there(table), f"files are left after {steps}"
        assert not overlapping(self.given, f"ops.{name}")
        return died

    def _dies_at(self, step: int, tend: Callable[[Table], None], policy: Policy, name: str) -> bool:
        died = dies_at(step, self.given, tend, counted=CHANGING)
        catalog = load_catalog("test", **self.given)
        held = lease.TableLease.of(catalog.load_table(name).metadata)
        if held is not None and not held.is_over(lease._now_ms()):
            assert died
            assert {each.outcome for each in Tending(catalog, policy).run()} <= {"held"}
            self.ahead += 61_000
        return died


def worked_on(given: dict[str, str], name: str) -> tuple[Table, list[int]]:
    """A table with small files, deletes that soon apply to nothing, many manifests and snapshots; and its rows."""
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    properties = {
        "file.sync": "false",
        "format-version": "2",
        "write.delete.mode": "merge-on-read",
        "commit.manifest-merge.enabled": "false",
    }
    catalog = load_catalog("test", **given)
    table = catalog.create_table(f"db.{name}", schema, partition_spec=["kind"], properties=properties)
    for number, kind in enumerate("aaabcdef"):
        table.append(pa.table({"id": [3 * number, 3 * number + 1, 3 * number + 2], "kind": [kind] * 3}, schema=schema))
    table.delete("id = 1")
    table.delete("id = 4")
    return table, ids(table)


def planted(table: Table) -> Iterator[Path]:
    """Files that no version refers to, and that are old."""
    for folder in ("data", "metadata"):
        orphan = Path(path_of(table.location())) / folder / "orphan.parquet"
        orphan.write_bytes(b"left")
        os.utime(orphan, (OLD, OLD))
        yield orphan


def searched(name: str) -> TendedOperation:
    """The last search for orphans, which is older than the goal."""
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=3)
    return TendedOperation(at=at, table=name, operation="remove_orphan_files", outcome="done")


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_whatever_step_dies_the_next_run_finishes_the_work(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk(kind, tmp_path, monkeypatch)
    for step in range(1, 2000, STRIDE):
        # The second process continues the work, and is killed at one of the remaining steps.
        if not walk.killed([step, 1 + 7 * step % 60] if step % 2 else [step]):
            break
    else:
        raise AssertionError("the run never came to its end")
    assert step > 100


def test_a_process_that_dies_in_the_middle_of_its_work_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Walk("create", tmp_path, monkeypatch).killed([40])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_operations_are_recorded_once_or_not_at_all_by_a_process_that_dies_in_a_commit_of_the_record(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_GATHERING_SECONDS", 600.0)
    given = properties_of(kind, tmp_path)
    made(given)
    found = []
    for step in range(1, 100):
        policy = policy_of(record=f"ops.t{step}", **GOALS)
        grown(given)

        def tend(_: Table, step: int = step, policy: Policy = policy) -> None:
            tending = Tending(load_catalog("test", plugins=killing_plugins(), **given), policy)
            flush = tending._record.flush

            def flushing(seconds: float) -> bool:
                if tending._record._waiting:
                    Steps.done, Steps.deadly = 0, step
                return flush(seconds)

            tending._record.flush = flushing  # type: ignore[method-assign]
            assert {each.outcome for each in tending.run()} == {"done"}

        died = dies_at(10_000, given, tend, counted=CHANGING)
        tended_to_the_end(given, GOALS)
        catalog = load_catalog("test", **given)
        assert [*Tending(catalog, policy).run()] == []
        assert catalog.load_table("db.t").inspect.data_files().num_rows <= 2
        held = catalog.load_table(f"ops.t{step}") if catalog.table_exists(f"ops.t{step}") else None
        found.append([] if held is None else sorted(held.scan().to_arrow()["operation"].to_pylist()))
        if not died:
            break
    whole = ["expire_snapshots", "rewrite_data_files"]
    assert found[0] == []
    assert found[-1] == whole
    assert all(each in ([], whole) for each in found), found
    assert len(found) > 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_two_processes_do_not_tend_a_table_at_the_same_time(kind: str, tmp_path: Path) -> None:
    tend_by_two(properties_of(kind, tmp_path))


@pytest.mark.slow
def test_two_processes_do_not_tend_a_table_of_a_service_at_the_same_time(tmp_path: Path) -> None:
    with serving(properties_of("sql", tmp_path)) as uri:
        tend_by_two({"type": "rest", "uri": uri})


def tend_by_two(given: dict[str, str]) -> None:
    """Let two processes tend three tables several times, and kill one of them at different times."""
    names = ("a", "b", "c")
    made(given, names)
    context = forking("tended_tables")
    for killed_after in (None, 0.5, 1.0, 1.5):
        for name in names:
            grown(given, name)
        both = [context.Process(target=tend_until, args=(given, GOALS, time.time() + 2.0)) for _ in range(2)]
        for each in both:
            each.start()
        if killed_after is not None:
            time.sleep(killed_after)
            both[0].kill()
        for each in both:
            each.join(120)
        assert both[1].exitcode == 0
        tended_to_the_end(given, GOALS)
    assert not overlapping(given)
    for name in names:
        table = load_catalog("test", **given).load_table(f"db.{name}")
        assert len(table.inspect.files()) <= 2
        assert table.scan().count() == 4 * 4 * 3
