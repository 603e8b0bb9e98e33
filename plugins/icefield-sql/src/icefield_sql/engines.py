"""The engine that the property ``uri`` names: a file of SQLite, the memory of this process, or a server."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from icefield.errors import InvalidArgument
from icefield.toolkit import is_true
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool, QueuePool

_SQLITE_WAIT_SECONDS: Final = 120
_AUTHORITY: Final = re.compile(r"[^:/?#]+://([^/?#]*)(.*)", re.DOTALL)
_IN_MEMORY: Final = "sqlite:///:memory:"


class MemoryDatabase:
    """A database of SQLite in the memory of this process.

    It lives until ``close``, independently of its connections: an interrupt in the middle of a statement may close one.
    """

    def __init__(self) -> None:
        self._name = f"file:icefield-{uuid4().hex}?mode=memory&cache=shared"
        self._anchor: sqlite3.Connection | None = self._open()

    def connect(self) -> sqlite3.Connection:
        """Open another connection. Raises ``InvalidArgument`` after ``close``."""
        if self._anchor is None:
            raise InvalidArgument("the catalog was closed, and its database in memory ended with that")
        return self._open()

    def close(self) -> None:
        """Delete the database."""
        anchor, self._anchor = self._anchor, None
        if anchor is not None:
            anchor.close()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._name, uri=True, check_same_thread=False, timeout=_SQLITE_WAIT_SECONDS)


def engine_of(catalog: str, properties: Mapping[str, str]) -> tuple[Engine, MemoryDatabase | None]:
    """The engine for a catalog's properties, and the database if it is in memory.

    Raises ``InvalidArgument``, which shows no part of ``uri``: it may hold a password.
    """
    url = _url(catalog, properties.get("uri"))
    options: dict[str, Any] = {"echo": properties.get("echo", "false").lower() == "true"}
    memory = MemoryDatabase() if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:") else None
    if memory is not None:
        # One connection at a time: a database in memory raises for a second writer instead of waiting.
        options |= {"creator": memory.connect, "poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
        options["pool_timeout"] = _SQLITE_WAIT_SECONDS
    elif url.get_backend_name() == "sqlite":
        # A connection of SQLite must not survive a fork, and opening one is cheap: keep none.
        options |= {"poolclass": NullPool, "connect_args": {"timeout": _SQLITE_WAIT_SECONDS}}
    else:
        options["pool_pre_ping"] = is_true(properties, "pool_pre_ping", True)
    with suppress(ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError):
        return create_engine(url, **options), memory
    raise _unusable(catalog)


def _url(catalog: str, uri: str | None) -> URL:
    if not uri:
        raise InvalidArgument(
            f"catalog '{catalog}' of type 'sql' needs the property 'uri', such as sqlite:////data/catalog.db or "
            "postgresql+psycopg://user@host/database"
        )
    if uri.startswith((":memory:", "file:")):
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' is SQLite's own name for a database; write sqlite:////path/catalog.db for a "
            f"file, or {_IN_MEMORY} for the memory of this process"
        )
    url = None
    with suppress(ArgumentError, ValueError):  # raised again without its string, which may hold a password
        url = make_url(uri)
    if url is None:
        raise _unusable(catalog)
    if url.get_backend_name() == "sqlite":
        _check_sqlite(catalog, url)
        return url
    authority, rest = match.groups() if (match := _AUTHORITY.fullmatch(uri)) else ("", "@")
    if authority.count("@") > 1 or "@" in rest:
        # Otherwise the end of a password would count as the host, and messages would show it.
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' has an '@' that is not escaped, so it is not certain where its password ends; "
            "in a user, a password, a database or an option write %40 for '@', %2F for '/', %3F for '?', %23 for '#'"
        )
    return url


def _check_sqlite(catalog: str, url: URL) -> None:
    if url.host or url.username or url.password:
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' names a host, which SQLite has not: write sqlite:////path/catalog.db, with "
            "four slashes for an absolute path"
        )
    database = url.database or ""
    if database.startswith("file:") and (
        "uri" not in url.query or ":memory:" in database or url.query.get("mode") == "memory"
    ):
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' is no file of SQLite that lasts: write {_IN_MEMORY} for a database in the "
            "memory of this process, or sqlite:////path/catalog.db for a file"
        )


def _unusable(catalog: str) -> InvalidArgument:
    return InvalidArgument(
        f"catalog '{catalog}': the database that 'uri' names cannot be used; write sqlite:////path/catalog.db, or for "
        "PostgreSQL install icefield-sql[postgres] and write postgresql+psycopg://user@host/database"
    )
