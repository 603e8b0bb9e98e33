"""Checks of a failing file system: lost requests and replies, connections that stay down, processes that die."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

import pytest
from icefield.abc import Committed, FileSystem
from icefield.errors import CommitStateUnknown, StorageError

from icefield_testing.fault_model import STEPS
from icefield_testing.faults import Fault, FaultyFileSystem
from icefield_testing.strategies.base import StrategyChecks

_ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "storage error": lambda: StorageError("said to have failed"),
    "os error": lambda: OSError(errno.EIO, "Input/output error"),
    "memory error": MemoryError,
    "interrupt": KeyboardInterrupt,
}


class FaultChecks(StrategyChecks):
    """Checks of the reported outcome, and of the remaining files, when something fails."""

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_lost_reply_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, verdict: str
    ) -> None:
        """If this fails, a reply that was lost is reported as a conflict, a failure or a success that was none."""
        for step in range(STEPS):
            place = f"{location}/{verdict}-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _at(step, verdict))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
            self.check_outcome(file_system, place, outcome, faulty.calls)
            if len(faulty.calls) <= step:
                break

    def test_a_call_that_arrives_late_is_not_called_a_failure(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a call of the file system was given up, and the store makes it after the commit is called a
        failure: raise ``CommitStateUnknown`` after an error of the atomic step, even if its file is not there yet."""
        for step in range(STEPS):
            place = f"{location}/late-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _at(step, "late-request"))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
            faulty.deliver_late()
            self.check_late(file_system, place, outcome, False, faulty.calls)
            if len(faulty.calls) <= step:
                break

    @pytest.mark.parametrize("error", _ERRORS)
    def test_a_step_that_was_done_and_failed_is_not_called_a_failure(
        self, file_system: FileSystem, location: str, error: str
    ) -> None:
        """If this fails, the commit is made, and an error after its atomic step says that it is not, so that a job that
        repeats it doubles its rows: read back after any error of that step, or raise ``CommitStateUnknown``."""
        for step in range(STEPS):
            place = f"{location}/done-{error.replace(' ', '-')}-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _raises_at(step, _ERRORS[error]()))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome: object
            try:
                outcome = self.strategy(faulty, place).commit(pointer, proposal)
            except (KeyboardInterrupt, Exception) as raised:
                outcome = raised
            current = self.pointer(self.strategy(file_system, place))
            assert current is not None, f"the table is gone: {faulty.calls}"
            happened = "mine" in self.read(file_system, current).properties
            story = f"{outcome!r} after {faulty.calls}"
            if isinstance(outcome, Committed):
                assert happened, f"said to be committed and is not: {story}"
            elif not isinstance(outcome, CommitStateUnknown | KeyboardInterrupt):
                assert not happened, f"made, and called a failure: {story}"
            if len(faulty.calls) <= step:
                break

    def test_a_connection_that_stays_down_deletes_nothing_published(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, a file is deleted whose publication was never answered: readers may have seen it."""
        names = self._names_to_look_for(file_system, f"{location}/first") & self._names_to_look_for(
            file_system, f"{location}/second"
        )
        for step in range(STEPS):
            place = f"{location}/down-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _from(step, "lose-reply"))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
            self.check_outcome(file_system, place, outcome, faulty.calls)
            unanswered = {at for name, at in faulty.calls[step:] if name in ("put", "rename")}
            published = unanswered & {f"{place}{name}" for name in names}
            deleted = {at for name, found in faulty.calls if name == "delete_many" for at in found.split(",")}
            assert not published & deleted, f"deleted after an unanswered publication: {faulty.calls}"
            if len(faulty.calls) <= step:
                break

    def _names_to_look_for(self, file_system: FileSystem, place: str) -> set[str]:
        """The names of the files that a commit writes below a table. Readers can look for a name that is not random."""
        pointer = self.create(file_system, place)
        seen = FaultyFileSystem(file_system, _at(-1, "lose-reply"))
        self.outcome(self.strategy(seen, place), pointer, self.changed(file_system, pointer, "mine", "1"))
        return {at.removeprefix(place) for name, at in seen.calls if name in ("put", "rename")}

    def test_a_crash_at_any_step_leaves_the_old_or_the_new_version(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, a process that dies at that step leaves a table that does not open, or a half version."""
        for when in ("crash-before", "crash-after"):
            for step in range(STEPS):
                place = f"{location}/{when}-{step}"
                pointer = self.create(file_system, place)
                faulty = FaultyFileSystem(file_system, _at(step, when))
                proposal = self.changed(file_system, pointer, "mine", "1")
                outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
                current = self.pointer(self.strategy(file_system, place))
                assert current is not None, f"the table is gone after {when} {step}: {faulty.calls}"
                assert set(self.read(file_system, current).properties) <= {"mine"}
                if isinstance(outcome, Committed):
                    assert current == outcome.pointer
                # The next writer must succeed, regardless of the remains of the crash.
                self.commit_until_done(self.strategy(file_system, place), file_system, "next")
                if len(faulty.calls) <= step:
                    break


def _at(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number == step else None


def _raises_at(step: int, error: BaseException) -> Fault:
    return lambda number, _name, _location: error if number == step else None


def _from(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number >= step else None
