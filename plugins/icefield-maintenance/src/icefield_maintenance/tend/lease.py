"""Leases: one process at a time maintains a table. The lease is a property of the table, set by a normal commit.

A lease has an owner and an end, in ms since 1970 UTC. Its owner renews it each third of its time; after a crash others
take it over when their own clock reaches its end. So the clocks of all machines must agree within half of its time.
Anyone who may write to a table can write a lease, so a lease that ends later than the longest one is ignored.

A catalog that compares and swaps the pointer of a table lets one of two takers win. A catalog whose service applies
changes itself (``ServedCatalog``) compares no properties: there the taker reads the property again after a pause, and
only the last writer goes on. If the service needs longer than the pause for a commit, two processes may work at once.
Their commits then conflict as those of any two writers, and no row is lost.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Self
from uuid import uuid4

from icefield.errors import CommitStateUnknown, IcefieldError
from icefield.metadata import RemoveProperties, SetProperties, TableMetadata
from icefield.transaction import Action, ActionContext, Changes

from icefield_maintenance.properties import TEND_LEASE

if TYPE_CHECKING:
    from icefield import Table

SECOND_LOOK: Final = 2.0
"""The pause, in seconds, before the second look at a service that compares no properties."""

LONGEST_LEASE_MS: Final = 86_400_000
"""The longest time of a lease."""

_LATEST_END_MS: Final = LONGEST_LEASE_MS * 3 // 2
"""The time until the end of the longest lease, by a clock that is wrong by half of its time."""

_LEASE: Final = re.compile(r"([!-~]{1,300}) (\d{1,15})", re.ASCII)


class LeaseHeld(IcefieldError, RuntimeError):
    """Another process maintains the table: ``owner`` until ``until_ms``."""


@dataclass(frozen=True, slots=True)
class TableLease:
    """The holder of a table, and the end of its lease in ms since 1970 UTC."""

    owner: str
    until_ms: int

    @classmethod
    def of(cls, metadata: TableMetadata) -> Self | None:
        """The lease in a version of a table; None without one. A damaged value counts as none."""
        found = _LEASE.fullmatch(metadata.properties.get(TEND_LEASE.name, ""))
        return cls(found[1], int(found[2])) if found else None

    def is_over(self, now_ms: int) -> bool:
        """Whether others may take the table over: the lease has ended, or its end is later than any lease allows."""
        return not now_ms < self.until_ms <= now_ms + _LATEST_END_MS

    def __str__(self) -> str:
        return f"{self.owner} {self.until_ms}"


def new_owner() -> str:
    """A name for a process, which no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


_Decide = Callable[[TableLease | None], TableLease | None]
"""The lease that follows from the present one."""


class _ChangeLease(Action):
    """Takes, renews or gives up a lease; decided anew on each base, so that a rival's lease is seen."""

    shapes = False

    def __init__(self, stage: Callable[[Action], None], decide: _Decide) -> None:
        super().__init__(stage)
        self._decide = decide

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The change of the property. Raises ``LeaseHeld``."""
        held = TableLease.of(base)
        wanted = self._decide(held)
        if wanted == held:
            return Changes()
        return Changes(
            (RemoveProperties((TEND_LEASE.name,)) if wanted is None else SetProperties({TEND_LEASE.name: str(wanted)}),)
        )


class LeasedTable:
    """A table under a lease: ``with LeasedTable(table, owner, duration_ms, ...) as leased``.

    A thread renews the lease at a third of its time. ``was_abandoned`` says whether the process of an earlier owner
    had ended without giving it up. Raises ``LeaseHeld``, and errors of commits.
    """

    def __init__(self, table: Table, owner: str, duration_ms: int, *, is_compared: bool) -> None:
        self.table = table
        self.was_abandoned = False
        self._owner, self._duration_ms, self._is_compared = owner, duration_ms, is_compared
        self._ended = Event()
        self._lock = Lock()
        self._renewing = Thread(target=self._renew, name="icefield-lease", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._change(self._take)
        except CommitStateUnknown:
            self._check_is_own()
        if not self._is_compared:
            time.sleep(SECOND_LOOK)
            self._check_is_own()
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._renewing.join()
        # A lease that cannot be given up ends by itself.
        with suppress(IcefieldError, OSError):
            self._change(lambda held: None if held is not None and held.owner == self._owner else held)

    def is_lost(self) -> bool:
        """Whether another process has taken the lease over: this one was too slow to renew it."""
        held = self._held()
        return held is None or held.owner != self._owner

    def _take(self, held: TableLease | None) -> TableLease:
        now = _now_ms()
        if held is not None and held.owner != self._owner:
            if not held.is_over(now):
                raise LeaseHeld(
                    f"{held.owner} maintains the table: its lease ends in {(held.until_ms - now) // 1000} s",
                    owner=held.owner,
                    until_ms=held.until_ms,
                )
            self.was_abandoned = True
        return TableLease(self._owner, now + self._duration_ms)

    def _check_is_own(self) -> None:
        held = self._held()
        if held is None or held.owner != self._owner:
            name = "" if held is None else held.owner
            raise LeaseHeld(f"{name} took the table at the same time", owner=name)

    def _held(self) -> TableLease | None:
        with self._lock:
            return TableLease.of(self.table.refresh().metadata)

    def _renew(self) -> None:
        while not self._ended.wait(self._duration_ms / 3000):
            # The next attempt follows soon; a rival's lease is not touched.
            with suppress(IcefieldError, OSError):
                self._change(self._prolonged)

    def _prolonged(self, held: TableLease | None) -> TableLease | None:
        is_own = held is not None and held.owner == self._owner
        return TableLease(self._owner, _now_ms() + self._duration_ms) if is_own else held

    def _change(self, decide: _Decide) -> None:
        with self._lock, self.table.access().begin() as transaction:
            _ChangeLease(transaction.stage, decide).commit()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
