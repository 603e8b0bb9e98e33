"""Compare the CPU time of common work with the last release's code, on this machine, in one run: ``make bench-check``.

Each workload runs at a size n and at 2n, with both codes in turns, each in processes of its own. The check fails

- if the work at 2n takes 25 % more CPU time than with the code of the last release,
- if 2n takes more than three times the CPU time of n: linear work takes twice, quadratic work four times as long.

The least times of all rounds are compared. The median of the rounds must exceed the first limit, too: on a machine
whose speed changes, the least time of one code may come from a fast moment. A workload that exceeds a limit is run
again, up to three times, so that a busy machine is not taken for a slow workload. A workload that the last release
cannot run is only held against the second limit.

    python benchmarks/check.py [WORKLOAD ...] [--base COMMIT] [--rounds 2] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from run import HERE, HISTORY, machine, releases

ROOT = HERE.parent
OUTPUT = ROOT / "build" / "bench-check.json"
MOST_MORE = 1.25
MOST_GROWTH = 3.0
TIMES_AGAIN = 3
LEAST_SECONDS = 0.02
"""The difference of CPU time below which a workload never fails: scheduling and caches make as much."""

Costs = dict[str, list[list[dict[str, float]]]]
"""By workload: the costs of its runs at n, and those at 2n."""


def code_of(commit: str, folder: Path) -> str:
    """Write the code of a commit into a folder. Return the search path of modules that leads to it."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, "framework", "plugins"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], input=archive, cwd=folder, check=True)
    return os.pathsep.join(map(str, [*folder.glob("framework/src"), *sorted(folder.glob("plugins/*/src"))]))


def released() -> str:
    """The commit that wrote the results of the last release."""
    newest = HISTORY / releases()[-1].name

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    said = git("log", "-1", "--format=%H", "--diff-filter=A", "--", str(newest))
    # The first commit of a shallow clone seems to add all files.
    if not said or git("rev-parse", "--is-shallow-repository") == "true":
        sys.exit(f"the history has no commit that adds {newest}: fetch it whole, or name a commit with --base")
    return said


def measure(names: Sequence[str], folder: Path, path: str) -> dict[str, list[dict[str, float]] | None]:
    """Run each workload once at n and at 2n, in a process with the code of ``path``; None for one that fails."""
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, str(HERE / "checked_work.py"), str(folder), *names]
    said = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, list[dict[str, float]] | None] = json.loads(said.splitlines()[-1])
    return found


def measure_all(names: Sequence[str], folder: Path, paths: Sequence[str], rounds: int, into: Sequence[Costs]) -> None:
    """Measure all codes in turns, and add the costs."""
    for number in range(rounds):
        for side in (0, 1)[:: 1 if number % 2 == 0 else -1]:
            for name, costs in measure(names, folder, paths[side]).items():
                found = into[side].setdefault(name, [[], []])
                for place, cost in enumerate(costs or ()):
                    found[place].append(cost)


def least(costs: Costs, name: str, place: int) -> float | None:
    """The least CPU time of a workload at n, or at 2n; None if it never ran."""
    return min((cost["cpu"] for cost in costs.get(name, ((), ()))[place]), default=None)


def in_turns(ours: Costs, base: Costs, name: str) -> float:
    """The median over all rounds of our CPU time at 2n, as a multiple of the base's in the same round."""
    pairs = zip(ours[name][1], base[name][1], strict=False)
    return median(one["cpu"] / other["cpu"] for one, other in pairs)


def failures(name: str, ours: Costs, base: Costs) -> list[str]:
    """The limits that a workload exceeds."""
    once, twice, before = least(ours, name, 0), least(ours, name, 1), least(base, name, 1)
    if once is None or twice is None:
        return ["it does not run"]
    found = []
    is_slower = before is not None and twice > MOST_MORE * before and twice - before > LEAST_SECONDS
    if is_slower and in_turns(ours, base, name) > MOST_MORE:
        found.append(f"{twice / before - 1:.0%} more CPU than the last release")
    if twice > MOST_GROWTH * once and twice - 2 * once > LEAST_SECONDS:
        found.append(f"{twice / once:.1f} times the CPU for twice the work")
    return found


def measure_suspects(names: Sequence[str], ours: Costs, base: Costs, again: Callable[[list[str]], None]) -> None:
    """Measure the workloads that exceed a limit again, until none does, at most ``TIMES_AGAIN`` times."""
    for _ in range(TIMES_AGAIN):
        suspects = [name for name in names if failures(name, ours, base)]
        if not suspects:
            return
        print(f"again: {', '.join(suspects)}", flush=True)
        again(suspects)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help="default: all")
    parser.add_argument("--base", help="the commit to compare with; default: the last release")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the file of costs; default: %(default)s")
    given = parser.parse_args()
    base = given.base or released()
    work = Path(tempfile.mkdtemp(prefix="icefield-bench-check-"))
    try:
        paths = [os.pathsep.join(map(str, [ROOT / "framework" / "src", *sorted(ROOT.glob("plugins/*/src"))]))]
        paths.append(code_of(base, work / "base"))
        ours, before = both = Costs(), Costs()

        def measure_both(names: Sequence[str]) -> None:
            measure_all(names, work / "tables", paths, given.rounds, both)

        measure_both(given.names)
        measure_suspects(list(ours), ours, before, measure_both)
    finally:
        shutil.rmtree(work)
    print(f"{'workload':<24}{'release s':>10}{'now s':>8}{'change':>8}{'2n / n':>8}{'MiB':>6}{'requests':>10}")
    failed = 0
    for name in ours:
        wrong = failures(name, ours, before)
        failed += bool(wrong)
        print(f"{name:<24}{_cells(name, ours, before)}  {'; '.join(wrong) or 'ok'}")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), "base": base, "released": before, "now": ours}
    given.output.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return 1 if failed else 0


def _cells(name: str, ours: Costs, base: Costs) -> str:
    before, once, twice = least(base, name, 1), least(ours, name, 0), least(ours, name, 1)
    if once is None or twice is None:
        return ""
    last = ours[name][1][-1]
    change = "      -       " if before is None else f"{before:>10.3f}"
    now = f"{twice:>8.3f}" + (f"{'-':>8}" if before is None else f"{twice / before - 1:>+8.0%}")
    return f"{change:>10}{now}{twice / once:>8.1f}{int(last['memory']):>6}{int(last['requests']):>10}"


if __name__ == "__main__":
    sys.exit(main())
