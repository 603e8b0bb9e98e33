"""A server on the loopback address that refuses each request, and repeats it in the error."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any, Final, Self

_BAD_REQUEST: Final = 400


class EchoingServer:
    """Answers each request with status 400; the error holds its headers and body. A context manager.

    The error has the forms of AWS, Azure, Google and Vault at once, so that their clients read its message.
    """

    def __init__(self, tls: SSLContext | None = None) -> None:
        self.targets: list[str] = []
        """The targets of the requests."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.targets))
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_port

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(targets: list[str]) -> type[BaseHTTPRequestHandler]:
    class EchoHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def answer(self) -> None:
            targets.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = f"this request is refused: {self.path} {self.headers} {body.decode('latin-1')}"
            error = {"code": _BAD_REQUEST, "status": "INVALID_ARGUMENT", "message": said}
            sent = json.dumps(
                {"__type": "ValidationException", "message": said, "errors": [said], "error": error}
            ).encode()
            self.send_response(_BAD_REQUEST)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815 - names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return EchoHandler
