"""The current time for the files of a table: the earlier time of this machine's clock and the store's clock."""

from __future__ import annotations

import time
from typing import Final
from uuid import uuid4

from icefield.errors import InvalidArgument, StorageError
from icefield.metadata import Timestamp, as_milliseconds
from icefield.storage import FileIO
from icefield.toolkit import delete_quietly

DAY_MS: Final = 86_400_000
DEFAULT_AGE_MS: Final = 3 * DAY_MS
"""The least age of an orphan, unless the caller gives a time."""


def local_now_ms() -> int:
    """The time of this machine's clock, in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


def store_now_ms(io: FileIO, folder: str) -> int:
    """The time of the store's clock, from a temporary file. Raises ``StorageError`` and its subclasses.

    The store's clock sets the times of files. If this machine's clock is ahead, a file that a writer has just finished
    would seem old.
    """
    location = f"{folder}/.icefield-clock-{uuid4()}"
    with io.open_output(location):  # which every store can do, unlike an atomic create
        pass
    try:
        modified = io.stat(location).modified_ms
    finally:
        delete_quietly(io.storage(location), location)
    if modified is None:
        raise StorageError(
            f"{folder} is on a store that does not say when a file was written, so that orphans look as files do that "
            "are being written; remove its orphans by its own means",
            location=folder,
        )
    return modified


def limit_ms(older_than: Timestamp | None, now_ms: int, *, allow_recent: bool) -> int:
    """The time before which an orphan must have been written, in ms since 1970 UTC. Raises ``InvalidArgument``."""
    limit = now_ms - DEFAULT_AGE_MS if older_than is None else as_milliseconds(older_than)
    if limit > now_ms - DAY_MS and not allow_recent:
        raise InvalidArgument(
            "files that were written in the last 24 hours may belong to writers that have not committed yet; give an "
            "earlier older_than, or allow_recent=True where you know that nobody writes"
        )
    return limit
