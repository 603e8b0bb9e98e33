"""A minimal service over TCP that keeps pointers of tables, and a correct strategy over it."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from icefield.abc import FileSystem, Proposal
from icefield.errors import CommitStateUnknown, NoSuchTable, StorageError
from icefield.toolkit import MetastoreStrategy, OutcomeUnknown


@contextmanager
def served() -> Iterator[int]:
    """The port of a service that ends with the block."""
    pointers: dict[str, str] = {}
    claims: dict[str, tuple[str, str | None, float]] = {}
    lock = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                asked = json.loads(line)
                with lock:
                    reply = answer(asked)
                self.wfile.write(json.dumps(reply).encode() + b"\n")

    def answer(asked: dict[str, Any]) -> Any:
        if asked["do"] == "claim":  # gives the holder and its data
            owner, data, until = claims.get(asked["table"], ("", None, 0.0))
            if until < time.monotonic() or owner == asked["owner"]:
                owner, data = asked["owner"], asked.get("data")
                claims[asked["table"]] = owner, data, time.monotonic() + asked["seconds"]
            return owner, data
        if asked["do"] == "release":
            if claims.get(asked["table"], ("",))[0] == asked["owner"]:
                del claims[asked["table"]]
            return None
        before = pointers.get(asked["table"])
        if asked["do"] == "swap":
            if before != asked["old"]:
                return False
            pointers[asked["table"]] = asked["new"]
            return True
        if asked["do"] == "set":
            pointers[asked["table"]] = asked["new"]
        if asked["do"] == "drop":
            pointers.pop(asked["table"], None)
        return before

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def ask(port: int, wait_seconds: float | None = 10.0, /, **asked: Any) -> Any:
    """Send one request over a new connection."""
    with socket.create_connection(("127.0.0.1", port), wait_seconds) as connection:
        return reply_over(connection, **asked)


def reply_over(connection: socket.socket, **asked: Any) -> Any:
    """Send one request over a connection."""
    connection.sendall(json.dumps(asked).encode() + b"\n")
    with connection.makefile("rb") as file:
        reply = file.readline()
    if not reply:
        raise ConnectionResetError("the service hung up")
    return json.loads(reply)


class ServiceStrategy(MetastoreStrategy):
    """Check-and-put of a pointer that the service keeps."""

    def __init__(self, location: str, file_system: FileSystem, port: int) -> None:
        super().__init__(("db", location), location, file_system, {})
        self.port = port

    def ask(self, do: str, **asked: Any) -> Any:
        return ask(self.port, self.wait_seconds, do=do, table=self.key, **asked)

    @property
    def wait_seconds(self) -> float | None:
        """How long it waits for an answer."""
        return float(self.properties.get("service.seconds", "10"))

    @property
    def key(self) -> str:
        """The name of the table in the service."""
        return self.location

    def read_pointer(self) -> str | None:
        try:
            found: str | None = self.ask("get")
        except OSError as error:
            raise StorageError("the service does not answer", retryable=True) from error
        return found

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError as error:
            raise OutcomeUnknown(str(error)) from error

    def drop(self) -> None:
        try:
            found = self.ask("drop")
        except OSError as error:
            raise CommitStateUnknown(f"the reply to dropping {self.location} was lost", table=self.table) from error
        if found is None:
            raise NoSuchTable(f"no table {self.location}")
