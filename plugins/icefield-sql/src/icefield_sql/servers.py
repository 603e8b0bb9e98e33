"""A database server, through SQLAlchemy."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument, StorageError
from icefield.toolkit import is_true, scrub, whole_number, without_credentials
from sqlalchemy import URL, Connection, CursorResult, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    NoSuchTableError,
    SQLAlchemyError,
)

from icefield_sql.engines import DatabaseConnectionLost, NameTaken, SqlEngine, unusable

_AUTHORITY: Final = re.compile(r"[^:/?#]+://([^/?#]*)(.*)", re.DOTALL)
_ROWS_AT_ONCE: Final = 100  # few, as each name may have the maximum length
_NO_VALUES: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """A connection of SQLAlchemy."""

    connection: Connection

    def execute(self, statement: str, values: Mapping[str, Any] = _NO_VALUES, /) -> CursorResult[Any]:
        """Run a statement with its named values."""
        return self.connection.execute(text(statement), values)

    def stream(self, statement: str, values: Mapping[str, Any] = _NO_VALUES, /) -> CursorResult[Any]:
        """Run a query whose rows are fetched in parts."""
        options = {"stream_results": True, "yield_per": _ROWS_AT_ONCE}
        return self.connection.execute(text(statement), values, execution_options=options)


class ServerEngine(SqlEngine):
    """A server, with a pool of connections."""

    def __init__(self, catalog: str, uri: str, properties: Mapping[str, str]) -> None:
        """Read ``echo``, ``pool_pre_ping`` and the time-outs. Raises ``InvalidArgument`` without a part of ``uri``."""
        url = _url(catalog, uri)
        self.engine = _engine(catalog, url, properties)
        self._properties = properties
        user = (
            f"user '{url.username or 'of the environment'}', {'with' if url.password else 'without'} a password in uri"
        )
        super().__init__(catalog, url.set(query={}).render_as_string(hide_password=True), user)  # a query may hold one

    @contextmanager
    def begin(self) -> Iterator[ServerConnection]:
        with self._translated(), self.engine.begin() as connection:
            yield ServerConnection(connection)

    def columns(self, table: str) -> frozenset[str]:
        with self._translated():
            try:
                return frozenset(column["name"] for column in inspect(self.engine).get_columns(table))
            except NoSuchTableError:
                return frozenset()

    def close(self) -> None:
        self.engine.dispose()

    def failed(self, reason: str) -> StorageError:
        return StorageError(without_credentials(str(super().failed(reason)), self._properties))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise NameTaken from scrub(error, self._properties)
        except DBAPIError as error:
            scrub(error, self._properties)
            if error.connection_invalidated:
                raise DatabaseConnectionLost(_reason(error)) from error
            raise self.failed(_reason(error)) from error
        except SQLAlchemyError as error:
            raise self.failed(_reason(error)) from scrub(error, self._properties)


def _engine(catalog: str, url: URL, properties: Mapping[str, str]) -> Engine:
    seconds = whole_number(properties, "sql.request-timeout", 60, 1)
    options: dict[str, Any] = {
        "echo": is_true(properties, "echo", False),
        "pool_pre_ping": is_true(properties, "pool_pre_ping", True),
    }
    with_psycopg = url.drivername == "postgresql+psycopg"
    if with_psycopg and "connect_timeout" not in url.query:
        options["connect_args"] = {"connect_timeout": whole_number(properties, "sql.connect-timeout", 10, 1)}
    with suppress(ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError):
        engine = create_engine(url, **options)
        if with_psycopg:
            # First of all listeners, as SQLAlchemy's own sends the first queries.
            event.listen(engine, "connect", lambda connection, record: _limit_waits(connection, seconds), insert=True)
        return engine
    raise unusable(catalog)


def _limit_waits(connection: Any, seconds: float) -> None:
    """Let a connection of psycopg break when the server is silent for these seconds.

    Every request of psycopg waits by this method. libpq has no time-out for a server that takes a request and never
    answers.
    """
    wait = connection.wait

    def wait_in_time(generator: Any, *arguments: Any, **keywords: Any) -> Any:
        began = time.monotonic()
        try:
            return wait(generator, *arguments, **{"timeout": seconds, **keywords})
        except connection.OperationalError:
            if time.monotonic() - began >= seconds:
                connection.close()  # the answer may still come, and would be taken for the next one's
            raise

    connection.wait = wait_in_time


def _url(catalog: str, uri: str) -> URL:
    url = None
    with suppress(ArgumentError, ValueError):  # raised again without its string, which may hold a password
        url = make_url(uri)
    if url is None:
        raise unusable(catalog)
    authority, rest = match.groups() if (match := _AUTHORITY.fullmatch(uri)) else ("", "@")
    if authority.count("@") > 1 or "@" in rest:
        # Otherwise the end of a password would count as the host, and messages would show it.
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' has an '@' that is not escaped, so it is not certain where its password ends; "
            "in a user, a password, a database or an option write %40 for '@', %2F for '/', %3F for '?', %23 for '#'"
        )
    return url


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own sentence, without the statement and its parameters."""
    string = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return string.strip().splitlines()[0] if string.strip() else type(error).__name__
