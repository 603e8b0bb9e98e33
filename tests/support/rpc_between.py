"""A proxy between a client and a name node: it can swallow the replies to calls, or hang up before a call."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class RpcBetween:
    """A relay on loopback. Calls are known by their names, which travel as plain bytes."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._call, self._left, self._before, self._then = b"", 0, False, self._nothing
        self._down = False
        self._silent = False
        self.struck = 0

    @contextmanager
    def open(self) -> Iterator[RpcBetween]:
        """Serve until the block ends."""
        threading.Thread(target=self._serve, daemon=True).start()
        try:
            yield self
        finally:
            self._down = True
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
            self._listener.close()

    def lose(self, call: str, times: int = 1, *, before: bool = False, then_down: bool = False) -> None:
        """Lose the replies to the next calls of that name, or with ``before`` the calls themselves.

        With ``then_down`` the proxy serves no client after the first lost reply.
        """
        self._call, self._left, self._before = call.encode(), times, before
        self._then = self._go_down if then_down else self._nothing

    def fall_silent(self, call: str) -> None:
        """Pass on the next call of that name, and from then on withhold all replies without closing the connection."""
        self._call, self._left, self._before, self._then = call.encode(), 1, False, self._say_no_more

    def _nothing(self) -> None: ...

    def _go_down(self) -> None:
        self._down = True

    def _say_no_more(self) -> None:
        self._silent = True

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._down:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._behind))
            muted = threading.Event()
            for ends in ((client, server, muted, True), (server, client, muted, False)):
                threading.Thread(target=self._relay, args=ends, daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, muted: threading.Event, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if asks and self._strikes(data):
                    muted.set()
                    if not self._before:
                        target.sendall(data)
                        time.sleep(0.2)  # long enough for the name node to act
                    if not self._silent:
                        break
                elif asks or not (muted.is_set() or self._silent):
                    target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _strikes(self, data: bytes) -> bool:
        with self._lock:
            if not self._left or not self._call or self._call not in data:
                return False
            self._left -= 1
            self.struck += 1
            self._then()
            return True
