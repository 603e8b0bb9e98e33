"""Side-by-side timing: ours and a peer's, in one process, in turns, reported as a ratio.

A benchmark is a file ``bench_<what>.py`` that calls ``compare`` for each workload and ends in

    if __name__ == "__main__":
        main(run)

Run it with ``python benchmarks/bench_<what>.py``. It exits with 1 when a workload misses the factor it must reach.
Absolute times mean little on a busy machine; the result is the median of ratios of neighbouring runs.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import icefield
from measuring import Cost, measured


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one comparison. ``ratio`` is how many times as fast ours is; ``floor`` is the least ratio.

    ``costs`` are the costs of our runs.
    """

    name: str
    ours: float
    theirs: float
    ratio: float
    floor: float | None
    costs: list[Cost]

    @property
    def passed(self) -> bool:
        return self.floor is None or self.ratio >= self.floor


_results: list[Result] = []


def cold(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work with nothing decoded beforehand."""

    def timed() -> Any:
        icefield.clear_caches()
        return work()

    return timed


def compare(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    runs: int = 5,
    floor: float | None = None,
    rows: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    collecting: bool = False,
) -> Result:
    """Time two callables in turns and print medians in milliseconds, the ratio, and PASS or FAIL against ``floor``.

    Both are called once beforehand. ``rows`` adds million rows a second; ``clock`` may be ``time.process_time``.
    Garbage is collected between the runs. During the runs it is collected only when ``collecting``, as by default in
    Python: code that makes many objects then pays for that as well.
    """
    ours()
    theirs()
    mine: list[Cost] = []
    peers: list[Cost] = []
    for turn in range(runs):
        # The second callable finds warmer caches, so they take turns at being second.
        for timed, into in ((ours, mine), (theirs, peers))[:: 1 if turn % 2 == 0 else -1]:
            into.append(measured(timed, collecting=collecting))
    result = _compared(name, mine, peers, "cpu" if clock is time.process_time else "wall", floor)
    _print(result, rows)
    return result


def compare_clocks(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    runs: int,
    floor: float,
    rows: int | None = None,
) -> None:
    """Time two long callables in turns by CPU time, which must reach ``floor``, and by elapsed time.

    CPU time is of all threads of the process: other processes change it little. Nothing is called beforehand.
    """
    pairs: list[tuple[Cost, Cost]] = []
    for turn in range(runs):
        timed = [(ours, 0), (theirs, 1)][:: 1 if turn % 2 == 0 else -1]
        found = {place: measured(work) for work, place in timed}
        pairs.append((found[0], found[1]))
    for what, clock, least in (("CPU", "cpu", floor), ("elapsed", "wall", None)):
        mine, peers = [one for one, _ in pairs], [one for _, one in pairs]
        _print(_compared(f"{name}: {what}", mine, peers, clock, least), rows)


def _compared(name: str, mine: list[Cost], peers: list[Cost], clock: str, floor: float | None) -> Result:
    own, other = ([getattr(cost, clock) for cost in costs] for costs in (mine, peers))
    ratio = statistics.median(peer / one for one, peer in zip(own, other, strict=True))
    result = Result(name, statistics.median(own), statistics.median(other), ratio, floor, mine)
    _results.append(result)
    return result


def main(run: Callable[[], Any]) -> None:
    """Run a benchmark and exit with 1 if any of its comparisons missed its floor."""
    print(f"{'workload':<36} {'ours ms':>10} {'peer ms':>10} {'ratio':>7}  {'floor':>5}")
    run()
    if path := os.environ.get("ICEFIELD_BENCHMARK_RESULTS"):  # run.py gathers them
        Path(path).write_text(json.dumps({result.name: _as_json(result) for result in _results}), "utf-8")
    failed = [result.name for result in _results if not result.passed]
    if failed:
        sys.exit(f"below the required factor: {', '.join(failed)}")


def _as_json(result: Result) -> dict[str, float]:
    costs = result.costs
    return {
        "ratio": round(result.ratio, 2),
        "cpu": round(statistics.median(cost.cpu for cost in costs), 5),
        "wall": round(statistics.median(cost.wall for cost in costs), 5),
        "memory": max(cost.memory for cost in costs),
        "requests": costs[-1].requests,
    }


def _print(result: Result, rows: int | None) -> None:
    verdict = "" if result.floor is None else f"{result.floor:>6.2f}  {'PASS' if result.passed else 'FAIL'}"
    times = f"{result.ours * 1e3:>10.2f} {result.theirs * 1e3:>10.2f}"
    speed = "" if rows is None else f"  {rows / result.ours / 1e6:7.1f} M/s, peer {rows / result.theirs / 1e6:.1f}"
    print(f"{result.name:<36} {times} {result.ratio:>7.2f} {verdict:<13}{speed}", flush=True)
