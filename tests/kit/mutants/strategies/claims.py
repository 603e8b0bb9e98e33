"""Strategies with claims and leases that are broken on purpose: a late writer is not stopped, or a claim stays."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from uuid import uuid4

from icefield.abc import Proposal
from icefield.errors import CommitFailed, CommitStateUnknown, NoSuchTable, StorageError
from icefield.toolkit import OutcomeUnknown
from pointer_service import ServiceStrategy

from mutants import Mutant, of
from mutants.strategies.pointers import Hasty


class Claims(ServiceStrategy):
    """Looks at the pointer and sets it under a claim, which the service forgets after some seconds."""

    seconds = 1.0
    suite: ClassVar[dict[str, Any]] = {}
    """Attributes of the suite that tries the strategy."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            with self.claimed() as is_mine:
                return is_mine and self.swapped(old, new)
        except OSError as error:
            raise OutcomeUnknown(str(error)) from error

    def swapped(self, old: str | None, new: str) -> bool:
        if self.ask("get") != old:
            return False
        self.ask("set", new=new)
        return True

    @contextmanager
    def claimed(self) -> Iterator[bool]:
        owner = uuid4().hex
        yield self.ask("claim", owner=owner, seconds=self.seconds)[0] == owner
        self.ask("release", owner=owner)


class FencedLease(Claims):
    """Correct: the lease can run out, and the service compares the pointer in one step all the same."""

    seconds = 0.4
    suite: ClassVar[dict[str, Any]] = {"lease_seconds": 0.4, "hold_seconds": 0.4}

    def swapped(self, old: str | None, new: str) -> bool:
        return bool(self.ask("swap", old=old, new=new))


class ClaimExpires(Claims):
    """Relies on a claim that the service forgets while its holder is paused."""


class LeaseLongerThanTheHold(Claims):
    """Relies on a lease that outlasts the time for which a writer is held up at first."""

    suite: ClassVar[dict[str, Any]] = {"hold_seconds": 0.5}


class LeaseThatIsNotStated(Claims):
    """Relies on a lease that outlasts the check."""

    seconds = 30.0
    suite: ClassVar[dict[str, Any]] = {"hold_seconds": 0.3}


class LeaseThatIsStated(Claims):
    """Relies on a lease whose length is stated."""

    seconds = 1.5
    suite: ClassVar[dict[str, Any]] = {"hold_seconds": 0.3, "lease_seconds": 1.5}


class LeaseWithHeartbeats(Claims):
    """Relies on the heartbeats of a lease, which stand still together with their process."""

    seconds = 0.8

    @contextmanager
    def claimed(self) -> Iterator[bool]:
        owner, over = uuid4().hex, threading.Event()

        def beat() -> None:
            while not over.wait(0.1):
                with suppress(OSError):
                    self.ask("claim", owner=owner, seconds=self.seconds)

        is_mine = self.ask("claim", owner=owner, seconds=self.seconds)[0] == owner
        heart = threading.Thread(target=beat, daemon=True)
        if is_mine:
            heart.start()
        try:
            yield is_mine
        finally:
            over.set()
        self.ask("release", owner=owner)


class ClaimOfTheObject(Claims):
    """Claims in the name of the object, so that two threads hold the claim at the same time."""

    seconds = 60.0
    suite: ClassVar[dict[str, Any]] = {"lease_seconds": math.inf}

    @contextmanager
    def claimed(self) -> Iterator[bool]:
        yield self.ask("claim", owner=str(id(self)), seconds=self.seconds)[0] == str(id(self))
        self.ask("release", owner=str(id(self)))


class ClaimStays(Claims):
    """Leaves its claim for ever when a request fails."""

    seconds = 1e6
    suite: ClassVar[dict[str, Any]] = {"max_wait_seconds": 0.5}


class ClaimLostIsOurs(Hasty):
    """Calls a commit a failure when its claim was not confirmed, and the next writer completes the claim."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            holder, _ = self.ask("claim", owner=new, data=old, seconds=1e6)
        except OSError as error:
            raise StorageError("the claim was not made") from error
        try:
            done = bool(self.ask("swap", old=old, new=holder))
            self.ask("release", owner=holder)
        except OSError as error:
            raise self.unknown(error) from error
        return done and holder == new


class RollsBack(Hasty):
    """Takes a claim that is left for a failed commit, and sets the pointer back to that commit's base."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            holder, before = self.ask("claim", owner=new, data=old, seconds=1e6)
            if holder != new:
                self.ask("set", new=before)
            done = holder == new and bool(self.ask("swap", old=old, new=new))
            self.ask("release", owner=holder)
        except OSError as error:
            raise self.unknown(error) from error
        return done


class DropLeavesItsClaim(ServiceStrategy):
    """Claims the table to drop it, and leaves the claim when the drop fails."""

    suite: ClassVar[dict[str, Any]] = {"max_wait_seconds": 0.5}

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if self.ask("claim", owner=new, seconds=0)[0] != new:
            raise CommitFailed("the table is being dropped")
        return super().swap_pointer(old, new, proposal)

    def drop(self) -> None:
        try:
            self.ask("claim", owner="drop", seconds=1e6)
            found = self.ask("drop")
            self.ask("release", owner="drop")
        except OSError as error:
            raise CommitStateUnknown("no reply to the drop", table=self.table) from error
        if found is None:
            raise NoSuchTable(f"no table {self.location}")


class FailedDropIsCompleted(ServiceStrategy):
    """Calls a drop a failure when its claim was not confirmed, and the next writer completes the drop."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if self.ask("claim", owner=new, seconds=0)[0] != new:
            self.ask("drop")
            self.ask("release", owner="drop")
            return False
        return super().swap_pointer(old, new, proposal)

    def drop(self) -> None:
        try:
            self.ask("claim", owner="drop", seconds=1e6)
        except OSError as error:
            raise StorageError("the claim was not made") from error
        super().drop()
        with suppress(OSError):
            self.ask("release", owner="drop")


HELD = "test_a_writer_that_is_held_up_overwrites_no_other_process"
NEXT = "test_the_next_writer_finds_a_commit_whole_or_no_trace_of_it"
DROP = "test_a_drop_that_meets_a_fault_says_what_is_so"

MUTANTS: list[Mutant] = of(
    {
        ClaimExpires: (HELD, "both replaced one base, held up before request"),
        LeaseLongerThanTheHold: (HELD, "both replaced one base, held up before request"),
        LeaseThatIsNotStated: (HELD, "so there is a lock: state in `lease_seconds`"),
        LeaseThatIsStated: (HELD, "both replaced one base, held up before request"),
        LeaseWithHeartbeats: (HELD, "both replaced one base, held up before request"),
        ClaimOfTheObject: ("test_a_commit_is_not_mixed_with_one_of_another_thread", "the table has"),
        ClaimStays: (NEXT, "no later writer gets through"),
        ClaimLostIsOurs: (NEXT, "the next writer completed a failed commit"),
        RollsBack: (NEXT, "the next writer undid a commit"),
        DropLeavesItsClaim: (DROP, "no later writer gets through"),
        FailedDropIsCompleted: (DROP, "the table is gone"),
    }
)
