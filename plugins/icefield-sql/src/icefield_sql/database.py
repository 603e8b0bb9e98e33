"""The connection to the database, and its errors in Icefield's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icefield.errors import IcefieldError, InvalidArgument, StorageError
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from icefield_sql.tables import ensure_tables

_SQLITE_WAIT_SECONDS = 120


class NameTaken(Exception):
    """A row with that key exists already."""


class ConnectionLost(Exception):
    """The connection broke while a statement was under way: its outcome is not known."""


class Database:
    """An engine built from the catalog's properties: ``uri``, ``echo``, ``pool_pre_ping``, ``init_catalog_tables``."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self.catalog = catalog
        self._properties = dict(properties)
        self.engine = _engine(catalog, properties)
        self._prepared = properties.get("init_catalog_tables", "true").lower() == "false"
        self.has_type_column = True

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections stay behind: another process makes its own.
        return type(self), (self.catalog, self._properties)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection inside one transaction, committed at the end and rolled back by an exception."""
        with self._translated():
            if not self._prepared:
                self.has_type_column = ensure_tables(self.engine)
                self._prepared = True
            with self.engine.begin() as connection:
                yield connection

    @property
    def user(self) -> str | None:
        """Who connects, and with what, in words without a secret; None for a database that asks nobody."""
        url = self.engine.url
        if url.get_backend_name() == "sqlite":
            return None
        return (
            f"user '{url.username or 'of the environment'}', {'with' if url.password else 'without'} a password in uri"
        )

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IcefieldError:
            raise
        except IntegrityError as error:
            raise NameTaken from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise ConnectionLost(_reason(error)) from error
            raise self._failed(error) from error
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    def _failed(self, error: SQLAlchemyError) -> StorageError:
        where = self.engine.url.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        return StorageError(f"catalog '{self.catalog}' cannot use its database {where}: {_reason(error)}")


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own sentence, without the statement and its parameters."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _engine(catalog: str, properties: Mapping[str, str]) -> Engine:
    uri = properties.get("uri")
    if not uri:
        raise InvalidArgument(
            f"catalog '{catalog}' of type 'sql' needs the property 'uri', such as sqlite:////data/catalog.db or "
            "postgresql+psycopg://user@host/database"
        )
    try:
        url = make_url(uri)
        options: dict[str, Any] = {"echo": properties.get("echo", "false").lower() == "true"}
        if url.get_backend_name() == "sqlite":
            # A connection of SQLite must not be carried over a fork, and opening one is cheap: keep none.
            options |= {"poolclass": NullPool, "connect_args": {"timeout": _SQLITE_WAIT_SECONDS}}
        else:
            options["pool_pre_ping"] = properties.get("pool_pre_ping", "true").lower() != "false"
        engine = create_engine(url, **options)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
        # The property may hold a password, so no part of it is shown.
        raise InvalidArgument(
            f"catalog '{catalog}': the database that 'uri' names cannot be used: {type(error).__name__}; write "
            "sqlite:////path/catalog.db, or for PostgreSQL install icefield-sql[postgres] and write "
            "postgresql+psycopg://user@host/database"
        ) from error
    return engine
