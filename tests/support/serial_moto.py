"""moto's server with each request handled alone: ``python serial_moto.py PORT``. It is S3, STS, Glue and KMS.

moto checks a condition and then writes, without a lock around the two, so that more than one of many writers at once
may learn that it created a file. When requests are handled one after another, its conditions hold as in S3.

Some things that moto lacks are added here, as AWS documents them. In Glue, ``UpdateTable`` refuses a ``VersionId`` that
is not the table's, and listings come in pages. In KMS, ``Decrypt`` looks at ``KeyId``, and disabled keys do not work.
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
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.kms.models import KmsBackend
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


def check_versions_of_tables() -> None:
    """Make ``UpdateTable`` of Glue refuse another ``VersionId`` than the table's, which moto does not read."""
    update = GlueResponse.update_table

    def checked(self: Any) -> Any:
        name, given = self.parameters["TableInput"]["Name"], self.parameters.get("VersionId")
        present = self.glue_backend.get_table(self.parameters["DatabaseName"], name).as_dict()["VersionId"]
        if given is not None and given != present:
            said = "Update table failed due to concurrent modifications."
            raise GlueClientError("ConcurrentModificationException", said)
        return update(self)

    GlueResponse.update_table = checked


def check_master_keys() -> None:
    """Make KMS refuse disabled master keys, and ``Decrypt`` the keys that another master key than ``KeyId`` wrapped."""
    encrypt, decrypt = KmsBackend.encrypt, KmsBackend.decrypt

    def enabled(self: Any, key_id: str) -> str:
        found = self.any_id_to_key_id(key_id)
        if not self.keys[found].enabled:
            raise JsonRESTError("DisabledException", f"{self.keys[found].arn} is disabled.")
        return found

    def checked_encrypt(self: Any, key_id: str, *args: Any, **kwargs: Any) -> Any:
        return encrypt(self, enabled(self, key_id), *args, **kwargs)

    def checked_decrypt(self: Any, ciphertext_blob: bytes, *args: Any, key_id: str | None = None, **kwargs: Any) -> Any:
        named = ciphertext_blob[:36].decode("ascii", "replace")  # moto's form begins with the id of the master key
        if named not in self.keys:
            raise JsonRESTError("InvalidCiphertextException", "")
        if key_id is not None and named != enabled(self, key_id):
            raise JsonRESTError("IncorrectKeyException", "The key ID in the request does not identify a CMK")
        return decrypt(self, ciphertext_blob, *args, key_id=key_id, **kwargs)

    KmsBackend.encrypt, KmsBackend.decrypt = checked_encrypt, checked_decrypt


def list_in_pages() -> None:
    """Make ``GetTables`` and ``GetDatabases`` of Glue give at most ``MaxResults`` or 100 entries, and a token."""
    for name, key in (("get_tables", "TableList"), ("get_databases", "DatabaseList")):
        setattr(GlueResponse, name, _paged(getattr(GlueResponse, name), key))


def _paged(listing: Any, key: str) -> Any:
    def paged(self: Any) -> Any:
        every = listing(self).result[key]
        start, size = int(self.parameters.get("NextToken") or 0), int(self.parameters.get("MaxResults") or 100)
        more = {"NextToken": str(start + size)} if start + size < len(every) else {}
        return ActionResult({key: every[start : start + size], **more})

    return paged


def by_service(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Dispatch a request to the service that its signature names, or S3.

    moto's own dispatcher looks at 180 folders for each request to find out that it is for S3.
    """
    signed = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    name = "s3" if signed is None else signed[1]
    return backend(name if name in ("sts", "glue", "kms") else "s3")(environ, start_response)


backend = lru_cache(create_backend_app)


def serve(port: int) -> None:
    """Serve on loopback until the process ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    keep_whole_objects()
    look_errors_up_once()
    read_timestamps_once()
    check_versions_of_tables()
    list_in_pages()
    check_master_keys()
    run_simple("127.0.0.1", port, by_service, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
