"""moto's server with each request handled alone: ``python serial_moto.py PORT``.

moto looks whether a condition holds and then writes, without a lock between the two, so that of many writers at once
more than one may learn that it created a file. One request after another, its conditions hold as those of S3 do.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import BytesIO
from typing import Any

from moto.core import errors, serialize
from moto.s3.models import FakeKey
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

_SERVICE = re.compile(r"/([a-z0-9-]+)/aws4_request")


class Handler(WSGIRequestHandler):
    """Answers in one write, so that none waits for the acknowledgement of another."""

    wbufsize = -1
    disable_nagle_algorithm = True

    def handle_expect_100(self) -> bool:
        """Have the client go on at once; whoever else sees the header would say so again."""
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.wfile.flush()
        del self.headers["Expect"]
        return True

    def log_request(self, *arguments: Any) -> None:
        """Say nothing."""


def serial(application: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """The application, one request at a time."""
    turn = threading.Lock()

    def handle(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # Read before the turn begins: a client that falls silent holds up nobody else.
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        with turn:
            return list(application(environ, start_response))

    return handle


def keep_whole_objects() -> None:
    """Have a range cost what a range has, and not what the whole object has: moto reads that for each request."""
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
    """Have moto keep its table of errors, which it makes anew for each error that it answers, from 44 shapes."""
    factory = errors.ErrorLookupFactory()
    errors.ErrorLookupFactory = lambda: factory


def read_timestamps_once() -> None:
    """Have moto keep what the timestamps of a listing are: to parse them takes a third of its time."""
    serialize.parse_to_aware_datetime = lru_cache(10_000)(serialize.parse_to_aware_datetime)


def by_service(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """What a signature names as the service, or S3.

    Not moto's dispatcher: to find out that a request is for S3 it looks at 180 folders, each time.
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
    run_simple("127.0.0.1", port, serial(by_service), threaded=True, request_handler=Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
