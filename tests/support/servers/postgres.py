"""A throw-away PostgreSQL on loopback, where the machine has the server's programs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from servers.process import free_port, listens, running, unavailable


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URI of a server that ends with the session."""
    with serve_postgres() as uri:
        yield uri


@contextmanager
def serve_postgres() -> Iterator[str]:
    """The URI of a server that ends with the block."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(shutil.which("initdb") or "/nowhere/initdb").parent
    if not (programs / "postgres").exists():
        unavailable("the machine has no PostgreSQL server")
    folder = Path(tempfile.mkdtemp(prefix="icefield-postgres-"))
    as_user = _as_user(folder)
    data = folder / "data"
    initdb = [programs / "initdb", "-D", data, "-U", "test", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale"]
    subprocess.run([*as_user, *initdb], check=True, capture_output=True)
    port = free_port()
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=100"]
    # The server is never recovered. By default each new database is logged in full, and up to a gigabyte of logs is
    # kept.
    settings += ["wal_level=minimal", "max_wal_senders=0", "min_wal_size=32MB", "max_wal_size=64MB"]
    options = [part for setting in settings for part in ("-c", setting)]
    command = [*as_user, programs / "postgres", "-D", data, "-p", str(port), *options]
    try:
        with running(command, lambda: listens(port)) as server:
            yield f"postgresql+psycopg://test@127.0.0.1:{port}/postgres"
            server.send_signal(signal.SIGINT)  # the fast shutdown: it does not wait for clients
            server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(postgres: str) -> str:
    """The URI of a database of its own, on the server of the fixture."""
    name = uuid4().hex
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return postgres.rpartition("/")[0] + "/" + name


def _as_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root: hand the folder to its own user."""
    if os.getuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        unavailable("PostgreSQL does not run as root, and the machine has no user 'postgres'")
    os.chown(folder, user.pw_uid, user.pw_gid)
    folder.chmod(0o755)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
