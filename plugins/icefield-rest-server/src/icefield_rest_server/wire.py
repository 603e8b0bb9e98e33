"""HTTP as uvicorn speaks it, with bounds on what comes before a body: nobody has said yet who they are."""

# See docs/decisions/0186.

from __future__ import annotations

import asyncio
import socket
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_REFUSED: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s"
)
_ERROR: Final = (
    b'{"error":{"message":"the address and the headers of a request have too many bytes",'
    b'"type":"BadRequestException","code":431}}'
)


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed where a request's address and headers are too long, or take too long to come.

    uvicorn bounds them with its parser in Python only, and waits for them without an end.
    """

    max_head: ClassVar[int] = 64 * 1024
    """Bytes."""
    head_seconds: ClassVar[float] = 30.0

    _in_head = True
    _head = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        wire = transport.get_extra_info("socket")
        if wire.family in (socket.AF_INET, socket.AF_INET6):
            # The socket that uvicorn opens for several processes has no such option, so that the body of an answer
            # would wait until its headers are acknowledged, which clients do after 40 ms.
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes have come."""
        if self._in_head:
            if self._timer is None:
                self._await_head()
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > self.max_head and not self.transport.is_closing():
            self.transport.write(_REFUSED % (len(_ERROR), _ERROR))
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The headers have come whole."""
        self._in_head = False
        self._head_came()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body has, and what comes next is another request."""
        self._in_head, self._head = True, 0
        super().on_message_complete()

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _head_came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
