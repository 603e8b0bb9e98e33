"""The database of a catalog: its engine, its tables, and transactions over them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from icefield import lazy_names
from icefield.errors import InvalidArgument, StorageError
from icefield.toolkit import is_true

from icefield_sql.engines import SqlConnection, SqlEngine, unusable
from icefield_sql.sqlite import sqlite_engine
from icefield_sql.tables import CREATE, is_table

# SQLAlchemy takes longer to import than everything else here, and only servers need it.
if TYPE_CHECKING:
    from icefield_sql.servers import ServerEngine

_servers, _ = lazy_names(__name__)

# Databases in the memory of this process. A pickled database finds its original by its key.
_IN_MEMORY: Final[WeakValueDictionary[str, Database]] = WeakValueDictionary()


class Database:
    """An engine built from the catalog's properties: ``uri``, ``echo``, ``pool_pre_ping``, ``init_catalog_tables``."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self.catalog = catalog
        self._properties = dict(properties)
        self.engine = _engine_of(catalog, properties)
        self._home = os.getpid()
        self._key = uuid4().hex
        self._created = not is_true(properties, "init_catalog_tables", True)
        self._typed = False
        if self.engine.is_in_memory:
            _IN_MEMORY[self._key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections are not pickled: another process makes its own.
        if self.engine.is_in_memory:
            return _again, (self._key, self._home, self.catalog, self._properties)
        return type(self), (self.catalog, self._properties)

    @property
    def has_type_column(self) -> bool:
        """Whether rows state their type, table or view, as of the start of the last transaction.

        The first version of the JDBC catalog (V0) has no such column, and its databases are used as they are. Later
        ones (V1) hold views in the same table; rows from before an upgrade have no type and are tables.
        """
        return self._typed

    @property
    def is_table(self) -> str:
        """The condition for rows of tables. Read it in a transaction."""
        return is_table(typed=self._typed)

    @contextmanager
    def transaction(self) -> Iterator[SqlConnection]:
        """A connection inside one transaction, committed at the end and rolled back by an exception."""
        if self.engine.is_in_memory and self._home != os.getpid():
            raise StorageError(
                f"catalog '{self.catalog}' is in the memory of the process that opened it, and this is another one; "
                "write uri=sqlite:////path/catalog.db for a catalog that several processes use"
            )
        self._prepare()
        with self.engine.begin() as connection:
            yield connection

    @property
    def user(self) -> str | None:
        """The user and the kind of credentials, without a secret; None for a database without users."""
        return self.engine.user

    def close(self) -> None:
        """Close every connection. This deletes a database in memory."""
        self.engine.close()

    def _prepare(self) -> None:
        if not self._created:
            for table, statement in CREATE.items():
                self._create(table, statement)
            self._created = True
        # The column is looked for until it exists: another engine may upgrade the catalog, and put views among the
        # tables.
        if not self._typed:
            found = self.engine.columns("iceberg_tables")
            if not found:
                raise StorageError(
                    f"the database of catalog '{self.catalog}' has no table iceberg_tables; remove the property "
                    "'init_catalog_tables', which forbids to create it, or look whether 'uri' names the right database"
                )
            self._typed = "iceberg_type" in found

    def _create(self, table: str, statement: str) -> None:
        if self.engine.columns(table):
            return
        try:
            with self.engine.begin() as connection:
                connection.execute(statement)
        except Exception:
            # Another process may have created it between the check and the CREATE.
            if not self.engine.columns(table):
                raise


def _engine_of(catalog: str, properties: Mapping[str, str]) -> SqlEngine:
    """The engine for a catalog's properties. Raises ``InvalidArgument``, which shows no part of ``uri``."""
    uri = properties.get("uri")
    if not uri:
        raise InvalidArgument(
            f"catalog '{catalog}' of type 'sql' needs the property 'uri', such as sqlite:////data/catalog.db or "
            "postgresql+psycopg://user@host/database"
        )
    engine = sqlite_engine(catalog, uri, echo=is_true(properties, "echo", False))
    if engine is not None:
        return engine
    try:
        make: type[ServerEngine] = _servers("ServerEngine")
    except ModuleNotFoundError:
        raise unusable(catalog) from None
    made: SqlEngine = make(catalog, uri, properties)
    return made


def _again(key: str, home: int, catalog: str, properties: Mapping[str, str]) -> Database:
    """Unpickle a database in memory: in its own process the same object, elsewhere a database that fails when used."""
    found = _IN_MEMORY.get(key)
    if found is not None:
        return found
    made = Database(catalog, properties)
    made._home, made._key = home if home != os.getpid() else -1, key
    return made
