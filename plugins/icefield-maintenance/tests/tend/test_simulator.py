"""The simulator agrees with real tables, and the presets with the best schedule of a search."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
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
    assert done.rewritten_bytes == 10 * MIB
    assert done.scan_bytes == (2 * 10 + 22 * 7) * MIB


def test_maintenance_goes_on_after_the_last_commit() -> None:
    nightly = simulate([batch(6)], NIGHTLY, days=4)
    assert (nightly.rewritten_bytes, nightly.rewritten_files) == (3 * 6 * MIB, 6 + 1 + 1)
    assert simulate([batch(6)], Schedule(goals=Goals(files_per_scan=3)), days=4).rewritten_files == 4


def test_a_removed_file_leaves_a_partition_whole_or_out_of_the_file_that_it_was_merged_into() -> None:
    commits = [SimulatedCommit(hour, 0, (MIB,), 100 + hour) for hour in range(5)]
    commits.append(SimulatedCommit(5, 0, (MIB // 2,), 52, removed=(103,)))
    history = History(commits=tuple(commits), scanned_partitions=1)
    as_it_is = simulate([history], NEVER, days=0.25)
    assert (as_it_is.scan_requests, as_it_is.scan_bytes) == (1 + 2 + 3 + 4 + 5 + 5, (1 + 2 + 3 + 4 + 5 + 4.5) * MIB)
    merged = simulate([history], Schedule(goals=Goals(files_per_scan=1), every=4.5), days=0.25)
    assert merged.scan_requests == 1 + 2 + 3 + 4 + 0.5 * 5 + 0.5 * 1 + 2
    assert merged.scan_bytes == pytest.approx((1 + 2 + 3 + 4 + 5 + 4.5) * MIB, rel=1e-3)
    replaced = History(commits=(*commits[:5], SimulatedCommit(5, 0, (MIB,), 1, removed=(100, 101, 102, 103, 104))))
    assert simulate([replaced], NEVER, days=0.25).scan_requests == 1 + 2 + 3 + 4 + 5 + 1


def test_a_file_above_the_target_size_is_no_negative_debt() -> None:
    history = History(commits=(SimulatedCommit(0, 0, (700 * MIB,), 1), SimulatedCommit(0, 1, (MIB, MIB), 2)))
    assert simulate([history], NEVER, days=1).debt == 1


def test_the_target_size_of_a_history_is_that_of_its_table() -> None:
    files = tuple(SimulatedCommit(hour, 0, (60 * MIB,), 1) for hour in range(8))
    rewrites = [simulate([History(commits=files, target=each << 20)], NIGHTLY, days=1.5) for each in (64, 512)]
    assert [each.rewritten_files for each in rewrites] == [8, 8]
    goal = Schedule(goals=Goals(files_per_scan=2))
    kept, merged = (simulate([History(commits=files, target=each << 20)], goal, days=1) for each in (64, 512))
    assert (kept.rewritten_files, merged.rewritten_files > 0) == (0, True)


@pytest.mark.parametrize("stated", [-5, 0, 2**62])
def test_a_history_with_impossible_numbers_ends(stated: int) -> None:
    commits = (
        SimulatedCommit(0, 0, (max(0, stated),) * 3, max(0, stated)),
        SimulatedCommit(1, 0, (), 0, stated, stated),
        SimulatedCommit(2, 0, (), 0, 0, -stated, (stated, 5)),
    )
    for schedule in (NEVER, NIGHTLY, Schedule(goals=PRESETS["upsert-heavy"])):
        rewrites_too_much = stated > 0 and schedule.every == 1
        with pytest.raises(InvalidArgument, match="1,000,000 files") if rewrites_too_much else nullcontext():
            costs = simulate([History(commits=commits)], schedule, days=2)
            assert costs.scan_requests >= 0
            assert costs.debt >= 0
            assert costs.rewritten_bytes >= 0


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
