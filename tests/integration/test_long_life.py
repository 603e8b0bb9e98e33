"""A table that four processes change and maintain at random until killed stays whole, tidy and equal to the model."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from catalogs import properties_of
from forked import forking
from icefield import load_catalog
from icefield_maintenance.doctor import Result, examine_table
from long_life import KEPT_SNAPSHOTS, NAME, PROPERTIES, SCHEMA, WEIGHTS, WRITES, Journal, all_rows, digest, lead
from maintenance_calls import EVER, all_named, all_there
from tended_tables import overlapping, tend_until, tended_to_the_end

SECONDS, STEPS, BETWEEN_KILLS = (600, 500, 15) if os.environ.get("ICEFIELD_SOAK") else (4, 8, 3)
"""How long it lives at least, how many changes each of four processes makes at least, and seconds between kills."""
OWNERS = ("ann", "bob", "cid", "dee")
TENDING = ("tom", "tim")
GOALS = {"files_per_scan": 3, "deleted_rows": 0.2, "delete_files": 2, "manifests": 4, "snapshots": 2 * KEPT_SNAPSHOTS}
"""The goals of the processes that tend the table."""
LEASE = "20s"
"""Longer than a commit beside the writers, which renews a lease."""


def live_together(given: dict[str, str], folder: Path, chance: random.Random, tending: Sequence[str] = ()) -> int:
    """Run the processes, kill one of them now and then, and return the number of kills.

    With ``tending``, processes of these names maintain the table, and the others only write and read.
    """
    context = forking("long_life", "tended_tables")
    until, killed = time.time() + SECONDS, 0

    def started(owner: str) -> BaseProcess:
        if owner in tending:
            process = context.Process(target=tend_until, args=(given, GOALS, until, LEASE))
        else:
            changes = WRITES if tending else WEIGHTS
            arguments = (given, owner, str(folder), chance.randrange(10**9), until, STEPS, changes)
            process = context.Process(target=lead, args=arguments)
        process.start()
        return process

    running = {owner: started(owner) for owner in (*OWNERS, *tending)}
    next_kill = time.time() + BETWEEN_KILLS
    try:
        while running:
            time.sleep(0.05)
            for owner, process in [*running.items()]:
                if process.exitcode is not None:
                    assert process.exitcode == 0, f"{owner} came upon something wrong"
                    del running[owner]
            if running and time.time() > next_kill:
                next_kill = time.time() + chance.uniform(0.5, 1.5) * BETWEEN_KILLS
                owner = chance.choice(sorted(running))
                running[owner].kill()
                running[owner].join()
                killed += running[owner].exitcode != 0
                running[owner] = started(owner)
    finally:
        for process in running.values():
            process.kill()
    return killed


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("tending", [(), TENDING], ids=["all maintain", "two tend"])
def test_a_table_is_whole_after_a_long_life(tending: tuple[str, ...], tmp_path: Path) -> None:
    given = properties_of("sql", tmp_path)
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    catalog.create_table(NAME, SCHEMA, partition_spec=["owner"], properties=PROPERTIES)
    seed = random.randrange(10**9)
    killed = live_together(given, tmp_path, random.Random(seed), tending)
    journals = [Journal(tmp_path / f"{owner}.journal") for owner in OWNERS]
    counts = sum((journal.counts() for journal in journals), Counter[str]())
    print(f"seed {seed}, {sum(counts.values())} changes, {killed} kills: {dict(counts)}")
    assert sum(counts.values()) >= len(OWNERS) * STEPS

    expected: list[tuple[str, int, int]] = []
    tags: dict[str, str] = {}
    for owner, journal in zip(OWNERS, journals, strict=True):
        known, pending = journal.last()
        assert pending is None
        expected += [(owner, number, value) for number, value, _ in known.listed()]
        tags.update(known.tags)
    table = catalog.load_table(NAME)
    assert all_rows(table) == sorted(expected)
    findings = [finding for group in examine_table(table, whole=True) for finding in group.findings]
    assert [each for each in findings if each.result is Result.FAILED] == []

    if tending:
        assert not overlapping(given)
        tended_to_the_end(given, GOALS)
        table.refresh()
        assert all_rows(table) == sorted(expected)
    table.maintenance.expire_snapshots(EVER)
    table.refresh()
    table.maintenance.remove_orphan_files(EVER, dry_run=False, allow_recent=True)
    assert all_rows(table) == sorted(expected)
    assert {name: digest(table, name) for name in tags} == tags
    assert all_there(table) == all_named(table)
    assert not table.maintenance.remove_orphan_files(EVER, allow_recent=True).files
    findings = [finding for group in examine_table(table, whole=True) for finding in group.findings]
    assert [each for each in findings if each.result is Result.FAILED] == []
