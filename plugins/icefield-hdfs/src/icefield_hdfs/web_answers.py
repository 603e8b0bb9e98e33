"""Answers over HTTP, of bounded length and time: a server that is broken, or was broken into, never ends.

Every byte on the connection counts: a status line, headers, endless `100 Continue` and the trailers of a chunked body
cannot evade the limits of ``http.client`` by repetition.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any, Final

from icefield_hdfs.client import HdfsFailure

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Of the body of an answer that is no part of a file, in bytes."""

_BESIDES: Final = 1024 * 1024  # headers, and the framing of chunks
_SILENCES: Final = 10
_SLOWEST: Final = 8192  # bytes a second


class BoundedResponse(HTTPResponse):
    """An answer with a body of at most ``most`` bytes.

    ``timeout`` is in seconds of silence; the whole answer may take ten times as long, and a second more for each 8 KiB.
    """

    def __init__(self, sock: socket.socket, *more: Any, most: int, timeout: float, **named: Any) -> None:
        super().__init__(sock, *more, **named)
        self._most = most
        self.fp.close()
        self.fp = io.BufferedReader(_CountedBody(sock.makefile("rb", buffering=0), most, timeout))

    def whole(self) -> bytes:
        """The body. Raises ``HdfsFailure`` where it is too long, or too slow."""
        body = self.read(self._most + 1)
        if len(body) > self._most:
            raise _too_long(self._most)
        return body


class _CountedBody(io.RawIOBase):
    def __init__(self, source: Any, most: int, timeout: float) -> None:
        self._source, self._most = source, most
        self._left = most + most // 8 + _BESIDES
        self._timeout, self._begun, self._come = timeout, time.monotonic(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._come > self._left:
            raise _too_long(self._most)
        if time.monotonic() - self._begun > _SILENCES * self._timeout + self._come / _SLOWEST:
            raise HdfsFailure("the answer comes too slowly; check the network", passing=True)
        count: int | None = self._source.readinto(buffer)
        self._come += count or 0
        return count

    def close(self) -> None:
        self._source.close()
        super().close()


def _too_long(most: int) -> HdfsFailure:
    said = f"the server's answer has more than {most:,} bytes, the most that is read of it"
    return HdfsFailure(said, passing=False)
