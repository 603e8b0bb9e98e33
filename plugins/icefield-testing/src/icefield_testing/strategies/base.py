"""The base of the checks: fixtures and methods that an author provides, and helpers."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, FileSystemAbility, Pointer, Proposal
from icefield.commit import change_of, creation_of, current_of
from icefield.errors import CommitStateUnknown, FileMissing, IcefieldError
from icefield.metadata import SetProperties, TableMetadata, decode_metadata, new_table_metadata
from icefield.schema import Schema
from icefield.types import LongType, NestedField

from icefield_testing.base import Suite
from icefield_testing.fault_model import CallFaults
from icefield_testing.faults import Crash, FaultyFileSystem
from icefield_testing.service_faults import RequestFaults

Outcome = Committed | Conflict | BaseException


class FaultPlace(NamedTuple):
    """Requests of a strategy that faults may strike."""

    name: str
    faults: RequestFaults
    build: Callable[[str], CommitStrategy]
    """Builds the strategy for a location so that the faults strike its requests."""
    others: RequestFaults | None = None
    """Further requests of the same strategy, which stand still when it is held up."""


class StrategyChecks(Suite):
    """Fixtures and methods that an author provides, and helpers."""

    max_wait_seconds: ClassVar[float] = 60.0
    """How long a commit may take to get through when others commit as well."""

    hold_seconds: ClassVar[float] = 2.0
    """How long a writer is held up for another to commit, which may have to wait for a lock until the first goes on."""

    lease_seconds: ClassVar[float | None] = None
    """After how long another writer takes over a lock whose holder stands still.

    None if no writer keeps another out; infinite if a lock lasts as long as its holder. A writer is held up for longer,
    unless this is more than ``max_wait_seconds``.
    """

    credentials: ClassVar[Sequence[Mapping[str, str]]] = ()
    """The ways to give credentials to the strategy, each as the properties that belong together, such as
    ``{"lock.user": "u", "lock.password": "{secret}"}``: a secret takes the place of ``{secret}``."""

    time_out_properties: ClassVar[Mapping[str, str]] = {}
    """Properties with which the strategy waits a second or so for the answer of its service, and repeats little.
    Without them, a service that never answers is not tried."""

    silence_seconds: ClassVar[float] = 15.0
    """The longest time that a call may take, with ``time_out_properties``, when the service never answers."""

    one_process: ClassVar[bool] = False
    """Whether the tables live in this process, such as in memory: then nothing is tried with other processes."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        """A file system that the strategy is safe on."""
        raise pytest.UsageError("give a fixture `file_system` that the strategy is safe on")

    @pytest.fixture
    def location(self) -> str:
        """A location for one table, different for each test."""
        raise pytest.UsageError("give a fixture `location` that returns a fresh table location")

    @pytest.fixture
    def service(self, file_system: FileSystem, location: str) -> RequestFaults | None:
        """An object that can lose the strategy's requests to a service, such as a ``LossyProxy``.

        It is None for a strategy that uses only its file system.
        """
        if not self.strategy(file_system, location).needs:
            raise pytest.UsageError(
                "the strategy needs nothing of its file system, so it asks a service: give a fixture `service` that "
                "returns a LossyProxy or LossyCalls, and a method `strategy_through`; or a fixture that returns None"
            )
        return None

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        """Build the strategy as another process would."""
        raise pytest.UsageError("give a method `strategy(file_system, location)` that builds the strategy")

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        """Build the strategy so that its requests go through ``service``. By default all do."""
        return self.strategy(file_system, location)

    def strategy_in_haste(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        """Build the strategy through ``service`` with ``time_out_properties``. By default they are put among those of
        ``strategy_through(...)``."""
        made = self.strategy_through(service, file_system, location)
        made.properties.update(self.time_out_properties)
        return made

    def strategy_with(self, properties: Mapping[str, str], file_system: FileSystem, location: str) -> CommitStrategy:
        """Build the strategy with further properties. By default they are put among those of ``strategy(...)``."""
        made = self.strategy(file_system, location)
        made.properties.update(properties)
        return made

    def in_another_process(self) -> None:
        """Called first in a forked process: drop connections that the parent has opened, and open new ones."""

    # -- helpers

    def new_table(self, location: str) -> Proposal:
        """The proposal of a new table."""
        schema = Schema(NestedField(1, "id", LongType(), required=True))
        return creation_of(new_table_metadata(schema, location=location, properties={}))

    def create(self, file_system: FileSystem, location: str) -> Pointer:
        """Create the table."""
        return self.committed(self.strategy(file_system, location).commit(None, self.new_table(location)))

    def changed(self, file_system: FileSystem, base: Pointer, key: str, value: str) -> Proposal:
        """The proposal to set one more property at ``base``."""
        return change_of(self.read(file_system, base), [SetProperties({key: value})])

    def commit_until_done(self, strategy: CommitStrategy, file_system: FileSystem, key: str) -> Pointer:
        """Set a property at the current version, and retry until this succeeds."""
        deadline = time.monotonic() + self.max_wait_seconds
        while True:
            assert time.monotonic() < deadline, "a commit does not get through, on whatever base"
            base = self.pointer(strategy)
            assert base is not None
            try:
                outcome = strategy.commit(base, self.changed(file_system, base, key, "1"))
            except FileNotFoundError:  # the base was replaced and deleted between two steps
                continue
            if isinstance(outcome, Committed):
                return outcome.pointer

    def committed(self, outcome: Committed | Conflict) -> Pointer:
        """The pointer of a commit that must have succeeded."""
        assert isinstance(outcome, Committed), f"expected Committed, got {outcome}"
        return outcome.pointer

    def pointer(self, strategy: CommitStrategy) -> Pointer | None:
        """The pointer that is current."""
        current = current_of(strategy)
        return None if current is None else current.pointer

    def read(self, file_system: FileSystem, pointer: Pointer) -> TableMetadata:
        """The metadata that a pointer names."""
        return decode_metadata(file_system.open_input(pointer.location).read(), pointer.location)

    def files(self, file_system: FileSystem, location: str) -> set[str]:
        """Every file of the table, where the store can list."""
        if FileSystemAbility.LIST not in file_system.abilities:
            return set()
        return {info.location for info in file_system.list_files(location)}

    @property
    def has_endless_locks(self) -> bool:
        """Whether a lock lasts longer than a check can wait."""
        return self.lease_seconds is not None and self.lease_seconds > self.max_wait_seconds

    def fault_places(self, file_system: FileSystem, service: RequestFaults | None) -> Iterator[FaultPlace]:
        """The calls of the file system, and the requests to the service where there is one."""
        calls = CallFaults()
        yield FaultPlace("file-system", calls, lambda at: self.strategy(FaultyFileSystem(file_system, calls), at))
        if service is not None:
            yield FaultPlace("service", service, lambda at: self.strategy_through(service, file_system, at))

    def check_none_is_lost(self, acknowledged: Collection[str], found: Collection[str]) -> None:
        """Check that a table has each acknowledged update, and no other."""
        lost = sorted(set(acknowledged) - set(found))
        some = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
        assert not lost, f"{len(lost)} of {len(acknowledged)} updates are lost: {some}"
        others = sorted(set(found) - set(acknowledged))
        assert not others, f"{len(others)} updates are there that no commit acknowledged: {', '.join(others[:5])}"

    def properties_now(self, file_system: FileSystem, location: str, story: object) -> set[str]:
        """The names of the properties of the table."""
        current = self.pointer(self.strategy(file_system, location))
        assert current is not None, f"the table is gone: {story}"
        return set(self.read(file_system, current).properties)

    def outcome(self, strategy: CommitStrategy, base: Pointer | None, proposal: Proposal) -> Outcome:
        """The result or the error of a commit."""
        try:
            return strategy.commit(base, proposal)
        except (Crash, Exception) as error:
            return error

    def check_outcome(self, file_system: FileSystem, location: str, outcome: Outcome, story: object) -> None:
        """Check that the reported outcome of a commit is true."""
        current = self.pointer(self.strategy(file_system, location))
        assert current is not None, f"the table is gone: {story}"
        happened = "mine" in self.read(file_system, current).properties
        if isinstance(outcome, Committed):
            assert happened, f"said to be committed and is not: {story}"
        elif isinstance(outcome, CommitStateUnknown):
            return
        else:
            assert isinstance(outcome, Conflict | IcefieldError), f"not one of Icefield's errors: {outcome!r}"
            assert not happened, f"said to have failed and is committed: {outcome!r} after {story}"

    def check_late(
        self, file_system: FileSystem, location: str, outcome: Outcome, creates: bool, story: object
    ) -> None:
        """Check the reported outcome of a commit after a request of it came late."""
        try:
            current = self.pointer(self.strategy(file_system, location))
            found = None if current is None else self.read(file_system, current)
        except FileMissing as error:
            raise AssertionError(f"its metadata file was deleted, and the pointer names it: {story}") from error
        happened = found is not None and (creates or "mine" in found.properties)
        assert creates or found is not None, f"the table is gone: {story}"
        if isinstance(outcome, Committed):
            assert happened, f"said to be committed and is not: {story}"
        elif not isinstance(outcome, CommitStateUnknown):
            assert not happened, f"said to have failed, and is committed later: {outcome!r}, {story}"

    def copy(self, file_system: FileSystem) -> FileSystem:
        """A copy as another process would make it."""
        made: FileSystem = pickle.loads(pickle.dumps(file_system))
        return made

    def needs_processes(self) -> None:
        """Skip a check of several processes if the tables are in one process, or if processes cannot be forked."""
        if self.one_process:
            pytest.skip("the tables live in one process (`one_process`)")
        if not hasattr(os, "fork"):
            pytest.skip("this system cannot fork")
