"""A service that keeps strings under names, with a compare-and-set: ``python register_service.py`` states its port.

``GET`` gives the value or 404, and for ``/`` all names, a line each. ``PUT`` sets the value if the current one equals
the header ``If-Match``, or, with ``If-None-Match: *``, if there is none; ``DELETE`` deletes it if there is one.
Otherwise the answer is 412.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VALUES: dict[str, str] = {}
LOCK = threading.Lock()


class Answers(BaseHTTPRequestHandler):
    """Answers one request after another on a connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        value = VALUES.get(self.path) if self.path != "/" else "\n".join(sorted([*VALUES]))
        self.answer(404 if value is None else 200, value or "")

    def do_PUT(self) -> None:
        value = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with LOCK:
            expected = None if self.headers.get("If-None-Match") == "*" else self.headers["If-Match"]
            fits = VALUES.get(self.path) == expected
            if fits:
                VALUES[self.path] = value
        self.answer(204 if fits else 412)

    def do_DELETE(self) -> None:
        with LOCK:
            known = VALUES.pop(self.path, None) is not None
        self.answer(204 if known else 412)

    def answer(self, status: int, value: str = "") -> None:
        data = value.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Service(ThreadingHTTPServer):
    """Accepts as many connections at once as tests open."""

    request_queue_size = 128
    daemon_threads = True


if __name__ == "__main__":
    service = Service(("127.0.0.1", 0), Answers)
    print(service.server_port, flush=True)
    service.serve_forever()
