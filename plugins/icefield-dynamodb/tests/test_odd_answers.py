"""Answers that no DynamoDB gives: each request ends in one of Icefield's errors, or in a lost reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, load_catalog
from icefield.errors import IcefieldError, StorageError
from icefield_dynamodb.items import ItemTable, ReplyLost
from icefield_dynamodb.options import ClientOptions

ODD: list[Any] = [
    *({}, [], None, "", 1, True, [{}]),
    *({"Table": value} for value in ({}, [], None, "x", 1, {"TableStatus": None}, {"TableStatus": {}})),
    *({"Item": value} for value in ({}, [], None, "x", 1)),
    *({"Item": {"metadataFile": value}} for value in ({}, [], None, "x", 1, {"S": None}, {"N": "1"}, {"L": []})),
    {"Item": {"entityId": {"S": "x"}}},
    {"Item": {"metadataFile": {"S": ""}}},
]


class Service:
    """Answers requests with what it was told for their kind, else as a table without items does."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                kind = self.headers["X-Amz-Target"].rpartition(".")[2]
                usual = b'{"Table": {"TableStatus": "ACTIVE"}}' if kind == "DescribeTable" else b"{}"
                body = outer.answers.get(kind, usual)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def properties(self, table: str) -> dict[str, str]:
        return {
            "lock.table": table,
            "dynamodb.endpoint": f"http://127.0.0.1:{self.server.server_port}",
            "dynamodb.region": "us-east-1",
            "dynamodb.access-key-id": "a",
            "dynamodb.secret-access-key": "b",
        }


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def _items(service: Service, name: str) -> ItemTable:
    return ItemTable.of(ClientOptions.of(service.properties(name)), name)


@pytest.mark.parametrize("odd", [*map(json.dumps, ODD), "", "{", "<html>", "\ud83d", '{"Item":' * 5])
def test_an_odd_answer_to_any_request_is_one_of_icefields_errors(service: Service, odd: str) -> None:
    body = odd.encode("utf-8", "surrogatepass")
    items = _items(service, f"t{abs(hash(odd))}")
    service.answers = dict.fromkeys(("DescribeTable", "GetItem", "PutItem", "DeleteItem"), body)
    try:
        found = items.read("key")
        assert found is None or all(isinstance(value, str) for value in found.values())
    except StorageError as error:
        assert "DynamoDB" in str(error)  # noqa: PT017
    for change in (lambda: items.put({"entityId": "key"}), lambda: items.delete("key", {"a": "b"})):
        with suppress(ReplyLost):
            assert change()
    try:
        _items(service, f"u{abs(hash(odd))}")
    except StorageError as error:
        assert "DynamoDB" in str(error)  # noqa: PT017


def _catalog(service: Service, folder: Path) -> Catalog:
    properties = service.properties(folder.name)
    return load_catalog("k", type="directory", commit="dynamodb-lock", warehouse=f"file://{folder}", **properties)


def test_an_item_that_names_no_file_is_one_of_icefields_errors(service: Service, tmp_path: Path) -> None:
    catalog = _catalog(service, tmp_path)
    for odd in ODD:
        service.answers = {"GetItem": json.dumps(odd).encode()}
        for call in (lambda: catalog.load_table("db.t"), lambda: catalog.list_namespaces()):
            with suppress(IcefieldError):
                call()
