"""Answers by idempotency key for all processes of a server on one machine, in a file of SQLite that they share."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from icefield_rest_server.answers import Answer, Refused
from icefield_rest_server.idempotency import (
    MOST_BYTES,
    MOST_KEYS,
    Begun,
    check_key,
    other_request,
    packed,
    under_way,
)
from icefield_rest_server.processes import Processes

_log = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS answers (
        who TEXT NOT NULL, key TEXT NOT NULL, asked TEXT NOT NULL, until REAL NOT NULL, owner TEXT NOT NULL,
        status INTEGER, headers BLOB, body BLOB, packed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (who, key));
    CREATE INDEX IF NOT EXISTS by_age ON answers (until);
    CREATE TABLE IF NOT EXISTS kept (entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
    INSERT INTO kept SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM kept);
    CREATE TRIGGER IF NOT EXISTS came AFTER INSERT ON answers BEGIN
        UPDATE kept SET entries = entries + 1; END;
    CREATE TRIGGER IF NOT EXISTS answered AFTER UPDATE OF body ON answers BEGIN
        UPDATE kept SET bytes = bytes + coalesce(length(new.body), 0) - coalesce(length(old.body), 0); END;
    CREATE TRIGGER IF NOT EXISTS gone AFTER DELETE ON answers BEGIN
        UPDATE kept SET entries = entries - 1, bytes = bytes - coalesce(length(old.body), 0); END;
"""
_OLDEST: Final = "SELECT rowid FROM answers WHERE status IS NOT NULL ORDER BY until LIMIT 1"


class SharedKeys:
    """See ``IdempotencyStore``. Each request under way has the name of the process that does it.

    The oldest answers go where all of them would take too much room; a request under way stays until its time is up.
    """

    def __init__(self, processes: Processes, seconds: float, most_bytes: int = MOST_BYTES) -> None:
        self._processes, self._seconds, self._most_bytes = processes, seconds, most_bytes
        self._lock = threading.Lock()
        path = processes.folder / "keys.db"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        # A crash of the machine loses keys at most; the catalog does not depend on them.
        for pragma in ("journal_mode=WAL", "synchronous=OFF", "journal_size_limit=67108864"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | Begun:
        """See ``IdempotencyStore``."""
        check_key(key)
        end, wait = time.monotonic() + timeout, _FIRST_WAIT
        while True:
            try:
                found = self._looked_up(who, key, asked)
            except sqlite3.Error as error:
                _log.error("idempotency keys cannot be read: %s", error)
                message = "the server cannot look up idempotency keys now; nothing was done"
                raise Refused(503, "ServiceUnavailableException", message) from error
            if found is not None:
                return found
            if time.monotonic() >= end:
                raise under_way()
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def end(self, who: str, key: str, answer: Answer | None) -> None:
        """See ``IdempotencyStore``."""
        try:
            with self._step() as run:
                if answer is None:
                    run.execute("UPDATE answers SET owner = '' WHERE who = ? AND key = ?", (who, key))
                elif answer.status >= 500:
                    run.execute("DELETE FROM answers WHERE who = ? AND key = ?", (who, key))
                else:
                    body, is_packed = packed(answer)
                    kept = (answer.status, msgspec.json.encode(answer.headers), body, is_packed, who, key)
                    run.execute(
                        "UPDATE answers SET status = ?, headers = ?, body = ?, packed = ? WHERE who = ? AND key = ?",
                        kept,
                    )
                    self._drop_old(run)
        except sqlite3.Error as error:  # the request was done, and the client must get its answer
            _log.error("the answer to a request with an idempotency key is not kept: %s", error)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _looked_up(self, who: str, key: str, asked: str) -> Answer | Begun | None:
        """Return the answer or state of a key; None while a living process does the request."""
        own = self._processes.own
        with self._step() as run:
            self._drop_old(run)
            query = "SELECT asked, owner, status, headers, body, packed FROM answers WHERE who = ? AND key = ?"
            row = run.execute(query, (who, key)).fetchone()
            if row is None:
                new = (who, key, asked, time.time() + self._seconds, own)
                run.execute("INSERT INTO answers (who, key, asked, until, owner) VALUES (?, ?, ?, ?, ?)", new)
                return Begun.NEW
            before, owner, status, headers, body, is_packed = row
            if before != asked:
                raise other_request()
            if status is not None:
                return Answer(status, zlib.decompress(body) if is_packed else body, msgspec.json.decode(headers))
            if self._processes.is_alive(owner):
                return None
            run.execute("UPDATE answers SET owner = ? WHERE who = ? AND key = ?", (own, who, key))
            return Begun.AGAIN

    def _drop_old(self, run: sqlite3.Connection) -> None:
        run.execute("DELETE FROM answers WHERE until < ?", (time.time(),))
        while True:
            entries, size = run.execute("SELECT entries, bytes FROM kept").fetchone()
            if entries <= MOST_KEYS and size <= self._most_bytes:
                return
            if not run.execute(f"DELETE FROM answers WHERE rowid = ({_OLDEST})").rowcount:
                return

    @contextmanager
    def _step(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: only one at a time, over all threads of all processes."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
