"""Loading a table with 1,000 snapshots through a REST catalog, against PyIceberg's client before the same server.

The server is a process that answers from memory, so that the times compare the clients.
"""

from __future__ import annotations

import json
import multiprocessing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from bench_metadata import LOCATION, table_with
from harness import compare, main
from icefield import load_catalog
from pyiceberg.catalog.rest import RestCatalog

SNAPSHOTS = 1_000
TABLE = ("db", "events")


def serve(data: bytes, ready: Connection) -> None:
    """Answer two requests, for the configuration and for the table, until the process is ended."""
    config = json.dumps({"defaults": {}, "overrides": {}}).encode()
    located = json.dumps(f"{LOCATION}/metadata/01000.metadata.json").encode()
    table = b'{"metadata-location":' + located + b',"metadata":' + data + b',"config":{}}'

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:  # the name that the base class looks for
            body = config if self.path.startswith("/v1/config") else table
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_port)
    server.serve_forever()


def run() -> None:
    """Compare how the clients load a table for the first time, and again."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(table_with(SNAPSHOTS), there), daemon=True
    )
    process.start()
    try:
        uri = f"http://127.0.0.1:{here.recv()}"
        peer = RestCatalog("peer", uri=uri)
        with load_catalog("ours", type="rest", uri=uri) as catalog:
            known: Any = catalog.backend
            ours, theirs = catalog.load_table(TABLE), peer.load_table(TABLE)
            assert ours.metadata.current_snapshot_id == theirs.metadata.current_snapshot_id
            assert len(ours.snapshots()) == len(theirs.metadata.snapshots) == SNAPSHOTS

            def first() -> Any:
                known._tables.forget(TABLE)
                return catalog.load_table(TABLE)

            compare(f"load_table, {SNAPSHOTS} snapshots", first, lambda: peer.load_table(TABLE), runs=15, floor=3.0)
            compare("load_table again", lambda: catalog.load_table(TABLE), lambda: peer.load_table(TABLE), runs=15)
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main(run)
