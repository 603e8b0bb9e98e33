"""The simulator agrees with real tables, and the presets with the best schedule of a search."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield.metadata import Operation
from icefield_maintenance.tend import Goals, Policy, Tending
from icefield_maintenance.tend.goals import PRESETS
from icefield_maintenance.tend.histories import generated, recorded
from icefield_maintenance.tend.simulator import (
    NEVER,
    NIGHTLY,
    History,
    Schedule,
    SimulatedCommit,
    SimulatedCosts,
    searched,
    simulate,
)
from tables import memory_catalog, new_table, rows

MIB = 1 << 20
SHARES = {"append-only": 400, "upsert-heavy": 300, "streaming": 300}


def batch(commits: int, **more: Any) -> History:
    made = tuple(SimulatedCommit(hour, 0, (MIB,), 100) for hour in range(commits))
    return History(commits=made, scanned_partitions=1, **more)


def test_without_maintenance_each_commit_makes_scans_dearer() -> None:
    costs = simulate([batch(24)], NEVER, days=1)
    assert (costs.scan_requests, costs.rewritten_bytes) == (sum(range(1, 25)), 0)
    assert costs.scan_bytes == costs.scan_requests * MIB


def test_a_rewrite_comes_when_a_partition_has_more_files_than_the_goal() -> None:
    costs = simulate([batch(6)], Schedule(goals=Goals(files_per_scan=3)), days=0.25)
    assert (costs.rewritten_bytes, costs.rewritten_files) == (4 * MIB, 4)


def test_deleted_rows_leave_a_file_when_their_share_reaches_the_goal() -> None:
    commits = (SimulatedCommit(0, 0, (10 * MIB,), 1000), SimulatedCommit(1.5, 0, (), 0, 300, 1))
    history = History(commits=commits, scanned_partitions=1)
    kept = simulate([history], Schedule(goals=Goals(deleted_rows=0.4)), days=1)
    assert (kept.rewritten_bytes, kept.scan_bytes) == (0, 24 * 10 * MIB)
    done = simulate([history], Schedule(goals=Goals(deleted_rows=0.2)), days=1)
    assert done.rewritten_bytes == 0  # nothing ticks after the last commit
    later = History(commits=(*commits, SimulatedCommit(3.5, 1, (MIB,), 100)), scanned_partitions=2)
    done = simulate([later], Schedule(goals=Goals(deleted_rows=0.2)), days=1)
    assert done.rewritten_bytes == 10 * MIB
    assert done.scan_bytes < 24 * 11 * MIB


@pytest.mark.parametrize("limit", [2, 4])
def test_the_simulator_rewrites_the_files_that_a_real_table_rewrites(limit: int) -> None:
    catalog = memory_catalog()
    table = new_table(["kind"], catalog=catalog)
    policy = Policy.from_mapping({"rules": [{"tables": "db.t", "files-per-scan": limit}]})
    tending = Tending(catalog, policy)
    commits: list[SimulatedCommit] = []
    for number in range(9):
        kinds = "ab" if number % 2 else "a"
        table.append(pa.concat_tables([rows([number], kind) for kind in kinds]))
        commits += [SimulatedCommit(number + 0.5, "ab".index(kind), (1000,), 1) for kind in kinds]
        assert all(each.outcome == "done" for each in tending.run())
    rewrites = [each.summary for each in table.refresh().snapshots() if each.operation is Operation.REPLACE]
    end = SimulatedCommit(9.5, 2, (1,), 1)  # so that the last hour ends
    history = History(commits=(*commits, end), scanned_partitions=3)
    costs = simulate([history], Schedule(goals=Goals(files_per_scan=limit)), days=1)
    assert costs.rewritten_files == sum(int(summary["deleted-data-files"]) for summary in rewrites) > 0
    # What was recorded is what was committed, without the rewrites.
    replayed = [(each.partition, len(each.sizes), each.rows) for each in recorded(table).commits]
    assert sorted(replayed) == sorted((each.partition, 1, 1) for each in commits)


def test_a_table_without_a_snapshot_has_no_history() -> None:
    with pytest.raises(InvalidArgument, match="no snapshot to replay"):
        recorded(new_table())


def test_a_generated_history_is_the_same_for_the_same_seed() -> None:
    assert generated("streaming", 5, 2) == generated("streaming", 5, 2) != generated("streaming", 6, 2)
    with pytest.raises(InvalidArgument, match="no kind"):
        generated("batch", 1)


@pytest.mark.slow
def test_presets_are_near_the_best_schedule_of_a_search() -> None:
    for kind, goals in PRESETS.items():
        found = searched([generated(kind, 1, 10)], float("inf"), days=10)
        assert found is not None
        cost = simulate([generated(kind, 1, 10)], Schedule(goals=goals), days=10).scan_cost
        assert cost <= 1.1 * found[1].scan_cost, (kind, cost / found[1].scan_cost, found[0])


def month_of(kind: str, seeds: range) -> tuple[SimulatedCosts, SimulatedCosts]:
    """The costs of tables of a kind by their preset, and by a full compaction each night."""
    preset = nightly = SimulatedCosts()
    for seed in seeds:
        history = [generated(kind, seed)]
        preset += simulate(history, Schedule(goals=PRESETS[kind]))
        nightly += simulate(history, NIGHTLY)
    return preset, nightly


CHEAPEST = {
    kind: Schedule(goals=Goals(files_per_scan=1, deleted_rows=0.05 if kind == "upsert-heavy" else None, delete_files=2))
    for kind in PRESETS
}
"""The schedules with the cheapest scans that searches find."""


def test_a_small_fleet_is_kept_for_a_month_at_little_cost() -> None:
    preset = nightly = cheapest = SimulatedCosts()
    for kind, count in SHARES.items():
        histories = [generated(kind, seed) for seed in range(count // 100)]
        own = simulate(histories, Schedule(goals=PRESETS[kind]))
        best = simulate(histories, CHEAPEST[kind])
        assert own.scan_cost <= 1.1 * best.scan_cost, kind
        preset, cheapest = preset + own, cheapest + best
        nightly += simulate(histories, NIGHTLY)
    assert preset.scan_cost <= 1.05 * cheapest.scan_cost
    assert preset.rewritten_bytes <= nightly.rewritten_bytes / 3


@pytest.mark.soak
def test_a_thousand_tables_are_kept_for_a_month_at_little_cost(record_property: Any) -> None:
    began = time.monotonic()
    costs = dict.fromkeys(SHARES, SimulatedCosts())
    nightly = SimulatedCosts()
    with ProcessPoolExecutor(2) as pool:
        parts = [(kind, range(at, at + 50)) for kind, count in SHARES.items() for at in range(0, count, 50)]
        for (kind, _), (preset, full) in zip(parts, pool.map(month_of, *zip(*parts, strict=True)), strict=True):
            costs[kind] += preset
            nightly += full
    best = 0.0
    for kind, count in SHARES.items():
        sample = [generated(kind, seed) for seed in (0, count // 2)]
        found = searched(sample, float("inf"))
        assert found is not None
        best += simulate((generated(kind, seed) for seed in range(count)), found[0]).scan_cost
    scans = sum(each.scan_cost for each in costs.values())
    rewritten = sum(each.rewritten_bytes for each in costs.values())
    record_property("scans / best", scans / best)
    record_property("rewritten / nightly", rewritten / nightly.rewritten_bytes)
    print(f"scans {scans / best:.3f} of best, rewritten {rewritten / nightly.rewritten_bytes:.3f} of nightly,")
    print(
        {kind: f"{each.scan_cost / 1e12:.1f} TB, {each.rewritten_bytes / 1e12:.2f} TB" for kind, each in costs.items()}
    )
    print(f"in {time.monotonic() - began:.0f} s")
    assert scans <= 1.1 * best
    assert rewritten <= nightly.rewritten_bytes / 2
