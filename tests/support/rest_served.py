"""An ASGI application on loopback, in a thread of the test, and a catalog with a table for it to serve."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import uvicorn
from icefield import Catalog, Table, load_catalog
from servers.process import listening, uri_of

_SECONDS_TO_END: Final = 10


@contextmanager
def served(application: Any, **options: Any) -> Iterator[str]:
    """Serve an application until the block ends, with the command's HTTP parser. ``options`` are uvicorn's."""
    given = {"http": "icefield_rest_server.wire:BoundedHttp", "proxy_headers": False, "log_level": "warning", **options}
    with listening() as address:
        config = uvicorn.Config(application, timeout_graceful_shutdown=_SECONDS_TO_END, **given)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([address],))
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server ended before it began"
            time.sleep(0.01)
        try:
            yield uri_of(address)
        finally:
            server.should_exit = True
            thread.join()


def raw_answer(url: str, request: bytes) -> bytes:
    """The bytes of the answers to a request that is sent as it is, until the server closes the connection."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as wire:
        wire.sendall(request)
        answer = b""
        while piece := wire.recv(65_536):
            answer += piece
    return answer


@contextmanager
def with_table(folder: Path, schema: pa.Schema) -> Iterator[tuple[Catalog, Table]]:
    """A catalog over SQLite, and an empty table ``db.t`` in it, with merge-on-read deletes."""
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    with load_catalog("served", type="sql", **place) as catalog:
        catalog.create_namespace("db")
        properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        yield catalog, catalog.create_table("db.t", schema, properties=properties)
