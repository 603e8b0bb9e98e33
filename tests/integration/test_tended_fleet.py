"""Two processes tend the real tables of a large catalog, without a lost race and in bounded memory."""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from multiprocessing.queues import Queue
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
from tended_tables import overlapping, policy_of

TABLES = 1000 if os.environ.get("ICEFIELD_SOAK") else 30
MOST_MIB = 400
"""The most memory of a process, libraries included."""
GOALS: Final[dict[str, Any]] = {"files_per_scan": 2, "snapshots": 2}
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def tend_once(given: dict[str, str], found: Queue[Any]) -> None:
    """A run as from cron: the main function of a process. Gives its outcomes, CPU seconds and memory in MiB."""
    began = time.process_time()
    catalog = load_catalog("test", **given)
    outcomes = Counter(each.outcome for each in Tending(catalog, policy_of("600s", **GOALS)).run())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.put((outcomes, time.process_time() - began, memory))


def grow(table: Table, count: int) -> None:
    for number in range(count):
        table.append(pa.table({"id": range(10 * number, 10 * number + 10), "text": ["x" * 50] * 10}, schema=SCHEMA))


@pytest.mark.counted
@pytest.mark.slow
def test_two_processes_bring_all_tables_to_their_goals(tmp_path: Path) -> None:
    given = properties_of("sql", tmp_path)
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    names = [f"db.t{number:04}" for number in range(TABLES)]
    for name in names:
        grow(catalog.create_table(name, SCHEMA, properties={"file.sync": "false"}), 4)
    rewritten = 0
    for changed, commits in ((TABLES, 0), (TABLES // 5, 3), (0, 0)):
        for name in names[: changed if commits else 0]:
            grow(catalog.load_table(name), commits)
        context = forking("tended_tables")
        found: Queue[Any] = context.Queue()
        both = [context.Process(target=tend_once, args=(given, found)) for _ in range(2)]
        for each in both:
            each.start()
        results = [found.get(timeout=3000) for _ in both]
        for each in both:
            each.join(60)
        outcomes: Counter[str] = sum((each[0] for each in results), Counter())
        print(f"{changed} tables: {dict(outcomes)}, CPU {[round(each[1], 1) for each in results]} s", end=", ")
        print(f"memory {[round(each[2]) for each in results]} MiB")
        # A rival is either refused, or finds the table at its goals.
        assert set(outcomes) <= {"done", "held"}
        assert max(each[2] for each in results) < MOST_MIB
        rewritten += changed
        record = catalog.load_table("ops.tend").scan("operation = 'rewrite_data_files'").to_arrow()
        assert record.num_rows == rewritten
    assert not overlapping(given)
    for name in names[:: TABLES // 10]:
        table = catalog.load_table(name)
        assert table.inspect.data_files().num_rows <= 2
        assert not failures([each for group in examine_table(table) for each in group.findings])
    assert catalog.load_table(names[0]).scan().count() == 70
    assert [*Tending(catalog, policy_of(**GOALS)).run()] == []
