"""No schedule keeps scans of upsert-heavy tables cheap for half of a nightly compaction, not even with foresight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from icefield_maintenance.tend import Goals
from icefield_maintenance.tend.costs import REQUEST_BYTES
from icefield_maintenance.tend.goals import PRESETS
from icefield_maintenance.tend.histories import generated
from icefield_maintenance.tend.simulator import (
    NIGHTLY,
    History,
    Schedule,
    SimulatedCommit,
    SimulatedCosts,
    simulate,
)

HOURS = 30 * 24.0
CHEAPEST = Schedule(goals=Goals(files_per_scan=1, deleted_rows=0.05, delete_files=2))
"""The schedule with the cheapest scans that a search finds."""


@pytest.fixture(scope="module")
def history() -> History:
    return generated("upsert-heavy", 1)


@pytest.fixture(scope="module")
def nightly(history: History) -> SimulatedCosts:
    return simulate([history], NIGHTLY)


@pytest.fixture(scope="module")
def cheapest(history: History) -> SimulatedCosts:
    return simulate([history], CHEAPEST)


@pytest.fixture(scope="module")
def bounds(history: History) -> dict[float, float]:
    return {price: least(history, price) for price in (4.0, 8.0)}


def least(history: History, price: float) -> float:
    """A lower bound of the cost of scans plus ``price`` times the rewritten bytes, under any schedule with foresight.

    Each file is rewritten at its own best hours, which are found by dynamic programming over the later commits. The
    bound leaves out costs that every real schedule has: it opens no delete file, and merges of small files give one
    file for each partition.
    """
    scans = history.scans_per_day / 24
    cost = 0.0
    for commits, end in _scanned(history):
        cost += scans * REQUEST_BYTES * (end - commits[0].hour)
        alive, times = _survival(commits)
        for commit in commits:
            ticks = np.array([commit.hour, *np.arange(np.floor(commit.hour) + 1, end), end])
            share = alive[np.searchsorted(times, ticks, side="right")]
            share /= share[0] or 1.0
            cost += sum(_least_of_file(size, share, ticks, scans, price) for size in commit.sizes)
    return cost


def _least_of_file(
    size: int, share: npt.NDArray[np.float64], ticks: npt.NDArray[np.float64], scans: float, price: float
) -> float:
    best = np.zeros(len(ticks))
    for at in range(len(ticks) - 2, -1, -1):
        # Until the next rewrite, a scan reads the rows of this time, and a request for a file that is still small.
        held = scans * (size * share[at] + (REQUEST_BYTES if at == 0 else 0)) * (ticks[at + 1 :] - ticks[at])
        held[:-1] += price * size * share[at] + best[at + 1 : -1]
        best[at] = held.min()
    return float(best[0])


def _scanned(history: History) -> Iterator[tuple[list[SimulatedCommit], float]]:
    """The commits of each partition, and the hour from which on no scan reads it."""
    partitions: dict[int, list[SimulatedCommit]] = {}
    for commit in history.commits:
        partitions.setdefault(commit.partition, []).append(commit)
    order = sorted(partitions)
    for place, number in enumerate(order):
        newer = place + history.scanned_partitions
        yield partitions[number], partitions[order[newer]][0].hour if newer < len(order) else HOURS


def _survival(commits: list[SimulatedCommit]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The share of the first rows that is left after each delete, beginning with 1; and the hours of the deletes."""
    left, live, times = [1.0], 0.0, []
    for commit in commits:
        if commit.deleted_rows and live:
            gone = min(1.0, commit.deleted_rows / live)
            live *= 1 - gone
            left.append(left[-1] * (1 - gone))
            times.append(commit.hour)
        live += commit.rows
    return np.array(left), np.array(times)


def test_the_bound_is_below_every_schedule(history: History, bounds: dict[float, float]) -> None:
    for goals in (CHEAPEST.goals, PRESETS["upsert-heavy"], PRESETS["streaming"], Goals(deleted_rows=0.4)):
        costs = simulate([history], Schedule(goals=goals))
        for price, bound in bounds.items():
            assert bound < costs.scan_cost + price * costs.rewritten_bytes


def test_half_of_a_nightly_compaction_makes_scans_cost_15_percent_more_than_the_cheapest(
    bounds: dict[float, float], nightly: SimulatedCosts, cheapest: SimulatedCosts
) -> None:
    bound = bounds[8.0] - 8.0 * nightly.rewritten_bytes / 2
    assert bound > 1.15 * cheapest.scan_cost


def test_scans_within_10_percent_of_the_cheapest_take_two_thirds_of_a_nightly_compaction(
    bounds: dict[float, float], nightly: SimulatedCosts, cheapest: SimulatedCosts
) -> None:
    bound = (bounds[4.0] - 1.1 * cheapest.scan_cost) / 4.0
    assert bound > 0.64 * nightly.rewritten_bytes


def test_the_preset_pays_with_bytes_for_scans_that_a_nightly_compaction_does_not_reach(
    history: History, nightly: SimulatedCosts, cheapest: SimulatedCosts
) -> None:
    preset = simulate([history], Schedule(goals=PRESETS["upsert-heavy"]))
    assert preset.scan_cost < 1.1 * cheapest.scan_cost
    assert preset.rewritten_bytes < 1.3 * nightly.rewritten_bytes
    assert nightly.scan_cost > 1.25 * cheapest.scan_cost
