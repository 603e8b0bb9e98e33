"""moto's server with each request handled alone: ``python serial_moto.py PORT``.

moto checks a condition and then writes, without a lock around the two, so that more than one of many writers at once
may learn that it created a file. When requests are handled one after another, its conditions hold as in S3.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterable
from functools import lru_cache
from io import BytesIO
from typing import Any

from moto.core import errors, serialize
from moto.s3.models import FakeKey
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple
from werkzeug.test import run_wsgi_app

_SERVICE = re.compile(r"/([a-z0-9-]+)/aws4_request")


class Handler(WSGIRequestHandler):
    """Answers all requests of a connection, each in one write, so that none waits for the acknowledgement of another.

    werkzeug itself closes the connection after each response, and delays a response to wait for more data.
    """

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    turn = threading.Lock()

    def run_wsgi(self) -> None:
        """Answer a request, one at a time."""
        environ = self.make_environ()
        # Read before the turn begins: a client that falls silent does not hold up others.
        environ["wsgi.input"] = BytesIO(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        with self.turn:
            body, status, headers = run_wsgi_app(self.server.app, environ)
            content = b"".join(body)  # the rest of the data is read from the store in this turn
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def handle_expect_100(self) -> bool:
        """Send the reply to ``Expect: 100-continue`` at once, not together with the response."""
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def log_request(self, *arguments: Any) -> None:
        """Say nothing."""


def keep_whole_objects() -> None:
    """Keep whole objects in memory, so that a range is cheap: moto reads the whole object for each request."""
    read, write = FakeKey.value.fget, FakeKey.value.fset

    def value(key: Any) -> bytes:
        kept = key.__dict__.get("_kept")
        if kept is None:
            kept = key.__dict__["_kept"] = read(key)
        return kept

    def put(key: Any, data: bytes) -> None:
        key.__dict__.pop("_kept", None)
        write(key, data)

    FakeKey.value = property(value, put)


def look_errors_up_once() -> None:
    """Make moto cache its table of errors, which it otherwise builds from 44 shapes for each error."""
    factory = errors.ErrorLookupFactory()
    errors.ErrorLookupFactory = lambda: factory


def read_timestamps_once() -> None:
    """Have moto cache parsed timestamps of listings: parsing them takes a third of its time."""
    serialize.parse_to_aware_datetime = lru_cache(10_000)(serialize.parse_to_aware_datetime)


def by_service(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Dispatch a request to the service that its signature names, or S3.

    moto's own dispatcher looks at 180 folders for each request to find out that it is for S3.
    """
    signed = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    return backend("sts" if signed is not None and signed[1] == "sts" else "s3")(environ, start_response)


backend = lru_cache(create_backend_app)


def serve(port: int) -> None:
    """Serve on loopback until the process ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    keep_whole_objects()
    look_errors_up_once()
    read_timestamps_once()
    run_simple("127.0.0.1", port, by_service, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
