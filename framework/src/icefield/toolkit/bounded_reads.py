"""Reading a whole untrusted file, with a bound on its size."""

from __future__ import annotations

import os

from icefield.abc import InputFile
from icefield.errors import InvalidFile


def read_bounded(source: InputFile, location: str, limit: int | None) -> bytes:
    """The bytes of an open file. Raises ``InvalidFile`` for more than ``limit``, before they are read.

    The size that the file states is not trusted: bytes beyond it are counted as well.
    """
    # Read by size: a read of at most ``limit`` bytes would allocate all of them.
    size = source.seek(0, os.SEEK_END)
    if limit is not None and size > limit:
        raise _too_long(location, limit)
    source.seek(0)
    parts = [source.read(size) if limit is not None else source.read()]
    have = len(parts[0])
    while limit is not None and (part := source.read(1 if have >= size else size - have)):
        have += len(part)
        parts.append(part)
        if have > limit:
            raise _too_long(location, limit)
        size = max(size, min(2 * have, limit + 1)) if have > size else size
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(location: str, limit: int) -> InvalidFile:
    return InvalidFile(f"{location} has more than {limit:,} bytes, the most that is read of it", location=location)
