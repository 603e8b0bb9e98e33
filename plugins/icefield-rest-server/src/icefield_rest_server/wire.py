"""uvicorn's HTTP protocol, with limits on the heads of requests and on unread answers."""

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
    """A connection that is closed if a request's address and headers are too long, or take too long to arrive.

    uvicorn limits them only with its Python parser, and waits for them without a time-out. It also keeps an unread
    answer for as long as the connection is open. Here a connection is closed if the client reads nothing for a while,
    or takes too long for the whole answer. If all connections together hold too many bytes, the connections with the
    longest wait are closed.
    """

    max_head: ClassVar[int] = 64 * 1024
    """Bytes."""
    head_seconds: ClassVar[float] = 30.0
    idle_seconds: ClassVar[float] = 30.0
    """For how long a client may read nothing of an answer."""
    answer_seconds: ClassVar[float] = 300.0
    """For how long it may read an answer, or several pipelined answers."""
    max_unread: ClassVar[int] = 256 * 1024 * 1024
    """Bytes of answers that all connections of the process hold."""
    max_read: ClassVar[int] = 64 * 1024
    """Bytes that are taken from one connection before the others have their turn."""

    _unread: ClassVar[dict[BoundedHttp, float]] = {}
    """Connections with an answer that is not read yet, since when, oldest first."""

    _in_head = True
    _head = 0
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _left = 0

    def connection_made(self, transport: Any) -> None:
        """Prepare a new connection."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            transport.max_size = self.max_read
        wire = transport.get_extra_info("socket")
        if wire.family in (socket.AF_INET, socket.AF_INET6):
            # uvicorn does not set this option on the socket for several processes. Without it, the body of an answer
            # would wait until the client acknowledges the headers, which takes 40 ms.
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a closed connection."""
        self._head_came()
        self._was_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes, and close the connection if the head of a request is too long."""
        if self._in_head:
            if self._timer is None:
                self._await_head()
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > self.max_head and not self.transport.is_closing():
            self.transport.write(_REFUSED % (len(_ERROR), _ERROR))
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop the time-out of the head."""
        self._in_head = False
        self._head_came()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Collect the body in a ``bytearray``: a chunked body may come in thousands of parts of one byte."""
        if not isinstance(self.cycle.body, bytearray):
            self.cycle.body = bytearray(self.cycle.body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the head of the next request."""
        self._in_head, self._head = True, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Watch an unread answer; close the oldest such connections if all hold too many bytes."""
        super().pause_writing()
        self._left = self.transport.get_write_buffer_size()
        self._unread.setdefault(self, self.loop.time())
        self._reading = self.loop.call_later(self.idle_seconds, self._look)
        total = sum(each.transport.get_write_buffer_size() for each in self._unread)
        for each in list(self._unread):
            if total <= self.max_unread:
                break
            total -= each.transport.get_write_buffer_size()
            each.transport.abort()

    def resume_writing(self) -> None:
        """Stop watching: the client has read the answer."""
        self._was_read()
        super().resume_writing()

    def _look(self) -> None:
        """Close the connection of a client that reads nothing, or too slowly; look again later at any other."""
        left = self.transport.get_write_buffer_size()
        late = self.loop.time() > self._unread.get(self, 0.0) + self.answer_seconds
        if late or left >= self._left:
            self.transport.abort()
            return
        self._left = left
        self._reading = self.loop.call_later(self.idle_seconds, self._look)

    def _was_read(self) -> None:
        self._unread.pop(self, None)
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _head_came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
