"""The base of servers that stand for key services: JSON over HTTP or TLS, and master keys with versions."""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Answer = tuple[int, dict[str, Any]]


@dataclass
class MasterKeyDouble:
    """A master key for AES GCM. The versions count from 1, and the last one wraps."""

    versions: list[bytes] = field(default_factory=lambda: [os.urandom(32)])
    enabled: bool = True
    allowed: bool = True

    def rotate(self) -> None:
        self.versions.append(os.urandom(32))

    def encrypt(self, data: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + AESGCM(self.versions[-1]).encrypt(nonce, data, None)

    def decrypt(self, data: bytes, version: int) -> bytes | None:
        """The key; None if it is damaged, or if this version did not wrap it."""
        try:
            return AESGCM(self.versions[version - 1]).decrypt(data[:12], data[12:], None)
        except (InvalidTag, ValueError):
            return None


class KeyServiceDouble(ABC):
    """A server on the loopback address. A context manager."""

    def __init__(self, tls: SSLContext | None = None) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self.server.server_port

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @abstractmethod
    def answer(self, method: str, target: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        """The status and the document for a request."""


def _handler(double: KeyServiceDouble) -> type[BaseHTTPRequestHandler]:
    class DoubleHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True
        timeout = 60

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, document = double.answer(self.command, self.path, self.headers, json.loads(body) if body else {})
            sent = json.dumps({name: value for name, value in document.items() if name != "headers"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            for name, value in document.get("headers", {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do  # noqa: N815 - names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return DoubleHandler
