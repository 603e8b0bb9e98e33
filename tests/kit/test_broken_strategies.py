"""The kit rejects strategies that are broken on purpose: each of them loses updates or reports a wrong outcome."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from icefield import Plugins, Provider, hookimpl
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield_testing import CommitStrategySuite, LossyCalls, LossyProxy, RequestFaults
from kit_checks import checks, failures, rejection, words
from mutants import Mutant
from mutants.strategies import MUTANTS
from mutants.strategies.claims import FencedLease
from mutants.strategies.pointers import LooksThenSets
from mutants.strategies.versions import LocksThreads, StatesNoContract
from pointer_service import ServiceStrategy, served


def suite(kind: type, service: LossyProxy) -> type[CommitStrategySuite]:
    class Suite(CommitStrategySuite):
        max_wait_seconds = 10.0
        check_seconds = 120.0
        time_out_properties: ClassVar = {"service.seconds": "0.3"}
        silence_seconds = 5.0

        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            if issubclass(kind, ServiceStrategy):
                return kind(location, file_system, service.server[1])
            made: CommitStrategy = kind(("db", "t"), location, file_system)
            return made

        def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
            assert issubclass(kind, ServiceStrategy)
            assert isinstance(service, LossyProxy)
            return kind(location, file_system, service.port)

        def plugins(self) -> Plugins:
            plugin = types.ModuleType("mine")
            provider = Provider("mine", f"{StatesNoContract.__module__}:{StatesNoContract.__name__}")
            plugin.__dict__["icefield_commit_strategies"] = hookimpl(lambda: [provider])
            return Plugins([plugin])

    return type("Suite", (Suite,), dict(getattr(kind, "suite", {})))


@pytest.fixture
def service() -> Iterator[LossyProxy]:
    with served() as port, LossyProxy(port) as proxy:
        yield proxy


def given(kind: type, folder: Path, service: LossyProxy) -> dict[str, Callable[[str], Any]]:
    return {
        "file_system": lambda _: LocalFileSystem({"file.sync": "false"}),
        "location": lambda name: f"file://{folder}/{uuid4().hex}/{name}",
        "service": lambda _: service if issubclass(kind, ServiceStrategy) else None,
    }


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_strategy_is_rejected_with_words_that_name_the_cause(
    mutant: Mutant, tmp_path: Path, service: LossyProxy
) -> None:
    kind = mutant.plugin
    said = words(lambda: rejection(suite(kind, service), mutant.check, given(kind, tmp_path, service)), mutant.cause)
    assert mutant.cause in said, said


def test_every_check_rejects_a_broken_strategy() -> None:
    assert {name for name, _ in checks(CommitStrategySuite)} == {mutant.check for mutant in MUTANTS}


@pytest.mark.slow
def test_a_lock_of_threads_is_found_each_time(tmp_path: Path, service: LossyProxy) -> None:
    check = "test_a_writer_that_is_held_up_overwrites_no_other_process"
    for kind in (LocksThreads, LooksThenSets):
        for _ in range(10):
            assert rejection(suite(kind, service), check, given(kind, tmp_path, service))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [CreateStrategy, RenameStrategy, ServiceStrategy, FencedLease], ids=lambda kind: kind.__name__
)
def test_a_right_strategy_passes_every_check(kind: type[CommitStrategy], tmp_path: Path, service: LossyProxy) -> None:
    assert failures(suite(kind, service), given(kind, tmp_path, service)) == []


def test_a_strategy_over_a_service_without_one_that_loses_replies_is_a_wrong_use_of_the_suite(tmp_path: Path) -> None:
    class Suite(CommitStrategySuite):
        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            return ServiceStrategy(location, file_system, 1)

    with pytest.raises(pytest.UsageError, match="LossyProxy"):
        inspect.unwrap(CommitStrategySuite.service)(Suite(), LocalFileSystem(), f"file://{tmp_path}")


def test_calls_of_a_client_in_this_process_lose_requests_and_replies() -> None:
    done: list[int] = []
    faults = LossyCalls(lambda: TimeoutError("no reply"))
    call = faults.wrap(done.append)
    faults.arm({0: "lose-request", 1: "lose-reply"}.get)
    for number in (1, 2):
        with pytest.raises(TimeoutError, match="no reply"):
            call(number)
    call(3)
    assert (done, faults.count) == ([2, 3], 3)
    faults.disarm()
    faults.arm({3: "lose-request"}.get)
    call(4)
    assert faults.count == 1
