"""The server as processes of its own, and short-lived credentials of AWS STS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from icefield.errors import InvalidArgument, UnsafeCommit
from icefield_rest_server import Options, StaticTokens, StsCredentials, check
from servers.process import free_port


def test_a_server_that_others_reach_wants_to_know_who_they_are(tmp_path: Path) -> None:
    with pytest.raises(UnsafeCommit, match="give tokens"):
        check(Options(host="0.0.0.0"))
    (tmp_path / "tokens").write_text("alice 0123456789abcdef\n")
    settings = check(Options(host="0.0.0.0", tokens=str(tmp_path / "tokens"), workers=2))
    assert settings.authenticator is not None
    assert not settings.idempotent
    with pytest.raises(InvalidArgument, match="issuer and audience"):
        check(Options(jwks="https://example.org/jwks"))


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
        deadline = time.monotonic() + 60
        while True:
            try:
                assert httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["db"]}).status_code == 200
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert httpx.get(f"{uri}/health/ready").text == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert '"operation": "createNamespace"' in said


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
        ((prefix, given),) = vendor.credentials(None, ("db", "t"), "s3://lake/db/t")
        assert prefix == "s3://lake/db/t"
        assert {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "client.region"} <= given.keys()
        assert "arn:aws:s3:::lake/db/t/*" in str(asked[0]["Policy"])
        assert vendor.credentials(None, ("db", "t"), "s3://lake/db/t")[0][1] == given
        assert len(asked) == 1
        vendor.credentials(None, ("db", "u"), "s3://lake/db/u")
        assert len(asked) == 2
        assert vendor.credentials(None, ("db", "t"), "file:///t") == []
    assert given["s3.secret-access-key"] not in repr(vendor)
