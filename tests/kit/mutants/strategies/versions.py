"""Strategies of tables on a file system that are broken on purpose."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

from icefield.abc import Committed, Conflict, Pointer, Proposal, PutMode
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield.errors import CommitStateUnknown, FileExists, FileMissing, StorageError
from icefield.metadata import encode_metadata
from icefield.toolkit import delete_quietly, read_whole

from mutants import Mutant, of


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

    suite: ClassVar[dict[str, Any]] = {"max_wait_seconds": 1.0}

    def load(self) -> Pointer | None:
        version = self.hint()
        return None if version is None else Pointer(f"{self.folder}/v{version}.metadata.json", version)


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


class BelievesAMissingFile(CreateStrategy):
    """Reads back after an error, and calls the commit a failure if its file is not there."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            return super().publish(target, data)
        except CommitStateUnknown as unknown:
            with suppress(FileMissing):
                self.file_system.stat(target)
                raise
            raise StorageError("the commit failed", location=target) from unknown


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

    suite: ClassVar[dict[str, Any]] = {"check_seconds": 3.0}
    lock = threading.Lock()

    def publish(self, target: str, data: bytes) -> Pointer | None:
        with self.lock:
            published = super().publish(target, data)
            if published is None:
                self.lock.acquire()
            return published


class LoadGuesses(CreateStrategy):
    """Names the first version of a table without a look whether it is there."""

    def load(self) -> Pointer | None:
        return super().load() or self.pointer_to(f"{self.folder}/v1.metadata.json")


class PublishesNothing(CreateStrategy):
    """Returns before the metadata file is written."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        return self.pointer_to(target)


class CreatesOver(CreateStrategy):
    """Creates a table in the place of another."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        if base is not None:
            return super().commit(base, proposal)
        target = f"{self.folder}/v1.metadata.json"
        self.file_system.put(target, encode_metadata(proposal.metadata), PutMode.OVERWRITE)
        return Committed(self.pointer_to(target))


class SortsVersionsAsText(CreateStrategy):
    """Takes version 9 for a later one than version 10."""

    def load(self) -> Pointer | None:
        latest = max((location for _, location in self.listed()), default=None)
        return None if latest is None else self.pointer_to(latest)


class PointerHoldsALock(CreateStrategy):
    """Puts an object of this process into a pointer."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        published = super().publish(target, data)
        return None if published is None else replace(published, stamp=(threading.Lock(),))


class NeedsAName(CreateStrategy):
    """Declares a string that is no ability."""

    needs: Any = ("atomic-create",)


class StatesNoContract(CreateStrategy):
    """Is provided by a plugin that states no versions of the contract."""


class PublishesInTwoParts(CreateStrategy):
    """Claims the name with a part of the file, and writes the whole file then."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.put(target, data[:100], PutMode.CREATE)
        except FileExists:
            return None
        time.sleep(0.005)
        self.file_system.put(target, data, PutMode.OVERWRITE)
        return self.pointer_to(target)


class AdoptsWhatIsPending(CreateStrategy):
    """Notes a commit in a file, and completes the commit that an earlier writer noted."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        pending = f"{self.folder}/pending"
        if self.exists(pending):
            super().publish(target, read_whole(self.file_system, pending))
            self.file_system.delete_many([pending])
            return None
        self.file_system.put(pending, data, PutMode.OVERWRITE)
        published = None
        with suppress(FileExists):
            self.file_system.put(target, data, PutMode.CREATE)
            published = self.pointer_to(target)
        delete_quietly(self.file_system, pending)
        return published


class TakesALostListingForNoTable(CreateStrategy):
    """Answers that there is no table when the store fails."""

    def load(self) -> Pointer | None:
        try:
            return super().load()
        except StorageError:
            return None


class WritesItsProperties(CreateStrategy):
    """Writes its properties next to the table, for later analysis."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        self.file_system.put(f"{self.folder}/writer", f"{self.properties}".encode(), PutMode.OVERWRITE)
        return super().publish(target, data)


LOST = "test_a_lost_reply_is_settled_or_said_to_be_unknown"
STALE = "test_an_old_base_is_a_conflict_and_leaves_nothing"
WHOLE = "test_readers_always_see_a_whole_version"

MUTANTS: list[Mutant] = of(
    {
        ChecksThenWrites: ("test_one_of_many_creators_wins", "creation looks first and writes then"),
        RetriesBlindly: (LOST, "reported as a conflict"),
        CleansUpAfterUnknown: (
            "test_a_connection_that_stays_down_deletes_nothing_published", "was never answered"
        ),
        TakesLostForDone: (LOST, "a success that was none"),
        IgnoresItsBase: (STALE, "does not check its base"),
        LeavesTheLosersFile: (STALE, "leaves the loser's file behind"),
        TrustsTheHint: ("test_a_crash_at_any_step_leaves_the_old_or_the_new_version", "dies at that step"),
        LocksThreads: ("test_a_writer_that_is_held_up_overwrites_no_other_process", "A lock of threads"),
        CallsALostReplyAFailure: ("test_a_step_that_was_done_and_failed_is_not_called_a_failure", "doubles its rows"),
        WaitsForItself: ("test_no_update_of_many_writers_is_lost", "did not end within 3 s"),
        BelievesAMissingFile: (
            "test_a_call_that_arrives_late_is_not_called_a_failure", "said to have failed, and is committed later"
        ),
        LoadGuesses: ("test_there_is_no_table_before_it_is_created", "raises where it should answer None"),
        PublishesNothing: ("test_creating_makes_the_table_visible", "before the metadata is published"),
        CreatesOver: ("test_creating_twice_is_a_conflict", "takes the first one's table away"),
        SortsVersionsAsText: ("test_each_commit_moves_the_pointer", "a name that ``load`` does not find"),
        PointerHoldsALock: ("test_a_pointer_pickles", "holds more than strings and a number"),
        NeedsAName: ("test_storage_that_cannot_keep_the_promise_is_refused_by_needs", "does not declare in ``needs``"),
        StatesNoContract: ("test_the_plugin_states_its_contract_number", "states no contract"),
        PublishesInTwoParts: (WHOLE, "before the metadata file is complete"),
        AdoptsWhatIsPending: (
            "test_the_next_writer_finds_a_commit_whole_or_no_trace_of_it", "the next writer completed a failed commit"
        ),
        TakesALostListingForNoTable: (
            "test_a_lost_read_gives_no_missing_and_no_older_table", "a lost read is a missing table"
        ),
        WritesItsProperties: ("test_no_secret_of_the_properties_is_shown", "the secret of a property is in file://"),
    }
)  # fmt: skip
