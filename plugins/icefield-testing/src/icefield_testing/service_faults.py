"""Faults of a service: the request with a chosen number, or the reply to it, is lost, or the request comes late.

They serve to test a strategy or a catalog over a service (a database, a lock service). ``LossyProxy`` stands in front
of a server that a client reaches over TCP, ``LossyCalls`` wraps the calls of a client in this process.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

RequestFault = Callable[[int], str | None]
"""Called with the number of each request, from 0, before the service has it; it may wait. Answers ``lose-request``,
``lose-reply``, ``late-request``, ``no-reply`` (of a ``LossyProxy``) or None."""

LOSE_REQUEST: Final = "lose-request"
LOSE_REPLY: Final = "lose-reply"
LATE_REQUEST: Final = "late-request"
"""The client loses its connection, and the service executes the request later, when ``deliver_late`` says so."""
NO_REPLY: Final = "no-reply"
"""The connection stays open, the service does not see the request, and nothing answers the client."""

_QUIET_SECONDS: Final = 0.02
"""The time without a byte after which a request that is held back is taken to be whole."""
_EXECUTED_SECONDS: Final = 10.0


class RequestFaults:
    """Counts the requests to a service since ``arm``, and applies a fault to some of them."""

    def __init__(self) -> None:
        self.count = 0
        self._fault: RequestFault | None = None
        self._late: list[Callable[[], object]] = []
        self._counting = threading.Lock()

    def arm(self, fault: RequestFault) -> None:
        """Count from 0, and let ``fault`` decide the fate of each request."""
        with self._counting:
            self.count, self._fault = 0, fault

    def disarm(self) -> None:
        """Let every request pass."""
        with self._counting:
            self._fault = None

    def postpone(self, execute: Callable[[], object]) -> None:
        """Hold back a request whose fate is ``late-request``; subclasses call it."""
        self._late.append(execute)

    def deliver_late(self) -> None:
        """Let the service execute the requests that were held back. Their clients do not hear of the result."""
        while self._late:
            with suppress(Exception):
                self._late.pop(0)()

    def describe(self, number: int) -> str:
        """The words for the request with a number, counted from 0."""
        return f"request {number + 1}"

    def verdict(self) -> str | None:
        """The fate of the next request; subclasses call it once for each request."""
        with self._counting:
            number, fault = self.count, self._fault
            self.count += 1
        return fault(number) if fault is not None else None


class LossyCalls(RequestFaults):
    """Wraps the calls that make a client's requests.

    ``error`` makes the exception that the client raises when a reply is lost.
    """

    def __init__(
        self, error: Callable[[], Exception] = lambda: ConnectionResetError("the connection was lost")
    ) -> None:
        super().__init__()
        self._error = error

    def wrap(self, call: Callable[P, R]) -> Callable[P, R]:
        """The call, subject to the faults."""

        def lossy(*args: P.args, **kwargs: P.kwargs) -> R:
            verdict = self.verdict()
            if verdict == LATE_REQUEST:
                self.postpone(lambda: call(*args, **kwargs))
            if verdict in (LOSE_REQUEST, LATE_REQUEST):
                raise self._error()
            result = call(*args, **kwargs)
            if verdict == LOSE_REPLY:
                raise self._error()
            return result

        return lossy


class LossyProxy(RequestFaults):
    """A relay on the loopback address in front of a server: clients connect to ``port``. A context manager.

    All bytes that the client sends after a reply, or first on a connection, count as one request. A reply is lost after
    the server has begun to send it, so the server has certainly executed the request; then the connection breaks.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__()
        self.server = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="icefield-kit-proxy", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server)
            except OSError:
                client.close()
                continue
            relay = _Relay(self, client, server)
            for run in (relay.ask, relay.answer):
                threading.Thread(target=run, name="icefield-kit-proxy", daemon=True).start()


class _Relay:
    """One connection."""

    def __init__(self, faults: RequestFaults, client: socket.socket, server: socket.socket) -> None:
        self._faults, self._client, self._server = faults, client, server
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asking = False
        self._losing = False
        self._answered = threading.Event()
        self._first = threading.Semaphore(1)

    def ask(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                if not self._asking:
                    self._asking = True
                    verdict = self._faults.verdict()
                    if verdict == LATE_REQUEST:
                        self._hold_back(data)
                        return
                    if verdict == NO_REPLY:
                        while self._client.recv(1 << 16):
                            pass
                        break
                    if verdict == LOSE_REQUEST:
                        break
                    self._losing = verdict == LOSE_REPLY
                self._server.sendall(data)
        self._hang_up()

    def answer(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._losing:
                    break
                self._asking = False
                self._client.sendall(data)
        self._answered.set()
        self._hang_up()

    def _hold_back(self, data: bytes) -> None:
        """Take the rest of the request, break the connection of the client, and keep the connection to the server."""
        self._client.settimeout(_QUIET_SECONDS)
        with suppress(OSError):
            while more := self._client.recv(1 << 16):
                data += more
        self._losing = True
        self._faults.postpone(lambda: self._send_late(data))
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

    def _send_late(self, data: bytes) -> None:
        with suppress(OSError):
            self._server.sendall(data)
            self._answered.wait(_EXECUTED_SECONDS)
        self._hang_up()

    def _hang_up(self) -> None:
        last = not self._first.acquire(blocking=False)
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            if last:
                end.close()
