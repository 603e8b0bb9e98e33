"""A lock with a lease: heartbeats keep it, and another writer takes it over after a lease without a heartbeat.

The items have the form of Iceberg's Java ``DynamoDbLockManager``, so that both exclude each other. The entity is the
metadata file to be published, with its scheme; the owner is the temporary file of the attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self
from uuid import uuid4

from icefield.errors import CommitFailed

from icefield_dynamodb.items import KEY, Item, ItemTable, ReplyLost
from icefield_dynamodb.options import LockOptions

OWNER = "ownerId"
VERSION = "version"
LEASE = "leaseDurationMs"
_FIRST_WAIT = 0.02
_MAX_LEASE = 24 * 60 * 60.0


class Lease:
    """The lock on one entity for one attempt. As a context manager it ends the lease."""

    def __init__(self, locks: ItemTable, options: LockOptions, entity: str, owner: str) -> None:
        self.entity, self.owner = entity, owner
        self._locks, self._options = locks, options
        self._over = Event()
        self._heart: Thread | None = None

    def acquire(self, is_pointless: Callable[[], bool]) -> bool:
        """Wait for the lock; return False if ``is_pointless`` returns True while another writer holds the lock.

        Raises ``CommitFailed`` if the lock does not become free within ``lock.acquire-timeout-ms``.
        """
        deadline = time.monotonic() + self._options.acquire_timeout
        wait = _FIRST_WAIT
        seen: tuple[str, float] | None = None
        while True:
            held = self._locks.read(self.entity)
            now = time.monotonic()
            if held is None or held.get(OWNER) == self.owner:
                if held is not None or self._taken(None):
                    break
                if now > deadline:
                    raise CommitFailed(
                        f"the lock on {self.entity} was not to be had within {self._options.acquire_timeout:g} s, "
                        "though nobody holds it; nothing was changed: try again, or look whether DynamoDB takes writes",
                        location=self.entity,
                    )
                continue
            if is_pointless():
                return False
            # The time without a heartbeat is measured by our own clock, from our first sight of the last one: other
            # clocks do not count.
            version = held.get(VERSION, "")
            if seen is None or seen[0] != version:
                seen = (version, now)
            elif now - seen[1] >= _lease_of(held) and self._taken(version):
                break
            if now > deadline:
                raise CommitFailed(
                    f"the lock on {self.entity} is held by {held.get(OWNER)} and was not to be had within "
                    f"{self._options.acquire_timeout:g} s; nothing was changed: try again, or look whether that "
                    "writer hangs",
                    location=self.entity,
                )
            time.sleep(min(wait, self._options.acquire_interval))
            wait *= 1.5
        self._heart = Thread(target=self._beat, name="icefield-lock-heartbeat", daemon=True)
        self._heart.start()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._heart is not None:
            self._heart.join()
        # Another writer takes over a remaining lock after its lease. The version may be published, so release must not
        # raise.
        with suppress(Exception):
            self._locks.delete(self.entity, {OWNER: self.owner})

    def _taken(self, version: str | None) -> bool:
        expected = None if version is None else {VERSION: version}
        try:
            return self._locks.put(self._item(), numbers=(LEASE,), expected=expected)
        except ReplyLost:
            return False  # the next read shows the owner

    def _beat(self) -> None:
        while not self._over.wait(self._options.heartbeat):
            # The next heartbeat makes up for a missed one. A lock that another owner has taken over is not taken back.
            with suppress(Exception):
                if not self._locks.put(self._item(), numbers=(LEASE,), expected={OWNER: self.owner}):
                    return

    def _item(self) -> Item:
        lease = str(round(self._options.lease * 1000))
        return {KEY: self.entity, OWNER: self.owner, VERSION: str(uuid4()), LEASE: lease}


def entity_of(location: str) -> str:
    """A location as Hadoop writes it, for the Java lock manager's names."""
    return "file:/" + location[len("file:///") :] if location.startswith("file:///") else location


def _lease_of(item: Item) -> float:
    string = item.get(LEASE, "")
    return min(int(string) / 1000, _MAX_LEASE) if string.isdecimal() and len(string) < 20 else 0.0
