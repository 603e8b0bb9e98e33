"""The kit rejects strategies that are broken on purpose: each of them loses updates or reports a wrong outcome."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, Pointer, Proposal, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield.errors import CommitStateUnknown, FileExists, FileMissing, NoSuchTable, StorageError
from icefield.metadata import TableMetadata
from icefield.toolkit import delete_quietly
from icefield_testing import CommitStrategySuite, LossyCalls, LossyProxy, RequestFaults
from kit_checks import failures, rejection
from pointer_service import ServiceStrategy, served


class ChecksThenWrites(CreateStrategy):
    """Checks whether the version is taken, and then writes it."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.stat(target)
        except FileMissing:
            time.sleep(0.001)
            self.file_system.put(target, data, PutMode.OVERWRITE)
            return self.pointer_to(target)
        return None


class RetriesBlindly(CreateStrategy):
    """Treats a lost reply as a failure, and its own file as another writer's."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        for _ in range(3):
            try:
                self.file_system.put(target, data, PutMode.CREATE)
            except FileExists:
                return None
            except StorageError:
                continue
            return self.pointer_to(target)
        return None


class CleansUpAfterUnknown(RenameStrategy):
    """Deletes its metadata file when it does not know whether the commit happened."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            return super().publish(target, data)
        except CommitStateUnknown:
            delete_quietly(self.file_system, target)
            return None


class TakesLostForDone(CreateStrategy):
    """Treats a lost reply as a success."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.put(target, data, PutMode.CREATE)
        except FileExists:
            return None
        except StorageError:
            return self.pointer_to(target)
        return self.pointer_to(target)


class IgnoresItsBase(CreateStrategy):
    """Commits on the current version instead of the base."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        return super().commit(self.load() if base is not None else None, proposal)


class LeavesTheLosersFile(RenameStrategy):
    """Leaves the temporary file of an attempt that lost."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        temporary = f"{self.folder}/{uuid4()}.metadata.json"
        self.file_system.put(temporary, data, PutMode.OVERWRITE)
        try:
            self.file_system.rename(temporary, target)
        except FileExists:
            return None
        return self.pointer_to(target)


class TrustsTheHint(CreateStrategy):
    """Reads the version hint, and does not look for later versions."""

    def load(self) -> Pointer | None:
        version = self.hint()
        return None if version is None else Pointer(f"{self.folder}/v{version}.metadata.json", version)


class RevivesDroppedTables(CreateStrategy):
    """Frees the names of a dropped table, and does not check whether its base still exists."""

    def drop(self) -> None:
        if self.load() is None:
            raise NoSuchTable("no table")
        self.file_system.delete_many([location for _, location in self.listed()])

    def confirmed(self, base: Pointer, metadata: TableMetadata) -> Pointer | None:
        return base


class CallsALostReplyAFailure(CreateStrategy):
    """Treats every error of the atomic step as a failure."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.put(target, data, PutMode.CREATE)
        except FileExists:
            return None
        except Exception as error:
            raise StorageError("the commit failed", location=target) from error
        return self.pointer_to(target)


class DropsBlindly(CreateStrategy):
    """Drops a table, and hides errors of the file system."""

    def drop(self) -> None:
        with suppress(StorageError):
            super().drop()


class CallsALostDropAFailure(ServiceStrategy):
    """Reports that a table was not dropped when the drop was not answered."""

    def drop(self) -> None:
        try:
            self.ask("set", new=None)
        except (ConnectionError, TimeoutError) as lost:
            raise StorageError("the table was not dropped") from lost


class LocksThreads(CreateStrategy):
    """Checks and writes under a lock that other processes do not share."""

    lock = threading.Lock()

    def publish(self, target: str, data: bytes) -> Pointer | None:
        with self.lock:
            try:
                self.file_system.stat(target)
            except FileMissing:
                self.file_system.put(target, data, PutMode.OVERWRITE)
                return self.pointer_to(target)
            return None


class WaitsForItself(RenameStrategy):
    """Acquires its lock a second time when two writers commit at once."""

    lock = threading.Lock()

    def publish(self, target: str, data: bytes) -> Pointer | None:
        with self.lock:
            published = super().publish(target, data)
            if published is None:
                self.lock.acquire()
            return published


class TakesALostReplyForAConflict(ServiceStrategy):
    """Repeats a swap without a reply, and takes its own first swap for the commit of another writer."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        for _ in range(3):
            with suppress(OSError):
                return bool(self.ask("swap", old=old, new=new))
        raise StorageError("the service does not answer")


class TakesALostReplyForDone(ServiceStrategy):
    """Takes no reply for yes."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError:
            return True


class CreatesBlindly(ServiceStrategy):
    """Repeats the creation of a table after a lost reply, and then reports that the table exists already."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if old is not None:
            return super().swap_pointer(old, new, proposal)
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError:
            return bool(self.ask("swap", old=old, new=new))


class DeletesWhatIsUnknown(ServiceStrategy):
    """Deletes its file when it does not know whether it was committed."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        try:
            return super().commit(base, proposal)
        except CommitStateUnknown as error:
            delete_quietly(self.file_system, str(error.data["location"]))
            raise


class LooksThenSets(ServiceStrategy):
    """Compares and sets the pointer under a lock that other processes do not share."""

    lock = threading.Lock()

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with self.lock:
            if self.ask("get") != old:
                return False
            self.ask("set", new=new)
            return True


LOST_REPLY = "test_a_lost_reply_of_the_service_is_settled_or_said_to_be_unknown"

# The test that rejects each class, and the part of the note that names the cause.
BROKEN: dict[type[CommitStrategy], tuple[str, str]] = {
    ChecksThenWrites: ("test_one_of_many_creators_wins", "creation looks first and writes then"),
    RetriesBlindly: ("test_a_lost_reply_is_settled_or_said_to_be_unknown", "reported as a conflict"),
    CleansUpAfterUnknown: ("test_a_connection_that_stays_down_deletes_nothing_published", "was never answered"),
    TakesLostForDone: ("test_a_lost_reply_is_settled_or_said_to_be_unknown", "a success that was none"),
    IgnoresItsBase: ("test_an_old_base_is_a_conflict_and_leaves_nothing", "does not check its base"),
    LeavesTheLosersFile: ("test_an_old_base_is_a_conflict_and_leaves_nothing", "leaves the loser's file behind"),
    TrustsTheHint: ("test_a_crash_at_any_step_leaves_the_old_or_the_new_version", "dies at that step"),
    RevivesDroppedTables: ("test_a_commit_on_a_dropped_table_does_not_revive_it", "a stalled writer"),
    LocksThreads: ("test_a_writer_that_is_held_up_overwrites_no_other_process", "A lock of threads"),
    CallsALostReplyAFailure: ("test_a_step_that_was_done_and_failed_is_not_called_a_failure", "doubles its rows"),
    DropsBlindly: ("test_a_drop_that_meets_a_fault_says_what_is_so", "said to be dropped, and the table is there"),
    CallsALostDropAFailure: ("test_a_drop_that_meets_a_fault_says_what_is_so", "and the table is gone"),
    WaitsForItself: ("test_no_update_of_many_writers_is_lost", "did not end within 3 s"),
    TakesALostReplyForAConflict: (LOST_REPLY, "is reported as a conflict"),
    TakesALostReplyForDone: (LOST_REPLY, "a success that was none"),
    CreatesBlindly: ("test_a_creation_whose_reply_was_lost_is_settled_or_said_to_be_unknown", "passes for another's"),
    DeletesWhatIsUnknown: ("test_a_service_that_stays_down_deletes_nothing_published", "delete nothing"),
    LooksThenSets: ("test_a_writer_that_is_held_up_overwrites_no_other_process", "A lock of threads"),
}


def suite(kind: type[CommitStrategy], service: LossyProxy) -> type[CommitStrategySuite]:
    class Suite(CommitStrategySuite):
        max_wait_seconds = 10.0
        check_seconds = 3.0 if kind is WaitsForItself else 120.0

        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            if issubclass(kind, ServiceStrategy):
                return kind(location, file_system, service.server[1])
            return kind(("db", "t"), location, file_system)

        def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
            assert issubclass(kind, ServiceStrategy)
            assert isinstance(service, LossyProxy)
            return kind(location, file_system, service.port)

    return Suite


@pytest.fixture
def service() -> Iterator[LossyProxy]:
    with served() as port, LossyProxy(port) as proxy:
        yield proxy


def given(kind: type[CommitStrategy], folder: Path, service: LossyProxy) -> dict[str, Callable[[str], Any]]:
    return {
        "file_system": lambda _: LocalFileSystem({"file.sync": "false"}),
        "location": lambda name: f"file://{folder}/{uuid4().hex}/{name}",
        "service": lambda _: service if issubclass(kind, ServiceStrategy) else None,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_strategy_is_rejected_with_a_note_that_names_the_cause(
    kind: type[CommitStrategy], tmp_path: Path, service: LossyProxy
) -> None:
    check, cause = BROKEN[kind]
    said = rejection(suite(kind, service), check, given(kind, tmp_path, service))
    assert cause in " ".join(said.split()), said


@pytest.mark.slow
def test_a_lock_of_threads_is_found_each_time(tmp_path: Path, service: LossyProxy) -> None:
    check = "test_a_writer_that_is_held_up_overwrites_no_other_process"
    for kind in (LocksThreads, LooksThenSets):
        for _ in range(10):
            assert rejection(suite(kind, service), check, given(kind, tmp_path, service))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CreateStrategy, RenameStrategy, ServiceStrategy], ids=lambda kind: kind.__name__)
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
