"""One connection to a metastore: a call is one request and one reply, in bounded size and time."""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase

from icefield_hive.messages import Method
from icefield_hive.structs import I32, STRING, MalformedStruct, Struct, TooManyItems, read_struct, write_struct

MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
_MAX_STRING_BYTES: Final = 64 * 1024 * 1024
_MAX_ITEMS: Final = 1_000_001  # one more name than the limit of listings, so that the listing reports the error
_READ_BYTES: Final = 1 << 16
# The server's answer to a call that failed with an undeclared exception.
_FAILURE: Final = Struct("TApplicationException", {"message": (1, STRING), "type": (2, I32)})


class MetastoreRefusal(Exception):
    """The metastore answered with an exception: the call has ended."""

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"{kind}: {said}")
        self.kind = kind
        self.said = said


class ConnectionLost(Exception):
    """The connection broke, or the received bytes are no answer.

    ``sent`` is False if the call cannot have been received, ``in_time`` is False if the metastore took too long.
    """

    def __init__(self, message: str, *, sent: bool, in_time: bool = True) -> None:
        super().__init__(message)
        self.sent = sent
        self.in_time = in_time


class AnswerTooLong(ConnectionLost):
    """The answer is a list with more items than the limit; a retry would not make it shorter."""


class MetastoreConnection:
    """A socket and the protocol on it. Used by one thread at a time."""

    def __init__(self, host: str, port: int, connect_seconds: float, seconds: float) -> None:
        self._seconds = seconds
        self._where = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), connect_seconds)
        except OSError as error:
            raise ConnectionLost(f"no connection to {self._where}: {_reason(error)}", sent=False) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    @property
    def is_alive(self) -> bool:
        """Whether nothing was received since the last answer: anything received would be the end of the connection."""
        return not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.close()

    def call(self, method: Method, values: tuple[Any, ...]) -> Any:
        """Call and wait. Raises ``MetastoreRefusal``, and ``ConnectionLost`` which makes the connection unusable."""
        self._number = (self._number + 1) % 2**31
        message = _encoded(method, values, self._number)
        deadline = time.monotonic() + self._seconds
        try:
            self._socket.settimeout(self._seconds)
            self._socket.sendall(message)
            return _answer(_Incoming(self._socket, deadline), method, self._number)
        except TooManyItems as error:
            self.close()
            raise AnswerTooLong(
                f"{method.name} at {self._where} was answered with {error}", sent=True, in_time=False
            ) from error
        except (OSError, EOFError, MalformedStruct, TException, UnicodeDecodeError, struct.error) as error:
            self.close()
            reason = f"{method.name} at {self._where} was not answered: {_reason(error)}"
            raise ConnectionLost(reason, sent=True, in_time=not isinstance(error, TimeoutError)) from error


class _Incoming(TTransportBase):  # type: ignore[misc]
    """The bytes of one answer, within the limits of size and time."""

    def __init__(self, source: socket.socket, deadline: float) -> None:
        self._source = source
        self._deadline = deadline
        self._left = MAX_MESSAGE_BYTES
        self._buffer = memoryview(b"")

    def readAll(self, size: int) -> bytes:  # noqa: N802 -- the protocol's name for it
        if size < 0 or size > self._left:
            raise MalformedStruct(f"the answer is longer than {MAX_MESSAGE_BYTES} bytes, or claims to be")
        self._left -= size
        if size <= len(self._buffer):
            found, self._buffer = self._buffer[:size], self._buffer[size:]
            return bytes(found)
        parts, missing = [self._buffer], size - len(self._buffer)
        while missing > 0:
            data = self._receive()
            parts.append(data[:missing])
            self._buffer = data[missing:]
            missing -= len(data)
        return b"".join(parts)

    def _receive(self) -> memoryview:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._source.settimeout(left)
        data = self._source.recv(_READ_BYTES)
        if not data:
            raise EOFError("the connection was closed")
        return memoryview(data)


def _encoded(method: Method, values: tuple[Any, ...], number: int) -> bytes:
    buffer = TMemoryBuffer()
    wire = TBinaryProtocol(buffer)
    wire.writeMessageBegin(method.name, TMessageType.CALL, number)
    write_struct(wire, method.arguments, dict(zip(method.arguments.fields, values, strict=True)))
    wire.writeMessageEnd()
    message: bytes = buffer.getvalue()
    return message


def _answer(incoming: _Incoming, method: Method, number: int) -> Any:
    wire = TBinaryProtocol(incoming, string_length_limit=_MAX_STRING_BYTES, container_length_limit=_MAX_ITEMS)
    name, kind, answered = wire.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        failure = read_struct(wire, _FAILURE)
        raise MetastoreRefusal("Failure", failure.get("message") or "an internal error")
    if (name, kind, answered) != (method.name, TMessageType.REPLY, number):
        raise MalformedStruct("the answer is not to this call")
    found = read_struct(wire, method.answer)
    for exception in method.answer.fields.keys() & found.keys() - {"success"}:
        raise MetastoreRefusal(exception, found[exception].get("message") or "no reason was given")
    if "success" in method.answer.fields and "success" not in found:
        raise MalformedStruct("the answer holds no result")
    return found.get("success")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
