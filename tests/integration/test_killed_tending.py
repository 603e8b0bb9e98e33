"""Processes that tend a table are killed at any step: no other works beside them, and the next run finishes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from catalogs import properties_of
from icefield import Catalog, Table, load_catalog
from icefield_maintenance.doctor import examine_table
from icefield_maintenance.doctor.findings import failures
from icefield_maintenance.tend import Policy, Tending
from killing import CHANGING, dies_at, killing_plugins

STRIDE = 3 if os.environ.get("ICEFIELD_SOAK") else 37
POLICY = Policy.from_mapping(
    {"record": "ops.tend", "lease": "1s", "rules": [{"tables": "db.*", "files-per-scan": 2, "snapshots": 2}]}
)


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


def is_leased(catalog: Catalog) -> bool:
    return any("tend.lease" in catalog.load_table(name).properties for name in catalog.list_tables("db"))


def tended_to_the_end(given: dict[str, str], seconds: float = 20.0) -> None:
    """Tend until nothing is left to do, a lease that must end first included."""
    tending = Tending(load_catalog("test", **given), POLICY)
    end = time.monotonic() + seconds
    while [each for each in tending.run() if each.outcome != "done"] or is_leased(tending.catalog):
        assert time.monotonic() < end, "the lease of the dead process does not end"
        time.sleep(0.2)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_whatever_step_dies_the_next_run_finishes_the_work(kind: str, tmp_path: Path) -> None:
    given = properties_of(kind, tmp_path)
    made(given)

    def tend(_: Table) -> None:
        assert all(
            each.outcome == "done"
            for each in Tending(load_catalog("t", plugins=killing_plugins(), **given), POLICY).run()
        )

    for step in range(1, 2000, STRIDE):
        before = sorted(grown(given).scan().to_arrow()["id"].to_pylist())
        died = dies_at(step, given, tend, counted=CHANGING)
        tended_to_the_end(given)
        table = load_catalog("test", **given).load_table("db.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
        assert len(table.inspect.files()) <= 2
        assert len(table.snapshots()) <= 2
        assert "tend.lease" not in table.properties
        assert not failures([each for group in examine_table(table) for each in group.findings])
        if not died:
            break
    else:
        raise AssertionError("the run never came to its end")


def _tend(given: dict[str, str], rounds: int) -> None:
    tending = Tending(load_catalog("test", **given), POLICY)
    for _ in range(rounds):
        for _ in tending.run():
            pass


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_two_processes_do_not_tend_a_table_at_the_same_time(kind: str, tmp_path: Path) -> None:
    given = properties_of(kind, tmp_path)
    names = ("a", "b", "c")
    made(given, names)
    context = multiprocessing.get_context("spawn")
    for killed_after in (None, 0.4, 0.8):
        for name in names:
            grown(given, name)
        both = [context.Process(target=_tend, args=(given, 2)) for _ in range(2)]
        for each in both:
            each.start()
        if killed_after is not None:
            time.sleep(2.0 + killed_after)
            if both[0].pid is not None and both[0].is_alive():
                os.kill(both[0].pid, signal.SIGKILL)
        for each in both:
            each.join(120)
        assert both[1].exitcode == 0
        tended_to_the_end(given)
    record = load_catalog("test", **given).load_table("ops.tend").scan().to_arrow().sort_by("at").to_pylist()
    assert not overlapping(record)
    for name in names:
        assert len(load_catalog("test", **given).load_table(f"db.{name}").inspect.files()) <= 2


def overlapping(record: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Operations of different owners on one table at one time."""
    ends: dict[str, dict[str, Any]] = {}
    found = []
    for each in record:
        last = ends.get(each["table"])
        if (
            last is not None
            and last["owner"] != each["owner"]
            and each["at"] < last["at"] + timedelta(seconds=last["seconds"])
        ):
            found.append((last, each))
        ends[each["table"]] = each
    return found
