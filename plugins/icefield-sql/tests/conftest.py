"""A throw-away PostgreSQL on loopback, where the machine has the server's programs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URI of a server that ends with the session."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(shutil.which("initdb") or "/nowhere/initdb").parent
    if not (programs / "postgres").exists():
        pytest.skip("the machine has no PostgreSQL server")
    folder = Path(tempfile.mkdtemp(prefix="icefield-postgres-"))
    as_user = _as_user(folder)
    data = folder / "data"
    initdb = [programs / "initdb", "-D", data, "-U", "test", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale"]
    subprocess.run([*as_user, *initdb], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=100"]
    options = [part for setting in settings for part in ("-c", setting)]
    server = subprocess.Popen(
        [*as_user, programs / "postgres", "-D", data, "-p", str(port), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, server)
        yield f"postgresql+psycopg://test@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # the fast shutdown: it does not wait for clients
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _as_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root: hand the folder to its own user."""
    if os.getuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and the machine has no user 'postgres'")
    os.chown(folder, user.pw_uid, user.pw_gid)
    folder.chmod(0o755)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("PostgreSQL did not start")
