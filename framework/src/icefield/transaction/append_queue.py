"""Appends of several threads that share commits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from icefield.base.concurrency import reset_after_fork
from icefield.commit import WrittenFiles
from icefield.errors import CommitStateUnknown, IcefieldError, InvalidArgument
from icefield.manifest import DataFile
from icefield.transaction.files.append import AppendFiles
from icefield.transaction.rows import Rows, batches_of, write_rows
from icefield.transaction.snapshots.write_result import WriteResult
from icefield.transaction.transaction import Transaction

_LONGEST_DELAY: Final = 3_600
_INTERRUPTED: Final = (
    "the thread that committed these rows together with its own was interrupted, and whether they are in the table "
    "cannot be known; load it again and look for them"
)


@dataclass(slots=True, eq=False)
class _QueuedAppend:
    """The files of one append; later its result or its error."""

    files: Sequence[DataFile]
    written: WrittenFiles
    result: WriteResult | None = None
    error: Exception | None = None


class AppendQueue:
    """Appends to one table by any number of threads: all that wait while one commit is made share the next one.

    Each ``append`` writes its own files at once, waits for its commit, and has its own result or error. A queue belongs
    to one process; a forked process begins with an empty one.
    """

    def __init__(
        self,
        begin: Callable[[], Transaction[Any]],
        refresh: Callable[[], object],
        max_delay: float,
        snapshot_properties: Mapping[str, str],
        branch: str | None,
    ) -> None:
        if not isinstance(max_delay, int | float) or not 0 <= max_delay <= _LONGEST_DELAY:
            raise InvalidArgument(f"max_delay is a number of seconds up to {_LONGEST_DELAY}, not {max_delay!r:.50}")
        self._begin, self._refresh, self._max_delay, self._branch = begin, refresh, max_delay, branch
        self._options: dict[str, Any] = {"branch": branch, "snapshot_properties": snapshot_properties}
        AppendFiles(lambda _: None, **self._options)  # raises the errors of the options
        self._reset()
        reset_after_fork(self._reset)

    def _reset(self) -> None:
        self._turn = Lock()
        self._waiting: deque[_QueuedAppend] = deque()

    def append(self, df: Rows) -> WriteResult:
        """Add rows as ``Table.append`` does, and return when they are visible and durable.

        Appends of one commit have the same ``snapshot_id``. Raises the errors of ``Table.append``.
        """
        with self._begin() as change:  # leaving it by an exception deletes the files, unless they are exposed
            change.expect_branch(self._branch)
            written = change.context.written
            own = _QueuedAppend(write_rows(change.shape, change.context, batches_of(df)), written)
            if not own.files:
                change.end()
                return WriteResult()
            with self._queued(own), self._turn:
                if own.result is None and own.error is None:
                    self._commit_waiting(own)
            if own.error is not None:
                raise own.error
            change.end()
        assert own.result is not None
        return own.result

    @contextmanager
    def _queued(self, own: _QueuedAppend) -> Iterator[None]:
        """Put an append into the queue. An interrupt takes it back, or leaves the files if a commit has begun."""
        own.written.exposed = True
        self._waiting.append(own)
        try:
            yield
        except BaseException:
            with suppress(ValueError):
                self._waiting.remove(own)
                own.written.exposed = False
            raise

    def _commit_waiting(self, own: _QueuedAppend) -> None:
        time.sleep(self._max_delay)
        group = []
        with suppress(IndexError):
            while True:
                group.append(self._waiting.popleft())
        if own not in group:  # the thread that took it was interrupted
            group.append(own)
        error = self._commit(group)
        if error is None:
            return
        may_pass = own.written.exposed or (isinstance(error, IcefieldError) and error.retryable)
        for queued in group:
            if not may_pass and len(group) > 1:
                queued.error = self._commit([queued])
            else:
                queued.error = copy(error) if queued is not own and isinstance(error, IcefieldError) else error
                queued.error.__cause__ = error.__cause__

    def _commit(self, group: Sequence[_QueuedAppend]) -> Exception | None:
        """Commit the appends as one snapshot, and note their results; return the error instead of raising it."""
        for queued in group:  # stays after an interrupt of any of the next steps
            queued.error, queued.written.exposed = CommitStateUnknown(_INTERRUPTED), True
        change = self._begin()
        try:
            with change:
                action = AppendFiles(change.stage, **self._options)
                action.append_fresh(file for queued in group for file in queued.files).commit()
        except BaseException as error:
            for queued in () if change.context.written.exposed else group:
                queued.error, queued.written.exposed = None, False  # after an interrupt, its own thread commits it
            if not isinstance(error, Exception):
                raise
            with suppress(Exception):
                self._refresh()  # later appends are written for the present table, such as one that is now encrypted
            return error
        for queued in group:
            rows = sum(file.record_count for file in queued.files)
            queued.result = WriteResult(action.write_result.snapshot_id, rows, files_added=len(queued.files))
            queued.error = None
        return None
