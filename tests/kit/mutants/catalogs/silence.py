"""Catalogs over a service that never answers: they wait for ever, or take the silence for an answer."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Mapping
from functools import cache

from dictionary_catalog import DictionaryBackend
from icefield.abc import NamespaceName, Page
from icefield.errors import NoSuchNamespace, StorageError

from mutants import Mutant, of

SILENT = "test_a_service_that_never_answers_is_an_error_in_time"


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(self.request.recv(100))


@cache
def echoing() -> int:
    """The port of a service that echoes one request of each connection."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


class OverASocket(DictionaryBackend):
    """A right catalog, which asks a service before each listing and each creation, with a time-out."""

    def asks(self) -> None:
        """Ask the service."""
        try:
            self.reply()
        except OSError as error:
            raise StorageError("the service does not answer", retryable=True) from error

    def reply(self) -> bytes:
        """The answer of the service. Raises ``OSError``."""
        port = int(self.properties.get("dictionary.port", echoing()))
        with socket.create_connection(("127.0.0.1", port), self.seconds()) as connection:
            connection.sendall(b"?")
            return connection.recv(100)

    def seconds(self) -> float | None:
        """The time-out."""
        return float(self.properties.get("dictionary.seconds", 30.0))

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        self.asks()
        return super().list_namespaces(parent, token=token, size=size)

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self.asks()
        super().create_namespace(namespace, properties)


class WaitsForEver(OverASocket):
    def seconds(self) -> None:
        return None


class LetsTheTimeOutThrough(OverASocket):
    def asks(self) -> None:
        self.reply()


class TakesSilenceForAnEmptyPage(OverASocket):
    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        try:
            return super().list_namespaces(parent, token=token, size=size)
        except StorageError:
            return Page(())


class TakesSilenceForNoNamespace(OverASocket):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        try:
            super().create_namespace(namespace, properties)
        except StorageError as error:
            raise NoSuchNamespace("there is no parent", namespace=namespace) from error


MUTANTS: list[Mutant] = of(
    {
        WaitsForEver: (SILENT, "create_namespace still waits after 1 s without an answer"),
        LetsTheTimeOutThrough: (SILENT, "list_namespaces does not say that the service is silent: TimeoutError"),
        TakesSilenceForAnEmptyPage: (SILENT, "list_namespaces takes the silence of the service for an answer"),
        TakesSilenceForNoNamespace: (SILENT, "create_namespace does not say that the service is silent"),
    }
)
