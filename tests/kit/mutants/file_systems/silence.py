"""File systems over a socket whose service falls silent, one defect each, and a right one."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any

from icefield.errors import FileMissing, StorageError

from mutants import Mutant, of
from mutants.file_systems.failing import Remote


class OverASocket(Remote):
    """Asks a service over TCP before each step, and waits for its answer for a time that a property states."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        super().__init__(properties)
        self.port = int(self.properties.get("socket.port", "0")) or service_port()

    def call(self, location: str, step: Callable[[], Any]) -> Any:
        try:
            with closing(socket.create_connection(("127.0.0.1", self.port), self.seconds)) as connection:
                connection.sendall(b"?")
                if not connection.recv(1):
                    raise ConnectionResetError("the service hung up")
        except OSError as error:
            self.silent(error, location)
        return super().call(location, step)

    @property
    def seconds(self) -> float | None:
        return float(self.properties.get("socket.seconds", "20"))

    def silent(self, error: OSError, location: str) -> None:
        raise StorageError(f"no answer about {location}", retryable=True, location=location) from error


class WaitsForEver(OverASocket):
    """Sets no time-out."""

    seconds = None  # type: ignore[assignment]


class TakesSilenceForYes(OverASocket):
    """Goes on without an answer."""

    def silent(self, error: OSError, location: str) -> None:
        pass


class TakesSilenceForMissing(OverASocket):
    """Reports a file as missing when no answer comes in time."""

    def silent(self, error: OSError, location: str) -> None:
        if isinstance(error, TimeoutError):
            raise FileMissing(f"no file {location}", location=location) from error
        super().silent(error, location)


class LetsTimeOutsThrough(OverASocket):
    """Raises the time-out of the socket."""

    def silent(self, error: OSError, location: str) -> None:
        if isinstance(error, TimeoutError):
            raise error
        super().silent(error, location)


@cache
def service_port() -> int:
    """The port of a service that answers each byte with one, for as long as this process lives."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1):
                self.request.sendall(data)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port: int = server.server_address[1]
    return port


_SILENCE = "test_a_store_that_never_answers_is_an_error_in_time"

MUTANTS: list[Mutant] = of(
    {
        WaitsForEver: (_SILENCE, "still waits after 3 s"),
        TakesSilenceForYes: (_SILENCE, "takes the silence of the store for an answer"),
        TakesSilenceForMissing: (_SILENCE, "does not say that the store is silent: FileMissing"),
        LetsTimeOutsThrough: (_SILENCE, "does not say that the store is silent: TimeoutError"),
    }
)
