"""Processes that tend a table are killed at any step: no other works beside them, and the next run finishes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from catalogs import properties_of
from forked import forking
from icefield import Table, load_catalog
from icefield_maintenance.doctor import examine_table
from icefield_maintenance.doctor.findings import failures
from icefield_maintenance.tend import Tending
from killing import CHANGING, dies_at, killing_plugins
from rest_process import serving
from tended_tables import overlapping, policy_of, tend_until, tended_to_the_end

STRIDE = 3 if os.environ.get("ICEFIELD_SOAK") else 37
"""Every third step is walked by `make soak`."""
GOALS: Final[dict[str, Any]] = {"files_per_scan": 2, "snapshots": 2}


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


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
def test_whatever_step_dies_the_next_run_finishes_the_work(kind: str, tmp_path: Path) -> None:
    given = properties_of(kind, tmp_path)
    made(given)

    def tend(_: Table) -> None:
        tending = Tending(load_catalog("test", plugins=killing_plugins(), **given), policy_of(**GOALS))
        assert all(each.outcome == "done" for each in tending.run())

    for step in range(1, 2000, STRIDE):
        before = sorted(grown(given).scan().to_arrow()["id"].to_pylist())
        died = dies_at(step, given, tend, counted=CHANGING)
        tended_to_the_end(given, GOALS)
        table = load_catalog("test", **given).load_table("db.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
        assert len(table.inspect.files()) <= 2
        assert len(table.snapshots()) <= 2
        assert not failures([each for group in examine_table(table) for each in group.findings])
        if not died:
            break
    else:
        raise AssertionError("the run never came to its end")


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
