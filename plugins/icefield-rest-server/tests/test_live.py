"""The server answers `/health/live` whatever clients send, and gives up the answers that they do not read."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest
from icefield_rest_server import Settings
from rest_bodies import SCHEMA
from rest_watched import LONGEST, watched

_LONGEST: Final = 0.2
"""Seconds of the server's CPU in which its loop may have no turn."""
_MANY: Final = 4 * 1024 * 1024
_LARGEST: Final = Settings().max_body


def _repeated(before: str, piece: str, after: str = "", size: int = _MANY) -> bytes:
    return f"{before}{piece * ((size - len(before) - len(after)) // len(piece))}{after}".encode()


BODIES: dict[str, Callable[[], bytes]] = {
    "open brackets": lambda: b"[" * _MANY,
    "open braces": lambda: _repeated("", '{"a":'),
    "closed brackets": lambda: b"]" * _MANY,
    "arrays": lambda: _repeated('{"a":[', "[],", "1]}"),
    "objects": lambda: _repeated('{"a":[', "{},", "1]}"),
    "numbers": lambda: _repeated('{"a":[', "1,", "1]}"),
    "long numbers": lambda: b'{"a":' + b"9" * _MANY + b"}",
    "strings": lambda: _repeated('{"a":[', '"",', "1]}"),
    "keys": lambda: json.dumps({f"k{number}": 1 for number in range(300_000)}).encode(),
    "one string": lambda: b'{"a":"' + b"x" * _MANY + b'"}',
    "escapes": lambda: _repeated('{"a":"', "\\u0000", '"}'),
    "escaped quotes": lambda: _repeated('{"a":"', '\\"[', '"}'),
    "backslashes": lambda: b'{"a":"' + b"\\" * _MANY + b'"}',
    "blanks": lambda: b" " * _MANY + b"{}",
    "zeros": lambda: bytes(_MANY),
    "no text": lambda: b"\xff" * _MANY,
    "as many arrays as may be": lambda: _repeated('{"a":[', "[],", "1]}", 290_000),
    "as many objects as may be": lambda: _repeated('{"a":[', '{"a":1},', "1]}", 1_290_000),
    "as many numbers as may be": lambda: _repeated('{"a":[', "1,", "1]}", 990_000),
    "as many strings as may be": lambda: _repeated('{"a":[', '"abc",', "1]}", 2_900_000),
    "as many keys as may be": lambda: json.dumps({f"k{number}": 1 for number in range(190_000)}).encode(),
    "fields of a schema": lambda: json.dumps({"name": "t", "schema": wide(10_000)}).encode(),
}
"""The worst bodies, refused before they are decoded or just small enough to be."""


def wide(count: int) -> dict[str, object]:
    fields = [{"id": number, "name": f"c{number}", "required": False, "type": "long"} for number in range(1, count + 1)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("live")
    place = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    with watched(place, idle_seconds=1.0, max_unread=48 * 1024 * 1024) as uri:
        assert httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["db"]}).status_code == 200
        yield uri


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_the_loop_is_not_blocked_by_a_body(uri: str, name: str) -> None:
    body = BODIES[name]()
    httpx.get(f"{uri}{LONGEST}")

    def send(path: str) -> int:
        return httpx.post(f"{uri}/v1/{path}", content=body, timeout=300).status_code

    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(send, path) for path in ("namespaces/db/tables", "namespaces", "namespaces/db/tables/t")]
        while not all(each.done() for each in sent):
            assert httpx.get(f"{uri}/health/live", timeout=300).text == "ok"
        statuses = [each.result() for each in sent]
    assert all(each in (200, 400, 404, 409, 413, 503) for each in statuses), statuses
    gap = float(httpx.get(f"{uri}{LONGEST}").text)
    print(f"{name}: {len(body):,} bytes, {statuses}, {gap:.3f} s")
    assert gap < _LONGEST


LARGEST: dict[str, Callable[[], bytes]] = {
    "open brackets": lambda: b"[" * _LARGEST,
    "brackets after a few values": lambda: b'{"a":[' + b"[],1," * 50_000 + b"[" * (_LARGEST - 300_000),
    "one string": lambda: b'{"a":"' + b"x" * (_LARGEST - 8) + b'"}',
    "escapes": lambda: _repeated('{"a":"', "\\u00e9", '"}', _LARGEST),
    "escaped quotes": lambda: _repeated('{"a":"', '\\"[', '"}', _LARGEST),
    "blanks": lambda: b" " * (_LARGEST - 2) + b"{}",
}
"""Bodies as large as a commit may have."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGEST)
def test_the_loop_is_not_blocked_by_the_largest_body(uri: str, name: str) -> None:
    body = LARGEST[name]()
    httpx.get(f"{uri}{LONGEST}")
    with ThreadPoolExecutor(2) as pool:
        sent = pool.submit(httpx.post, f"{uri}/v1/namespaces/db/tables/t", content=body, timeout=300)
        while not sent.done():
            assert httpx.get(f"{uri}/health/live", timeout=300).text == "ok"
        assert sent.result().status_code in (400, 404, 413)
    gap = float(httpx.get(f"{uri}{LONGEST}").text)
    print(f"{name}: {len(body):,} bytes, {sent.result().status_code}, {gap:.3f} s")
    assert gap < _LONGEST


@pytest.mark.slow
def test_bodies_that_come_slowly_hold_up_nobody(uri: str) -> None:
    parts = urlsplit(uri)
    httpx.get(f"{uri}{LONGEST}")
    head = b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with ExitStack() as opened:
        wires = []
        for number in range(60):
            wire = opened.enter_context(closing(socket.create_connection((parts.hostname, parts.port), 60)))
            wire.sendall(
                head + (b"Transfer-Encoding: chunked\r\n\r\n" if number % 2 else b"Content-Length: 900\r\n\r\n")
            )
            wires.append(wire)
        for _ in range(20):
            for number, wire in enumerate(wires):
                wire.sendall(b"1\r\n[\r\n" if number % 2 else b"[")
            assert httpx.get(f"{uri}/health/live", timeout=60).text == "ok"
            assert httpx.get(f"{uri}/v1/namespaces", timeout=60).status_code == 200
    gap = float(httpx.get(f"{uri}{LONGEST}").text)
    print(f"{len(wires)} slow bodies, {gap:.3f} s")
    assert gap < _LONGEST


@pytest.mark.slow
def test_answers_that_nobody_reads_are_given_up(uri: str) -> None:
    properties = {f"k{number}": "v" * 1000 for number in range(8_000)}
    body = {"name": "large", "schema": SCHEMA, "properties": properties}
    assert httpx.post(f"{uri}/v1/namespaces/db/tables", json=body, timeout=60).status_code == 200
    where = f"{uri}/v1/namespaces/db/tables/large"
    assert len(httpx.get(where, timeout=60).content) > 8_000_000
    httpx.get(f"{uri}{LONGEST}")
    parts = urlsplit(uri)
    with ExitStack() as opened:
        wires = []
        for _ in range(10):
            wire = opened.enter_context(closing(socket.socket()))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.settimeout(120)
            wire.connect((parts.hostname, parts.port))
            wire.sendall(b"GET /v1/namespaces/db/tables/large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            wires.append(wire)
        time.sleep(6)
        assert httpx.get(f"{uri}/health/live", timeout=60).text == "ok"
        # What had left the server is still there to be read, and then the connection ends.
        assert all(received(wire) < 8_000_000 for wire in wires)
    assert len(httpx.get(where, timeout=60).content) > 8_000_000, "who reads an answer gets it whole"
    assert float(httpx.get(f"{uri}{LONGEST}").text) < _LONGEST


def received(wire: socket.socket) -> int:
    """How many bytes a connection gives before its end."""
    size = 0
    with suppress(ConnectionError):
        while piece := wire.recv(1024 * 1024):
            size += len(piece)
    return size
