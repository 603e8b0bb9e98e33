"""The contract of an engine: a database that runs statements in transactions.

Statements are text with named values, such as ``:name``, for SQLite and for servers alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from icefield.errors import InvalidArgument, StorageError


class SqlRows(Protocol):
    """What a statement returned; each row is a tuple."""

    @property
    def rowcount(self) -> int:
        """The number of changed rows."""

    def fetchone(self) -> Any | None:
        """The next row, or None."""

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A connection inside a transaction."""

    def execute(self, statement: str, values: Mapping[str, Any] = ..., /) -> SqlRows:
        """Run a statement with its named values."""

    def stream(self, statement: str, values: Mapping[str, Any] = ..., /) -> SqlRows:
        """Run a query whose rows are fetched in parts, as there may be any number of them."""


class NameTaken(Exception):
    """A row with that key exists already."""


class DatabaseConnectionLost(Exception):
    """The connection broke during a statement, so that the outcome is unknown."""


class SqlEngine(ABC):
    """A database. Threads may share it."""

    def __init__(self, catalog: str, shown: str, user: str | None = None) -> None:
        """``shown`` is its URI without secrets, and ``user`` describes the user and the kind of credentials."""
        self.catalog = catalog
        self.shown = shown
        self.user = user

    @property
    def is_in_memory(self) -> bool:
        """Whether the database is in the memory of this process."""
        return False

    @abstractmethod
    def begin(self) -> AbstractContextManager[SqlConnection]:
        """A connection inside one transaction, committed at the end and rolled back by an exception.

        Errors of the driver become ``NameTaken``, ``DatabaseConnectionLost`` or ``StorageError``.
        """

    @abstractmethod
    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; none if there is no such table."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection. This deletes a database in memory."""

    def failed(self, reason: str) -> StorageError:
        """The error for a statement that the database refused."""
        return StorageError(f"catalog '{self.catalog}' cannot use its database {self.shown}: {reason}")


def unusable(catalog: str) -> InvalidArgument:
    """The error for a URI that names no database; it shows no part of the URI, which may hold a password."""
    return InvalidArgument(
        f"catalog '{catalog}': the database that 'uri' names cannot be used; write sqlite:////path/catalog.db, or for "
        "PostgreSQL install icefield-sql[postgres] and write postgresql+psycopg://user@host/database"
    )
