"""The connection to the database, and its errors in Icefield's words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from icefield.errors import IcefieldError, StorageError
from icefield.toolkit import is_true, scrub, without_credentials
from sqlalchemy import ColumnElement, Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from icefield_sql.engines import engine_of
from icefield_sql.tables import create_tables, has_type_column, is_table

# Databases in the memory of this process. A pickled database finds its original by its key.
_IN_MEMORY: Final[WeakValueDictionary[str, Database]] = WeakValueDictionary()


class NameTaken(Exception):
    """A row with that key exists already."""


class DatabaseConnectionLost(Exception):
    """The connection broke during a statement, so that the outcome is unknown."""


class Database:
    """An engine built from the catalog's properties: ``uri``, ``echo``, ``pool_pre_ping``, ``init_catalog_tables``."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self.catalog = catalog
        self._properties = dict(properties)
        self.engine, self._memory = engine_of(catalog, properties)
        self._home = os.getpid()
        self._key = uuid4().hex
        self._created = not is_true(properties, "init_catalog_tables", True)
        self._typed = False
        if self._memory is not None:
            _IN_MEMORY[self._key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections are not pickled: another process makes its own.
        if self._memory is not None:
            return _again, (self._key, self._home, self.catalog, self._properties)
        return type(self), (self.catalog, self._properties)

    @property
    def has_type_column(self) -> bool:
        """Whether rows state their type, table or view, as of the start of the last transaction."""
        return self._typed

    @property
    def is_table(self) -> ColumnElement[bool]:
        """The condition for rows of tables. Read it in a transaction."""
        return is_table(typed=self._typed)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection inside one transaction, committed at the end and rolled back by an exception."""
        if self._memory is not None and self._home != os.getpid():
            raise StorageError(
                f"catalog '{self.catalog}' is in the memory of the process that opened it, and this is another one; "
                "write uri=sqlite:////path/catalog.db for a catalog that several processes use"
            )
        with self._translated():
            self._prepare()
            with self.engine.begin() as connection:
                yield connection

    @property
    def user(self) -> str | None:
        """The user and the kind of credentials, without a secret; None for a database without users."""
        url = self.engine.url
        if url.get_backend_name() == "sqlite":
            return None
        return (
            f"user '{url.username or 'of the environment'}', {'with' if url.password else 'without'} a password in uri"
        )

    def close(self) -> None:
        """Close every connection. This deletes a database in memory."""
        self.engine.dispose()
        if self._memory is not None:
            self._memory.close()

    def _prepare(self) -> None:
        if not self._created:
            create_tables(self.engine)
            self._created = True
        # The column is looked for until it exists: another engine may upgrade the catalog, and put views among the
        # tables.
        if not self._typed:
            found = has_type_column(self.engine)
            if found is None:
                raise StorageError(
                    f"the database of catalog '{self.catalog}' has no table iceberg_tables; remove the property "
                    "'init_catalog_tables', which forbids to create it, or look whether 'uri' names the right database"
                )
            self._typed = found

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IcefieldError:
            raise
        except IntegrityError as error:
            raise NameTaken from scrub(error, self._properties)
        except DBAPIError as error:
            scrub(error, self._properties)
            if error.connection_invalidated:
                raise DatabaseConnectionLost(_reason(error)) from error
            raise self._failed(error) from error
        except SQLAlchemyError as error:
            raise self._failed(error) from scrub(error, self._properties)

    def _failed(self, error: SQLAlchemyError) -> StorageError:
        where = self.engine.url.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        said = f"catalog '{self.catalog}' cannot use its database {where}: {_reason(error)}"
        return StorageError(without_credentials(said, self._properties))


def _again(key: str, home: int, catalog: str, properties: Mapping[str, str]) -> Database:
    """Unpickle a database in memory: in its own process the same object, elsewhere a database that fails when used."""
    found = _IN_MEMORY.get(key)
    if found is not None:
        return found
    made = Database(catalog, properties)
    made._home, made._key = home if home != os.getpid() else -1, key
    return made


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own sentence, without the statement and its parameters."""
    string = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return string.strip().splitlines()[0] if string.strip() else type(error).__name__
