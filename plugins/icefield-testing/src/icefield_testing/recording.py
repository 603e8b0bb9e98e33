"""A server on the loopback address that records all bytes that it receives: a stranger to which nothing may be sent."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final, Self

HOST: Final = "127.0.0.1"
_ANSWER: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_MOST: Final = 1 << 20
_SECONDS: Final = 5.0
_TLS: Final = b"\x16"


class RecordingServer:
    """Records all bytes that arrive at ``port``, answers each HTTP request with 404, and closes any other connection.

    A context manager. Bytes that are not HTTP, such as the first bytes of TLS, are recorded, too.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.host: str = HOST
        self.port: int = self._listener.getsockname()[1]
        self._received: list[bytearray] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def received(self) -> list[bytes]:
        """The received bytes of each connection; a connection without bytes is included."""
        return [bytes(each) for each in self._received]

    def requests(self) -> list[tuple[str, bytes]]:
        """The target and the bytes of each request."""
        return [(_target(data), data) for data in self.received()]

    def settle(self) -> None:
        """Wait until every connection that was made before this call is in ``received``."""
        with socket.create_connection((self.host, self.port), timeout=_SECONDS) as own:
            mark = f"GET /settle-{own.getsockname()[1]} HTTP/1.1\r\n\r\n".encode()
            own.sendall(mark)
            while own.recv(1_024):
                pass
        self._received = [each for each in self._received if each != mark]

    def forget(self) -> None:
        """Forget the received bytes."""
        self._received = []

    def close(self) -> None:
        """Stop listening."""
        with suppress(OSError):  # wakes the thread that waits for the next connection
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            kept = bytearray()
            self._received.append(kept)
            threading.Thread(target=self._answer, args=(connection, kept), daemon=True).start()

    def _answer(self, connection: socket.socket, kept: bytearray) -> None:
        with connection, suppress(OSError):
            connection.settimeout(_SECONDS)
            while not kept.startswith(_TLS) and not _is_whole(kept) and len(kept) < _MOST:
                piece = connection.recv(65_536)
                if not piece:
                    break
                kept += piece
            if not kept.startswith(_TLS):
                connection.sendall(_ANSWER)


def _target(data: bytes) -> str:
    parts = data.partition(b"\r\n")[0].split(b" ")
    return parts[1].decode("latin-1") if len(parts) > 1 else ""


def _is_whole(data: bytearray) -> bool:
    head, end, body = bytes(data).partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
        if line.startswith(b"transfer-encoding:"):
            return body.endswith(b"0\r\n\r\n")
    return True
