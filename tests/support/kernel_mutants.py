"""Mutants of packages of the kernel: ``mutants.py [PACKAGE ...] [--count N] [--seed N]``.

A mutant is a copy of the code with one small fault: another comparison, another number, a statement that is left out.
The fast unit tests of its package should fail. Each mutant runs in a fork of a process that collected the tests. The
fork replaces the code of one function, and runs the tests that call this function, quickest first, until one fails.
Mutants that no test kills are printed. The exit status is 1 if fewer than ``--least`` percent are killed.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import mutations
import pytest
from hypothesis import Phase, settings
from repository import ROOT

KERNEL = ROOT / "framework/src/icefield"
PACKAGES = ("types", "schema", "partitioning", "expressions", "metadata", "manifest", "puffin", "commit")
"""The packages with unit tests that are quick and complete."""

ELSEWHERE = {
    "manifest": ("scan/test_planning.py",),
    "partitioning": ("writing/test_partitioner.py",),
    "puffin": ("maintenance/test_table_stats.py",),
    "types": ("writing/test_conforming.py", "scan/test_nested_projection.py"),
}
"""Tests of a package outside its folder of ``tests/unit``."""

FAST = "not (server or peer or slow or spark)"
KILLED, LATE, SURVIVED, UNDECIDED, UNCALLED = (
    "killed",
    "killed by the time limit",
    "survived",
    "undecided",
    "not called",
)
_EXITS = {0: SURVIVED, 1: KILLED, 3: UNDECIDED}

Function = tuple[str, str]
"""A function of a module or class: its file, and its qualified name."""


@dataclass
class Recording:
    """The tests that call each function, and the duration of each test in seconds."""

    callers: dict[Function, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """Tests that fail without a mutant, for example because the profiler makes them slow. They judge no mutant."""


class Mutants:
    """A pytest plugin that runs tests for each mutant in place of running each test once."""

    def __init__(self, packages: list[str], count: int, seed: int, limit: float, jobs: int) -> None:
        self.packages, self.count, self.seed, self.limit, self.jobs = packages, count, seed, limit, jobs
        self.outcomes: Counter[str] = Counter()
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            _without_shrinking(item)
        recording = self._record(session)
        functions = _functions()
        drawn = self._draw(functions)
        print(f"{len(session.items)} tests, {len(drawn)} mutants", flush=True)
        self._run(session, drawn, functions, recording)
        return True

    def _record(self, session: pytest.Session) -> Recording:
        """Run each test once, in a fork, and note the functions that it calls."""
        with tempfile.NamedTemporaryFile() as file:
            process = os.fork()
            if not process:
                try:
                    _silence()
                    Path(file.name).write_bytes(pickle.dumps(self._recorded(session)))
                finally:
                    os._exit(0)
            os.waitpid(process, 0)
            recording: Recording = pickle.loads(Path(file.name).read_bytes())
        for name in recording.failed:
            print(f"left out, because it fails without a mutant: {name}", flush=True)
        return recording

    def _recorded(self, session: pytest.Session) -> Recording:
        recording, called, prefix = Recording(), set[CodeType](), f"{KERNEL}{os.sep}"

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                called.add(frame.f_code)

        threading.setprofile(note)
        sys.setprofile(note)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            called.clear()
            start = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            recording.seconds[item.nodeid] = time.process_time() - start
            if self.failed:
                self.failed = False
                recording.failed.append(item.nodeid)
                continue
            for code in list(called):
                if code.co_filename.startswith(prefix):
                    name = code.co_qualname.partition(".<locals>")[0]
                    recording.callers.setdefault((code.co_filename, name), set()).add(item.nodeid)
        return recording

    def _draw(self, functions: dict[Function, list[FunctionType]]) -> list[mutations.Mutation]:
        """Random mutants of functions of the packages."""
        paths = [path for package in self.packages for path in sorted((KERNEL / package).rglob("*.py"))]
        found = [each for path in paths for each in mutations.of_module(path) if each.function in functions]
        return random.Random(self.seed).sample(found, min(self.count, len(found)))

    def _run(
        self,
        session: pytest.Session,
        drawn: list[mutations.Mutation],
        functions: dict[Function, list[FunctionType]],
        recording: Recording,
    ) -> None:
        waiting, running = list(reversed(drawn)), dict[int, tuple[mutations.Mutation, float]]()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutation = waiting.pop()
                callers = recording.callers.get(mutation.function, set())
                items = sorted(
                    (item for item in session.items if item.nodeid in callers),
                    key=lambda item: recording.seconds[item.nodeid],
                )
                if not items:
                    self._tell(UNCALLED, mutation)
                    continue
                changed = mutation.code()  # not in the fork, where an error would count as a killed mutant
                process = os.fork()
                if not process:
                    self._judge(changed, functions[mutation.function], items)
                running[process] = (mutation, time.monotonic() + 10 * self.limit)
            for process, (mutation, deadline) in list(running.items()):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    code = os.waitstatus_to_exitcode(status)
                    self._tell(LATE if code < 0 else _EXITS.get(code, KILLED), mutation)
                    del running[process]
                elif time.monotonic() > deadline:
                    os.kill(process, 9)
            time.sleep(0.01)

    def _judge(self, changed: CodeType, targets: list[FunctionType], items: list[pytest.Item]) -> None:
        """Run tests with a mutant until one fails, in a fork, which ends here."""
        code = 1
        try:
            _silence()
            # A mutant may loop, or fill the memory.
            resource.setrlimit(resource.RLIMIT_CPU, (int(2 * self.limit), int(2 * self.limit) + 1))
            start = time.process_time()
            for target in targets:
                target.__code__ = changed
            for item, following in zip(items, [*items[1:], None], strict=True):
                if time.process_time() - start > self.limit:
                    os._exit(3)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os._exit(1)
            code = 0
        finally:
            os._exit(code)

    def _tell(self, outcome: str, mutation: mutations.Mutation) -> None:
        self.outcomes[outcome] += 1
        if outcome not in (KILLED, LATE):
            print(f"{outcome}: {mutation}", flush=True)


def _functions() -> dict[Function, list[FunctionType]]:
    """The functions of the kernel that exist now, by file and name."""
    gc.unfreeze()  # frozen objects are not listed
    found: dict[Function, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(f"{KERNEL}{os.sep}"):
            found.setdefault((one.__code__.co_filename, one.__code__.co_qualname), []).append(one)
    gc.freeze()
    return found


def _without_shrinking(item: pytest.Item) -> None:
    """Let a property test end at the first failing example, and draw the same examples for each mutant."""
    test: Any = getattr(item, "function", None)
    if getattr(test, "is_hypothesis_test", False):
        usual: settings = test._hypothesis_internal_use_settings
        phases = (Phase.explicit, Phase.generate)
        test._hypothesis_internal_use_settings = settings(usual, phases=phases, database=None, derandomize=True)


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _tests_of(packages: list[str]) -> Iterator[str]:
    for package in packages:
        for name in (package, *ELSEWHERE.get(package, ())):
            yield f"{ROOT}/tests/unit/{name}"


def main() -> int:
    """Run mutants, and return 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help=f"packages of the kernel; by default {', '.join(PACKAGES)}")
    parser.add_argument("--count", type=int, default=200, help="the number of mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws the mutants")
    parser.add_argument("--limit", type=float, default=20, help="seconds of CPU for a mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="forks at a time")
    parser.add_argument("--least", type=float, default=90, help="percent that must be killed")
    given = parser.parse_args()
    packages = given.packages or list(PACKAGES)
    plugin = Mutants(packages, given.count, given.seed, given.limit, given.jobs)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        options = ["-q", "-s", "--no-header", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", FAST]
        status = pytest.main([*options, *_tests_of(packages)], plugins=[plugin])
    if not plugin.outcomes:
        return int(status) or 1
    total = plugin.outcomes.total() - plugin.outcomes[UNDECIDED]
    killed = plugin.outcomes[KILLED] + plugin.outcomes[LATE]
    print(", ".join(f"{count} {outcome}" for outcome, count in plugin.outcomes.most_common()))
    print(f"{killed} of {total} killed: {100 * killed / max(1, total):.1f} %")
    return int(100 * killed < given.least * total)


if __name__ == "__main__":
    sys.exit(main())
