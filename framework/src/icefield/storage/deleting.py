"""Deletes many files that no version refers to any more. Callers order their calls so that a crash does no harm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from icefield.abc import FileSystemAbility
from icefield.base.concurrency import map_ahead
from icefield.base.secrets import without_userinfo
from icefield.errors import IcefieldError, printable
from icefield.storage.file_io import FileIO

_AT_ONCE: Final = 1000
"""The number of files in one call: the limit of object stores for one request."""

_log = logging.getLogger(__name__)


def delete_files(io: FileIO, locations: Iterable[str], notify: Callable[[int], None] | None = None) -> int:
    """Delete files; the number of failed deletions, which are logged. A file that is already gone is no failure.

    Files that may not be deleted by this file IO (``FileIO.deleting_only``) stay, are logged, and are no failure.
    ``notify`` is called with the number of files done, call by call. Remote stores are called by several threads.
    """
    chunks = _chunks(io, locations)
    first = next(chunks, None)
    if first is None:
        return 0
    failed = done = 0
    workers = io.workers(waiting=True) if is_remote(io, first[0]) else 1
    for count, missed in map_ahead(chain([first], chunks), lambda chunk: (len(chunk), _delete(io, chunk)), workers):
        failed += missed
        done += count
        if notify is not None:
            notify(done)
    return failed


def _delete(io: FileIO, locations: Sequence[str]) -> int:
    try:
        io.delete_many(locations)
        return 0
    except IcefieldError as error:
        if getattr(error, "retryable", False) or len(locations) == 1:
            first = printable(without_userinfo(locations[0]))
            _log.warning("could not delete %d files, %s among them: %s", len(locations), first, error)
            return len(locations)
    # One of the files is refused: delete the others one by one.
    return sum(_delete(io, [location]) for location in locations)


def is_remote(io: FileIO, location: str) -> bool:
    """Whether a request for a file there may wait for a network."""
    try:
        return FileSystemAbility.REMOTE in io.file_system(location).abilities
    except IcefieldError:
        return False


def _chunks(io: FileIO, locations: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(locations)
    while chunk := list(islice(remaining, _AT_ONCE)):
        kept = list(io.deletable(chunk))
        if left := len(chunk) - len(kept):
            _log.warning("%d files stay that are not known to be the table's own", left)
        if kept:
            yield kept
