"""The server as processes of its own, and short-lived credentials of AWS STS."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from certificates import certified
from icefield import load_catalog
from icefield.errors import InvalidArgument, LocationRefused, StorageError, UnsafeCommit
from icefield_rest_server import Options, StaticTokens, StsCredentials, app, check
from icefield_rest_server.wire import BoundedHttp
from rest_process import begin
from rest_served import raw_answer, served
from servers.process import answers, free_port, listening, uri_of

SCHEMA = pa.schema([("id", pa.int64())])


def test_a_server_that_others_reach_wants_to_know_who_they_are(tmp_path: Path) -> None:
    with pytest.raises(UnsafeCommit, match="give tokens"):
        check(Options(host="0.0.0.0"))
    (tmp_path / "tokens").write_text("alice 0123456789abcdef\n")
    settings = check(Options(host="0.0.0.0", tokens=str(tmp_path / "tokens"), workers=2))
    assert settings.authenticator is not None
    with pytest.raises(InvalidArgument, match="issuer and audience"):
        check(Options(jwks="https://example.org/jwks"))


def test_a_catalog_that_others_use_opens_nothing_outside_its_warehouse_unless_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("alice 0123456789abcdef\n")
    given = {"type": "sql", "uri": "sqlite://", "warehouse": f"file://{tmp_path}/warehouse"}
    alone, others = Options(catalog="c"), Options(catalog="c", tokens=str(tmp_path / "tokens"))
    elsewhere = f"file://{tmp_path}/elsewhere/t"
    for options, more, is_open in (
        (alone, {}, True),
        (others, {}, False),
        (others, {"location.allowed-roots": f"file://{tmp_path}"}, True),
    ):
        with load_catalog(options.catalog, **given, **more) as catalog:
            app(catalog, options.settings())
            catalog.create_namespace("db")
            catalog.create_table("db.t", SCHEMA)
            if is_open:
                catalog.create_table("db.u", SCHEMA, location=elsewhere)
            else:
                with pytest.raises(LocationRefused):
                    catalog.create_table("db.u", SCHEMA, location=elsewhere)


@pytest.mark.parametrize("text", ["", "alice", "alice short", "a 0123456789abcdef\na 0123456789abcdeg", "a b c"])
def test_a_file_of_tokens_that_cannot_be_used_says_so_and_shows_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(InvalidArgument) as raised:
        StaticTokens.from_file(tmp_path / "tokens")
    assert "0123456789" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path, workers: int) -> None:
    port = free_port()
    settings = {
        "ICEFIELD_CATALOG__LAKE__TYPE": "sql",
        "ICEFIELD_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/catalog.db",
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": f"file://{tmp_path}/warehouse",
    }
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    command += ["--workers", str(workers)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env={**os.environ, **settings}, text=True, **pipes)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"serving catalog lake on 127.0.0.1:{port}\n"  # while it still runs
        uri = f"http://127.0.0.1:{port}"
        created = httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["db"]}, timeout=60)  # connects at once
        assert created.status_code == 200
        assert httpx.get(f"{uri}/health/ready").text == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert '"operation": "createNamespace"' in said


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_answers_what_is_under_way(tmp_path: Path) -> None:
    place = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    body = json.dumps({"namespace": ["db"]}).encode()
    head = b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with listening() as there:
        process = begin(place, there)
        while not answers(f"{uri_of(there)}/health/live"):
            assert process.is_alive(), "the server ended before it answered"
            time.sleep(0.05)
        where = there.getsockname()
    with socket.create_connection(where, timeout=30) as wire:
        wire.sendall(head + body[:3])
        time.sleep(1)
        process.terminate()
        time.sleep(1)
        wire.sendall(body[3:])
        assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")
    process.join(30)
    assert process.exitcode is not None
    with pytest.raises(ConnectionError):
        socket.create_connection(where, timeout=5).close()
    with load_catalog("served", **place) as catalog:
        assert catalog.namespace_exists("db")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken_is_an_error_that_names_it(tmp_path: Path, workers: int) -> None:
    settings = {
        "ICEFIELD_CATALOG__LAKE__TYPE": "directory",
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": f"file://{tmp_path}/warehouse",
    }
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
        command += ["--workers", str(workers)]
        environment = {**os.environ, **settings}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"\nicefield: no server can listen on 127.0.0.1:{port}: " in ran.stderr
    assert ran.stderr.endswith("ddress already in use; give another host or port\n")


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Where an application is served."""
    catalog = load_catalog("served", type="sql", uri="sqlite://", warehouse="memory://serving")
    with served(app(catalog)) as uri:
        parts = urlsplit(uri)
        assert parts.hostname is not None
        assert parts.port is not None
        yield parts.hostname, parts.port


def test_no_answer_waits_until_a_client_acknowledges_what_came_before() -> None:
    catalog = load_catalog("served", type="sql", uri="sqlite://", warehouse="memory://serving")
    found: list[int] = []

    class Seen(BoundedHttp):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with served(app(catalog), http=Seen) as uri:  # at a socket as uvicorn opens it for several processes
        assert httpx.get(f"{uri}/v1/config").status_code == 200
    assert found == [1]


def test_who_comes_through_a_proxy_of_this_machine_is_no_program_of_it(address: tuple[str, int]) -> None:
    uri = f"http://127.0.0.1:{address[1]}/v1/namespaces"
    assert httpx.get(uri).status_code == 200
    assert httpx.get(uri, headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    assert httpx.get(uri, headers={"X-Forwarded-For": "127.0.0.1, 192.0.2.7"}).status_code == 403
    assert httpx.get(uri, headers={"Host": "lake.example.org"}).status_code == 403


@pytest.mark.slow
def test_the_command_speaks_tls(tmp_path: Path) -> None:
    own = certified(tmp_path, "own")
    port = free_port()
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    command += ["--certificate", own.certificate, "--key", own.key]
    settings = {
        "ICEFIELD_CATALOG__LAKE__TYPE": "sql",
        "ICEFIELD_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/catalog.db",
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": f"file://{tmp_path}/warehouse",
    }
    process = subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    uri, trusted = f"https://localhost:{port}", {"ssl.cabundle": own.certificate}
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                catalog = load_catalog("lake", uri=uri, **trusted, **{"rest.retry.num-retries": "0"})
                break
            except StorageError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with catalog:
            catalog.create_namespace("db")
            catalog.create_table("db.t", SCHEMA).append(pa.table({"id": [1, 2]}))
            assert catalog.load_table("db.t").scan().count() == 2
        with pytest.raises(StorageError, match="no answer"):
            load_catalog("lake", uri=uri, **{"rest.retry.num-retries": "0"})
    finally:
        process.terminate()
        process.wait(60)


HEADS = {
    "many headers": (b"GET /v1/config HTTP/1.1\r\nHost: x\r\n", b"X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 2_000),
    "one header": (b"GET /v1/config HTTP/1.1\r\nHost: x\r\nX-A: ", b"a" * 64_000),
    "an address": (b"GET /v1/", b"a" * 64_000),
    "after another request": (b"GET /v1/config HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/", b"a" * 64_000),
}


def sent_before_it_closes(wire: socket.socket, piece: bytes) -> int:
    """How many bytes of pieces can be sent; at most 64 MiB."""
    sent = 0
    while sent < 64 * 2**20:
        try:
            wire.sendall(piece)
        except ConnectionError:
            break
        sent += len(piece)
    return sent


@pytest.mark.parametrize("name", HEADS)
def test_what_comes_before_a_body_is_read_no_further_than_it_may_be_long(address: tuple[str, int], name: str) -> None:
    first, more = HEADS[name]
    with socket.create_connection(address, timeout=20) as wire:
        wire.sendall(first)
        assert sent_before_it_closes(wire, more) < 16 * 2**20
    assert httpx.get(f"http://127.0.0.1:{address[1]}/health/live").text == "ok"


def test_headers_that_are_too_long_are_told_so(address: tuple[str, int]) -> None:
    head = b"GET /v1/config HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 70_000
    answer = raw_answer(f"http://127.0.0.1:{address[1]}", head)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == 431
    large = httpx.get(f"http://127.0.0.1:{address[1]}/v1/config", headers={"X-A": "a" * 50_000})
    assert large.status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", b"GET /v1/con", b"GET /v1/config HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/con"])
def test_who_says_nothing_is_not_waited_for(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(BoundedHttp, "head_seconds", 0.3)
    with socket.create_connection(address, timeout=20) as wire:
        wire.sendall(first)
        began = time.monotonic()
        while wire.recv(65_536):
            pass
    assert time.monotonic() - began < 10


@pytest.mark.server
def test_keys_of_sts_open_the_location_of_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws():
        client = boto3.client("sts", region_name="us-east-1")
        asked: list[dict[str, object]] = []
        original = client.assume_role
        client.assume_role = lambda **given: asked.append(given) or original(**given)
        vendor = StsCredentials(client, "arn:aws:iam::123456789012:role/tables", region="us-east-1")
        ((prefix, given),) = vendor.credentials(None, ("db", "t"), "s3://lake/db/t", True)
        assert prefix == "s3://lake/db/t"
        assert {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "client.region"} <= given.keys()
        assert "arn:aws:s3:::lake/db/t/*" in str(asked[0]["Policy"])
        assert vendor.credentials(None, ("db", "t"), "s3://lake/db/t", True)[0][1] == given
        assert len(asked) == 1
        vendor.credentials(None, ("db", "u"), "s3://lake/db/u", True)
        assert len(asked) == 2
        assert vendor.credentials(None, ("db", "t"), "file:///t", True) == []
    assert given["s3.secret-access-key"] not in repr(vendor)
