"""An authorizer that ``icefield serve`` uses, a section of reports, and a hook of the distribution itself."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import icefield
import pyarrow as pa
import pytest
from authors.house import auditors
from authors.house.opened import environment, opened
from icefield_report import report

TOKENS = {"alice": "alice-0123456789abcdef", "bob": "bob-0123456789abcdef", "audit": "audit-0123456789abcdef"}
GRANTS = "alice getConfig\nalice * db\nbob getConfig\nbob loadTable db.seen\n"
TABLES = "/v1/namespaces/db/tables"


@pytest.fixture
def lake(tmp_path: Path) -> dict[str, str]:
    """The environment of a process: a catalog, and the plugins as an installed distribution."""
    (tmp_path / "tokens").write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    (tmp_path / "grants").write_text(GRANTS)
    prefix = "ICEFIELD_CATALOG__LAKE__"
    given = {
        "TYPE": "directory",
        "WAREHOUSE": f"file://{tmp_path}/warehouse",
        "GRANTS__FILE": str(tmp_path / "grants"),
        "REST_SERVER__TOKENS": str(tmp_path / "tokens"),
    }
    return environment(tmp_path, **{prefix + name: value for name, value in given.items()})


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", *options]


@pytest.fixture
def uri(lake: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A server that the command started with the authorizer, over two tables."""
    with icefield.load_catalog("lake", type="directory", warehouse=f"file://{tmp_path}/warehouse") as catalog:
        catalog.create_namespace("db")
        for name in ("seen", "hidden"):
            catalog.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = command("--port", str(port), "--authorizer", "grants")
    with subprocess.Popen(line, env=lake, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 120
            while not is_live(f"http://127.0.0.1:{port}"):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def is_live(uri: str) -> bool:
    try:
        return httpx.get(f"{uri}/health/live").status_code == 200
    except httpx.TransportError:
        return False


def test_the_served_process_allows_and_refuses_by_the_grants(uri: str) -> None:
    def status(client: str, path: str) -> int:
        return httpx.get(f"{uri}{path}", headers={"Authorization": f"Bearer {TOKENS[client]}"}, timeout=60).status_code

    assert httpx.get(f"{uri}{TABLES}/seen").status_code == 401
    assert [status("alice", f"{TABLES}/{name}") for name in ("seen", "hidden")] == [200, 200]
    assert [status("bob", f"{TABLES}/{name}") for name in ("seen", "hidden")] == [200, 403]
    assert [status(client, TABLES) for client in TOKENS] == [200, 403, 200]
    headers = {"Authorization": f"Bearer {TOKENS['audit']}"}
    assert status("audit", f"{TABLES}/hidden") == 200, "the plugin of a third author brings this grant"
    assert httpx.delete(f"{uri}{TABLES}/hidden", headers=headers, timeout=60).status_code == 403


@pytest.mark.parametrize(
    ("option", "noun", "known"),
    [
        ("--authorizer", "authorizer", "grants, read-only"),
        ("--authenticator", "authenticator", "jwt, tokens"),
        ("--vendor", "vendor of credentials", "static, sts"),
    ],
)
def test_an_unknown_name_ends_the_command_with_the_installed_ones(
    lake: dict[str, str], option: str, noun: str, known: str
) -> None:
    ended = subprocess.run(command(option, "grant"), env=lake, capture_output=True, text=True, timeout=120)
    assert ended.returncode not in (0, None)
    assert f"no {noun} of the REST server 'grant'; installed are: {known}" in " ".join(ended.stderr.split())
    assert "serving" not in ended.stdout


def test_a_section_stands_in_the_page_before_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "grants").write_text("bob loadTable db.seen\n<b> loadTable db.seen\n")
    given = {"grants.file": str(tmp_path / "grants")}
    with opened(auditors, **given) as catalog:
        page = report(catalog.create_table("db.seen", pa.schema([("id", pa.int64())])))
    assert page.index('id="table-plots"') < page.index('id="table-grants"') < page.index('id="table-about"')
    assert "Who may use it" in page
    assert '<th scope="row">bob</th><td>loadTable</td>' in page
    assert '<th scope="row">audit</th><td>loadTable</td>' in page
    assert "&lt;b&gt;" in page


def test_a_section_of_text_is_escaped_and_a_section_without_content_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "grants").write_text("")
    schema = pa.schema([("id", pa.int64())])
    with opened(**{"grants.file": str(tmp_path / "grants")}) as catalog:
        assert "No client of the server may use this table." in report(catalog.create_table("db.t", schema))
    with opened() as catalog:
        assert "Who may use it" not in report(catalog.create_table("db.t", schema))


def test_a_section_that_fails_says_so_and_the_others_are_shown() -> None:
    with opened(**{"grants.file": "/no/such/file"}) as catalog:
        page = report(catalog.create_table("db.t", pa.schema([("id", pa.int64())])))
    assert "This section cannot be shown: [Errno 2] No such file or directory: &#39;/no/such/file&#39;" in page
    assert "About the table" in page
