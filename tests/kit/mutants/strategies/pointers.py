"""Strategies over a service that are broken on purpose: they report a wrong outcome of a commit, a drop or a read."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import ClassVar

from icefield.abc import Committed, Conflict, Pointer, Proposal
from icefield.errors import CommitStateUnknown, NoSuchTable, StorageError
from icefield.metadata.file_names import parse_metadata_file_name
from icefield.toolkit import OutcomeUnknown, delete_quietly
from pointer_service import ServiceStrategy

from mutants import Mutant, of


class CallsALostDropAFailure(ServiceStrategy):
    """Reports that a table was not dropped when the drop was not answered."""

    def drop(self) -> None:
        try:
            self.ask("set", new=None)
        except (ConnectionError, TimeoutError) as lost:
            raise StorageError("the table was not dropped") from lost


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


class Hasty(ServiceStrategy):
    """Commits, and believes ``swap_pointer``: it reads nothing back."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        staged = self.stage(base, proposal)
        if not self.swap_pointer(None if base is None else base.location, staged.location, proposal):
            delete_quietly(self.file_system, staged.location)
            return Conflict()
        return Committed(staged)

    def unknown(self, lost: Exception) -> CommitStateUnknown:
        return CommitStateUnknown(f"no reply: {lost}", table=self.table)


class SettlesOrSays(Hasty):
    """Reads back after a lost reply. A subclass chooses the answer if the reading fails as well."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError as lost:
            try:
                found = self.ask("get")
            except OSError as error:
                return self.when_down(error)
            if found == new:
                return True
            raise self.unknown(lost) from lost

    def when_down(self, error: Exception) -> bool:
        raise self.unknown(error) from error


class UnknownIsPlainError(SettlesOrSays):
    """Calls a commit a failure when the service stays down after it."""

    def when_down(self, error: Exception) -> bool:
        raise StorageError("the service does not answer", retryable=True) from error


class UnknownIsConflict(SettlesOrSays):
    """Calls a commit a conflict when the service stays down after it."""

    def when_down(self, error: Exception) -> bool:
        return False


class UnknownIsDone(SettlesOrSays):
    """Calls a commit done when the service stays down."""

    def when_down(self, error: Exception) -> bool:
        return True


class BelievesWhatItReadsBack(ServiceStrategy):
    """Reads back after a lost reply, and calls the commit a failure if the pointer has not moved."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError as lost:
            if self.ask("get") == new:
                return True
            raise StorageError("the table was not changed", retryable=True) from lost


class CallsALateCreationAFailure(BelievesWhatItReadsBack):
    """Believes that a creation did not happen if the table is not there."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if old is not None:
            return ServiceStrategy.swap_pointer(self, old, new, proposal)
        return super().swap_pointer(old, new, proposal)


class SetsAgain(ServiceStrategy):
    """Claims the table, compares, and sets the pointer; after a lost reply it compares and sets again."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        for _ in range(3):
            with suppress(OSError):
                while self.ask("claim", owner=new, seconds=5.0)[0] != new:
                    time.sleep(0.01)
                try:
                    if (found := self.ask("get")) == old:
                        self.ask("set", new=new)
                    return found in (old, new)
                finally:
                    self.ask("release", owner=new)
        raise OutcomeUnknown("the service does not answer")


class CreationIsPlainError(SettlesOrSays):
    """Calls a creation a failure when the service stays down after it."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if old is None:
            return super().swap_pointer(old, new, proposal)
        return ServiceStrategy.swap_pointer(self, old, new, proposal)

    def when_down(self, error: Exception) -> bool:
        raise StorageError("the table was not created") from error


class DropLostIsDone(ServiceStrategy):
    """Takes a lost reply for a drop that was made."""

    def drop(self) -> None:
        with suppress(CommitStateUnknown):
            super().drop()


class DropDownIsError(ServiceStrategy):
    """Looks for the table after a lost reply, and calls the drop a failure when that fails, too."""

    def drop(self) -> None:
        try:
            super().drop()
        except CommitStateUnknown as lost:
            try:
                found = self.ask("get")
            except OSError as error:
                raise StorageError("the table was not dropped") from error
            if found is not None:
                raise StorageError("the table was not dropped") from lost


class DropDownIsDone(ServiceStrategy):
    """Looks for the table after a lost reply, and calls the drop done when that fails, too."""

    def drop(self) -> None:
        try:
            super().drop()
        except CommitStateUnknown:
            with suppress(OSError):
                if self.ask("get") is not None:
                    raise


class DropUnconditional(ServiceStrategy):
    """Looks whether there is a table, and drops it without a look at what the service says."""

    def drop(self) -> None:
        try:
            if self.ask("get") is None:
                raise NoSuchTable(f"no table {self.location}")
            self.ask("drop")
        except OSError as error:
            raise CommitStateUnknown("no reply to the drop", table=self.table) from error


class ReadTimeoutIsNoTable(ServiceStrategy):
    """Takes a lost reply for a table that is missing."""

    def read_pointer(self) -> str | None:
        try:
            return super().read_pointer()
        except StorageError:
            return None


class RemembersThePointer(ServiceStrategy):
    """Answers with the last known version when the service does not answer."""

    last: str | None = None

    def read_pointer(self) -> str | None:
        with suppress(StorageError):
            self.last = super().read_pointer()
        return self.last


class LetsErrorsOut(ServiceStrategy):
    """Does not translate the errors of its library."""

    def read_pointer(self) -> str | None:
        found: str | None = self.ask("get")
        return found


class ComparesVersionsOnly(ServiceStrategy):
    """Takes a table for unchanged if the number of its version is the same."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        current = self.ask("get")
        if (current is None) != (old is None) or (old and _version(old) != _version(current)):
            return False
        return bool(self.ask("swap", old=current, new=new))


class LooksThenSetsSlowly(ServiceStrategy):
    """Looks at the pointer, and sets it some time later."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if self.ask("get") != old:
            return False
        time.sleep(0.003)
        self.ask("set", new=new)
        return True


class PointerInMemory(ServiceStrategy):
    """Compares with a copy of the pointer that this process keeps."""

    lock = threading.Lock()
    known: ClassVar[dict[str, str | None]] = {}

    def read_pointer(self) -> str | None:
        if self.location not in self.known:
            self.known[self.location] = super().read_pointer()
        return self.known[self.location]

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with self.lock:
            if self.read_pointer() != old:
                return False
            self.ask("set", new=new)
            self.known[self.location] = new
            return True


def _version(location: str) -> int | None:
    parsed = parse_metadata_file_name(location)
    return None if parsed is None else parsed.version


LOST = "test_a_lost_reply_of_the_service_is_settled_or_said_to_be_unknown"
CREATION = "test_a_creation_whose_reply_was_lost_is_settled_or_said_to_be_unknown"
LATE = "test_a_commit_that_arrives_late_is_not_called_a_failure"
DOWN = "test_a_service_that_stays_down_deletes_nothing_published"
NEXT = "test_the_next_writer_finds_a_commit_whole_or_no_trace_of_it"
DROP = "test_a_drop_that_meets_a_fault_says_what_is_so"
READ = "test_a_lost_read_gives_no_missing_and_no_older_table"

MUTANTS: list[Mutant] = of(
    {
        CallsALostDropAFailure: (DROP, "and the table is gone"),
        TakesALostReplyForAConflict: (LOST, "is reported as a conflict"),
        TakesALostReplyForDone: (LOST, "a success that was none"),
        CreatesBlindly: (CREATION, "passes for another's"),
        BelievesWhatItReadsBack: (LATE, "its metadata file was deleted, and the pointer names it: a late request 1"),
        CallsALateCreationAFailure: (LATE, "its metadata file was deleted, and the pointer names it: a late request 1"),
        SetsAgain: ("test_a_commit_that_arrives_late_undoes_no_other", "a commit of another writer is lost"),
        DeletesWhatIsUnknown: (DOWN, "delete nothing"),
        LooksThenSets: ("test_a_writer_that_is_held_up_overwrites_no_other_process", "A lock of threads"),
        UnknownIsPlainError: (NEXT, "said to have failed and is committed"),
        UnknownIsConflict: (NEXT, "it was called a failure and is there"),
        UnknownIsDone: (NEXT, "said to be committed and is not"),
        CreationIsPlainError: (CREATION, "said to have failed, and the table is there"),
        DropLostIsDone: (DROP, "said to be dropped, and the table is there"),
        DropDownIsError: (DROP, "said to have failed, and the table is gone"),
        DropDownIsDone: (DROP, "said to be dropped, and the table is there"),
        DropUnconditional: (
            "test_a_drop_that_is_held_up_does_not_miss_another_process", "both dropped one table"
        ),
        ReadTimeoutIsNoTable: (READ, "a lost read is a missing table"),
        RemembersThePointer: (READ, "a lost read is answered with another version"),
        LetsErrorsOut: (READ, "not one of Icefield's errors"),
        ComparesVersionsOnly: (
            "test_a_commit_on_a_created_again_table_is_a_conflict", "a stalled writer of the dropped table"
        ),
        LooksThenSetsSlowly: ("test_no_update_of_many_writers_is_lost", "of 48 updates are lost: w"),
        PointerInMemory: ("test_no_update_of_many_processes_is_lost", "of 12 updates are lost: p"),
    }
)  # fmt: skip
