"""HTTP responses, read up to a limit: a broken or compromised server could send bytes without end.

For plugins with an SDK that reads responses through aiohttp, which has no limit of its own. The class wraps the stream
of a response body, and needs nothing of aiohttp.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from icefield.errors import IcefieldError, StorageError

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Most bytes of a response other than a file: an error or a page of a listing."""

MAX_WHOLE: Final = 256 * 1024 * 1024
"""Most bytes of a whole file that a server sends in response to a request for a range."""

_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")
_PARTIAL: Final = 206
_ASKED_IN: Final = ("Range", "x-ms-range")


def answer_limit(status: int, asked: Mapping[str, str]) -> int:
    """How many bytes a response may have, by its status and the headers of the request."""
    found = next((_RANGE.fullmatch(asked[name]) for name in _ASKED_IN if name in asked), None)
    if found is None or status >= 300:
        return MAX_ANSWER
    first, last = found.groups()
    if status != _PARTIAL or not last:
        return MAX_WHOLE
    return int(last) - int(first) + 1 if first else int(last)


class LimitedStream:
    """The stream of a response body. Raises ``StorageError`` once more than ``most`` bytes have arrived."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most, self._come = stream, most, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def read(self, size: int = -1) -> bytes:
        """The next bytes, ``size`` at most; all remaining bytes if it is negative."""
        if size >= 0:
            return self._counted(await self._stream.read(size))
        return b"".join([piece async for piece in self.iter_any()])

    async def readany(self) -> bytes:
        """The bytes that have arrived; empty at the end."""
        return self._counted(await self._stream.readany())

    async def iter_any(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they arrive."""
        while piece := await self.readany():
            yield piece

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """The body in pieces of ``size`` bytes at most."""
        while piece := await self.read(size):
            yield piece

    def _counted(self, piece: bytes) -> bytes:
        self._come += len(piece)
        if self._come > self._most:
            message = f"the server's answer has more than {self._most:,} bytes, the most that is read of it"
            raise StorageError(message, retryable=False)
        return piece


def refusal_in(error: BaseException) -> StorageError | None:
    """The ``StorageError`` that caused an error of an SDK, or None."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, StorageError):
        seen = seen.__cause__ or seen.__context__
    return seen


def located(error: IcefieldError, location: str) -> IcefieldError:
    """The error with a location; its own location has priority."""
    if "location" in error.data:
        return error
    return type(error)(f"{location}: {error.message}", **error.data, location=location)


def unquoted_etag(etag: str | None) -> str | None:
    """An entity tag without the quotes of the HTTP header; None for an empty or weak tag.

    Stores send the same tag with quotes in a header and without them in a listing. A weak tag (``W/"…"``) may stay
    the same while bytes change.
    """
    if not etag or etag.startswith("W/"):
        return None
    return etag.strip('"') or None
