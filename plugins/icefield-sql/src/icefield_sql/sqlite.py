"""A database of SQLite, in a file or in the memory of this process, through Python's own module."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import uuid4

from icefield.errors import InvalidArgument, StorageError

from icefield_sql.engines import NameTaken, SqlEngine

_WAIT_SECONDS: Final = 120
_URI: Final = re.compile(r"sqlite(\+pysqlite)?://(?P<host>[^/?]*)(/(?P<file>[^?]*))?(\?(?P<options>.*))?", re.DOTALL)
_IN_MEMORY: Final = "sqlite:///:memory:"


class SqliteConnection(sqlite3.Connection):
    """A connection of SQLite."""

    def execute(self, statement: str, values: Mapping[str, Any] = {}, /) -> sqlite3.Cursor:  # type: ignore[override]
        """Run a statement with its named values."""
        return super().execute(statement, values)

    stream = execute  # SQLite fetches rows when they are asked for


class SqliteFile(NamedTuple):
    """A database's name for SQLite, whether it is a URI of SQLite's own, and how many seconds a writer waits."""

    name: str
    is_uri: bool
    wait: float = _WAIT_SECONDS


class SqliteEngine(SqlEngine):
    """A database in a file. Each transaction opens it anew: a connection must not survive a fork."""

    def __init__(self, catalog: str, file: SqliteFile, *, echo: bool = False) -> None:
        """``echo`` prints each statement."""
        super().__init__(catalog, f"sqlite:///{file.name.partition('?')[0]}")
        self._file, self._echo = file, echo

    @contextmanager
    def begin(self) -> Iterator[SqliteConnection]:
        with self._translated():
            connection = self._connect()
            try:
                yield connection
                connection.commit()
            finally:
                connection.close()  # which rolls a transaction back that is not committed

    def columns(self, table: str) -> frozenset[str]:
        with self.begin() as connection:
            found = connection.execute("SELECT name FROM pragma_table_info(:table)", {"table": table})
            return frozenset(name for (name,) in found)

    def close(self) -> None:
        """Do nothing: no connection outlives its transaction."""

    def _connect(self) -> SqliteConnection:
        name, is_uri, wait = self._file
        opened = sqlite3.connect(name, wait, check_same_thread=False, factory=SqliteConnection, uri=is_uri)
        if self._echo:
            opened.set_trace_callback(print)
        return opened

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise NameTaken from error
        except sqlite3.Error as error:
            raise self.failed(str(error)) from error


class SqliteMemory(SqliteEngine):
    """A database in the memory of this process.

    It lives until ``close``, independently of its connections: an interrupt in the middle of a statement may close one.
    Transactions take turns, since such a database raises for a second writer instead of waiting.
    """

    def __init__(self, catalog: str, *, echo: bool = False) -> None:
        file = SqliteFile(f"file:icefield-{uuid4().hex}?mode=memory&cache=shared", is_uri=True)
        super().__init__(catalog, file, echo=echo)
        self.shown = _IN_MEMORY
        self._turn = Lock()
        self._anchor: SqliteConnection | None = self._connect()

    @property
    def is_in_memory(self) -> bool:
        return True

    @contextmanager
    def begin(self) -> Iterator[SqliteConnection]:
        if self._anchor is None:
            raise InvalidArgument("the catalog was closed, and its database in memory ended with that")
        if not self._turn.acquire(timeout=_WAIT_SECONDS):
            raise StorageError(f"catalog '{self.catalog}' waited {_WAIT_SECONDS} s for another thread", retryable=True)
        try:
            with super().begin() as connection:
                yield connection
        finally:
            self._turn.release()

    def close(self) -> None:
        """Delete the database."""
        anchor, self._anchor = self._anchor, None
        if anchor is not None:
            anchor.close()


def sqlite_engine(catalog: str, uri: str, *, echo: bool) -> SqliteEngine | None:
    """The engine of a URI of SQLite; None for a URI of another database."""
    if uri.startswith((":memory:", "file:")):
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' is SQLite's own name for a database; write sqlite:////path/catalog.db for a "
            f"file, or {_IN_MEMORY} for the memory of this process"
        )
    parts = _URI.fullmatch(uri)
    if parts is None:
        return None
    if not parts["host"] and parts["file"] in (None, "", ":memory:"):
        return SqliteMemory(catalog, echo=echo)
    return SqliteEngine(catalog, _file_of(catalog, parts), echo=echo)


def _file_of(catalog: str, parts: re.Match[str]) -> SqliteFile:
    """The file of a URI. Raises ``InvalidArgument``, which shows no part of the URI."""
    if parts["host"]:
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' names a host, which SQLite has not: write sqlite:////path/catalog.db, with "
            "four slashes for an absolute path"
        )
    file, options = parts["file"], dict(parse_qsl(parts["options"] or "", keep_blank_values=True))
    is_uri = options.pop("uri", "false").lower() in ("true", "1", "yes", "on")
    if file.startswith("file:") and (not is_uri or ":memory:" in file or options.get("mode") == "memory"):
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' is no file of SQLite that lasts: write {_IN_MEMORY} for a database in the "
            "memory of this process, or sqlite:////path/catalog.db for a file"
        )
    try:
        wait = float(options.pop("timeout", _WAIT_SECONDS))
    except ValueError:
        raise InvalidArgument(f"catalog '{catalog}': the option 'timeout' of 'uri' is a number of seconds") from None
    if not is_uri:
        if options:
            raise InvalidArgument(
                f"catalog '{catalog}': 'uri' has options that no file of SQLite has; 'timeout' is one, and with "
                "'uri=true' those of SQLite's own URIs"
            )
        return SqliteFile(os.path.abspath(file), is_uri=False, wait=wait)
    query = "&".join(f"{key}={options[key]}" for key in sorted(options))
    return SqliteFile(f"{file}?{query}" if query else file, is_uri=True, wait=wait)
