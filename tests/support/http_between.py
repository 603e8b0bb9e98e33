"""A proxy between a client and an HTTP server: it counts requests, and applies the faults of a test."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Asked:
    """A request: its method, its path with the query, its headers by lower-case name, its body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answered:
    """A reply."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    """After how many bytes of the body the connection breaks."""


Forward = Callable[[Asked], Answered]
Behaviour = Callable[[Asked, Forward], Answered | None]


def passing(asked: Asked, forward: Forward) -> Answered | None:
    """Hand on."""
    return forward(asked)


def lose_request(asked: Asked, forward: Forward) -> Answered | None:
    """The connection breaks before the server has the request."""
    return None


def lose_reply(asked: Asked, forward: Forward) -> Answered | None:
    """The server does it, and the connection breaks before the client knows."""
    forward(asked)
    return None


def answer(status: int) -> Behaviour:
    """The server is throttling, or out of service."""
    return lambda asked, forward: Answered(status)


def slow(seconds: float) -> Behaviour:
    """The server takes its time."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        time.sleep(seconds)
        return forward(asked)

    return behave


class Between:
    """A server on loopback in front of another; ``behave`` decides the fate of a request."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self.behave: Behaviour = passing
        self.server: Behaviour = passing  # makes the server behind answer like the real one
        self.asked: list[Asked] = []
        self._local = threading.local()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}{parts.path}"

    @contextmanager
    def open(self) -> Iterator[Between]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def faulty(self, fault: Behaviour, when: Callable[[Asked], bool], times: int | None = 1) -> None:
        """Apply the fault to the first ``times`` requests that satisfy ``when``, or to all if ``times`` is None."""
        left = [times]
        lock = threading.Lock()

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            with lock:
                hit = when(asked) and left[0] != 0
                if hit and left[0] is not None:
                    left[0] -= 1
            return (fault if hit else passing)(asked, forward)

        self.behave = behave

    def as_the_server(self, asked: Asked) -> Answered:
        """Return the server's answer."""
        answered = self.server(asked, self.forward)
        assert answered is not None
        return answered

    def forward(self, asked: Asked) -> Answered:
        """Ask the server behind."""
        connection = http.client.HTTPConnection(self._host or "", self._port, timeout=30)
        try:
            connection.putrequest(asked.method, asked.path, skip_host=True, skip_accept_encoding=True)
            for name, value in asked.headers.items():
                if name not in _HOP:
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(asked.body)))
            connection.endheaders(asked.body)
            answered = connection.getresponse()
            headers = {name: value for name, value in answered.getheaders() if name.lower() not in _HOP}
            if asked.method == "HEAD" and answered.getheader("content-length"):
                headers["content-length"] = str(answered.getheader("content-length"))
            return Answered(answered.status, headers, answered.read())
        finally:
            connection.close()

    def half(self, asked: Asked, forward: Forward) -> Answered | None:
        """The connection breaks in the middle of the request."""
        with socket.create_connection((self._host, self._port or 80), timeout=30) as wire:
            lines = [f"{asked.method} {asked.path} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in asked.headers.items() if name not in _HOP]
            head = "\r\n".join([*lines, f"content-length: {len(asked.body)}", "", ""]).encode()
            wire.sendall(head + asked.body[: len(asked.body) // 2])
        return None

    def half_reply(self, asked: Asked, forward: Forward) -> Answered | None:
        """The connection breaks in the middle of the answer."""
        answered = forward(asked)
        return replace(answered, cut=len(answered.body) // 2)


def _handler(between: Between) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # a reply is one write, and none waits for the acknowledgement of another
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            try:
                self.raw_requestline = self.rfile.readline(65_537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self._serve()
            except OSError:
                self.close_connection = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            between.asked.append(asked)
            answered = between.behave(asked, between.as_the_server)
            if answered is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response_only(answered.status)
            for name, value in answered.headers.items():
                self.send_header(name, value)
            if asked.method != "HEAD":
                self.send_header("content-length", str(len(answered.body)))
            self.end_headers()
            self.wfile.write(answered.body[: answered.cut])
            self.wfile.flush()
            if answered.cut is not None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    return Handler
