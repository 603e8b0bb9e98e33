"""Locks of the metastore: request, wait, heartbeat and release.

Iceberg's Java library and PyIceberg take the same locks, so that all exclude each other. The metastore forgets a lock
after ``hive.txn.timeout`` (five minutes by default) without a heartbeat, so that a dead holder does not block others
for long. A holder that is only slow may lose its lock as well: its commit therefore also names the old pointer.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Final

from icefield.errors import StorageError
from icefield.toolkit import Backoff, reset_after_fork

from icefield_hive.client import Metastore
from icefield_hive.connection import ConnectionLost, MetastoreRefusal
from icefield_hive.messages import (
    CHECK_LOCK,
    EXCLUSIVE,
    FIND_LOCKS,
    HEARTBEAT,
    LEVEL_DATABASE,
    LEVEL_TABLE,
    LOCK,
    UNLOCK,
    LockState,
)
from icefield_hive.structs import Record

_log = logging.getLogger(__name__)

_GROWTH: Final = 1.5

Locked = tuple[str, str | None]
"""A database and a table of it; without a table the whole database."""


class Overtaken(Exception):
    """The change that needs the lock became pointless during the wait for it."""


@contextmanager
def held(
    metastore: Metastore, names: Sequence[Locked], overtaken: Callable[[], bool] = lambda: False
) -> Iterator[HiveLock]:
    """Hold an exclusive lock on all of the names. The wait for other holders calls ``overtaken`` repeatedly.

    Raises ``Overtaken``, and a retryable ``StorageError`` if the lock does not become free.
    """
    lock = HiveLock(metastore, names)
    with _turns(metastore, names) as waited:
        if waited and overtaken():
            raise Overtaken
        try:
            lock.acquire(overtaken)
            yield lock
        finally:
            lock.release()


class HiveLock:
    """One request for a lock."""

    def __init__(self, metastore: Metastore, names: Sequence[Locked]) -> None:
        self._metastore = metastore
        self._settings = metastore.settings.lock
        self._names = names
        self._agent = f"Icefield-{uuid.uuid4().hex}"
        self._id: int | None = None
        self._lost = False
        self._done = threading.Event()
        self._seen_alive = time.monotonic()

    def acquire(self, overtaken: Callable[[], bool]) -> None:
        """Request the lock and wait for it."""
        deadline = time.monotonic() + self._settings.acquire
        backoff = Backoff(self._settings.check_least, self._settings.check_most, _GROWTH)
        state, retries = self._create(), count(1)
        while state == LockState.WAITING:
            if overtaken():
                raise Overtaken
            if time.monotonic() >= deadline:
                raise self._failure(
                    f"others held it for {self._settings.acquire:g} s ('iceberg.hive.lock-timeout-ms'); one that died "
                    "holds it until the metastore's 'hive.txn.timeout' has passed"
                )
            time.sleep(backoff.wait(next(retries)))
            state = self._check()
        if state != LockState.ACQUIRED:
            raise self._failure("the metastore took it back")
        self._seen_alive = time.monotonic()
        threading.Thread(target=self._keep_alive, name="icefield-hive-heartbeat", daemon=True).start()

    def ensure_held(self) -> None:
        """Raise ``StorageError`` if the metastore is known to have forgotten the lock."""
        if not self._lost and time.monotonic() - self._seen_alive > 2 * self._settings.heartbeat:
            self._beat()  # this process was paused, and its heartbeat with it
        if self._lost:
            raise self._failure("the metastore gave it up before the change was made")

    def release(self) -> None:
        """Release the lock. A failure is only logged: the metastore forgets the lock in time."""
        self._done.set()
        if self._id is None:
            return
        try:
            self._metastore.call(UNLOCK, {"lockid": self._id})
        except (MetastoreRefusal, ConnectionLost) as error:
            if not (isinstance(error, MetastoreRefusal) and error.kind == "NoSuchLock"):
                _log.warning("the lock %d on %s could not be given back: %s", self._id, self._string, error)
        except Exception:  # an answer that makes no sense: the change under the lock may be made, and stays made
            _log.warning("the lock %d on %s could not be given back", self._id, self._string, exc_info=True)

    @property
    def _string(self) -> str:
        return " and ".join(".".join(level for level in name if level) for name in self._names)

    def _create(self) -> LockState:
        request = {
            "component": [_component(database, table) for database, table in self._names],
            "user": self._metastore.settings.user,
            "hostname": socket.gethostname(),
            "agentInfo": self._agent,
        }
        deadline = time.monotonic() + self._settings.create
        backoff = Backoff(self._settings.create_least, self._settings.create_most)
        retries = count(1)
        while True:
            try:
                answer: Record = self._metastore.call(LOCK, request)
                self._id = answer["lockid"]
                return LockState(answer["state"])
            except (ConnectionLost, MetastoreRefusal) as error:
                if self._find():  # the request was heard, and only the reply was lost
                    return LockState.WAITING
                hopeless = isinstance(error, MetastoreRefusal) and "HIVE_LOCKS" in error.said
                if hopeless or time.monotonic() >= deadline:
                    raise self._failure(str(error)) from error
            time.sleep(backoff.wait(next(retries)))

    def _find(self) -> bool:
        database, table = self._names[0]
        try:
            shown: Record = self._metastore.call(FIND_LOCKS, {"dbname": database, "tablename": table})
        except (ConnectionLost, MetastoreRefusal):
            return False
        found = [lock["lockid"] for lock in shown["locks"] if lock.get("agentInfo") == self._agent]
        self._id = found[0] if found else None
        return bool(found)

    def _check(self) -> LockState:
        try:
            answer: Record = self._metastore.call(CHECK_LOCK, {"lockid": self._id})
        except (ConnectionLost, MetastoreRefusal) as error:
            raise self._failure(str(error)) from error
        return LockState(answer["state"])

    def _keep_alive(self) -> None:
        while not self._done.wait(self._settings.heartbeat) and not self._lost:
            self._beat()

    def _beat(self) -> None:
        try:
            self._metastore.call(HEARTBEAT, {"lockid": self._id})
            self._seen_alive = time.monotonic()
        except MetastoreRefusal as refused:
            _log.warning("the lock %s on %s is lost: %s", self._id, self._string, refused)
            self._lost = True
        except ConnectionLost as lost:
            _log.info("no heartbeat of the lock %s on %s: %s", self._id, self._string, lost)

    def _failure(self, reason: str) -> StorageError:
        return StorageError(
            f"no lock on {self._string} of catalog '{self._metastore.catalog}', and nothing was changed: {reason}",
            retryable=True,
        )


def _component(database: str, table: str | None) -> Record:
    level = LEVEL_TABLE if table else LEVEL_DATABASE
    return {"type": EXCLUSIVE, "level": level, "dbname": database, "tablename": table}


class _Turn:
    """A lock among the threads of this process, so that they do not all queue at the metastore."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_TURNS: weakref.WeakValueDictionary[tuple[object, ...], _Turn] = weakref.WeakValueDictionary()
_GUARD = threading.Lock()


def _forget_turns() -> None:
    """Reset the turns after a fork: threads of the parent never release them in this process."""
    global _TURNS, _GUARD
    _TURNS, _GUARD = weakref.WeakValueDictionary(), threading.Lock()


reset_after_fork(_forget_turns)


@contextmanager
def _turns(metastore: Metastore, names: Sequence[Locked]) -> Iterator[bool]:
    """Take a turn at each of the names. Yields whether it had to wait for another thread."""
    waited = False
    with ExitStack() as stack:
        for database, table in sorted(names, key=str):  # in one order, to avoid deadlocks
            with _GUARD:
                turn = _TURNS.setdefault((metastore.settings.servers, database, table), _Turn())
            if not turn.lock.acquire(blocking=False):
                waited = True
                if not turn.lock.acquire(timeout=metastore.settings.lock.acquire):
                    raise StorageError(
                        f"other threads of this process held {database}.{table or '*'} of catalog "
                        f"'{metastore.catalog}' for {metastore.settings.lock.acquire:g} s, and nothing was changed",
                        retryable=True,
                    )
            stack.callback(_release, turn)
        yield waited


def _release(turn: _Turn) -> None:
    turn.lock.release()  # a function of the turn, which lives as long as somebody has it
