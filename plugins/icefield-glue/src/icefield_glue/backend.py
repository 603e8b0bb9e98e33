"""The catalog ``glue``: namespaces are databases of the Glue Data Catalog, tables its tables of type ICEBERG."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from icefield.abc import CaseInsensitiveCatalog, CatalogAbility, CommitStrategy, NamespaceName, Page, TableName
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NamespaceExists,
    NamespaceNotEmpty,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
)
from icefield.metadata import decode_metadata
from icefield.toolkit import OutcomeUnknown, checked_names, checked_pointer, checked_properties

from icefield_glue.databases import LOCATION, database_of, properties_of
from icefield_glue.options import GlueClientOptions, GlueOptions
from icefield_glue.records import METADATA_LOCATION, is_iceberg, new_input, parameters_of
from icefield_glue.renaming import rename
from icefield_glue.service import CHANGED, NOT_FOUND, TAKEN, GlueRefusal, GlueReplyLost, GlueService, Record
from icefield_glue.strategy import GlueStrategy, create_once, database_names, kept_name, no_namespace

if TYPE_CHECKING:
    from icefield import FileIO

_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_ANY_NAME: Final = re.compile(r"[^\x00-\x1f/]+")
_LONGEST: Final = 255
_TRIES: Final = 10


class GlueBackend(CaseInsensitiveCatalog):
    """Databases and tables of one account's Data Catalog in one region."""

    abilities = frozenset({CatalogAbility.RENAME, CatalogAbility.REGISTRATION})

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self._service = GlueService(name, GlueOptions.of(name, self.properties))

    def kept_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return kept_name(name)

    # -- namespaces

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        name = self._database_name(namespace)
        try:
            self._service.change("create_database", DatabaseInput=database_of(name, properties))
        except GlueRefusal as refused:
            if refused.code == TAKEN:
                raise NamespaceExists(
                    f"namespace {name} exists already in catalog '{self.name}'", namespace=namespace
                ) from refused
            raise self._service.meaning(refused) from refused
        except GlueReplyLost as lost:
            raise self._service.lost(f"create namespace {name}", lost) from lost

    def drop_namespace(self, namespace: NamespaceName) -> None:
        name = self._require(namespace)["Name"]
        try:
            # Glue would delete the tables of the database with it.
            held = next(self._service.tables(name, 1), None)
            if held is not None:
                raise NamespaceNotEmpty(
                    f"namespace {name} of catalog '{self.name}' is not empty: it holds {held['Name']}",
                    namespace=namespace,
                )
            self._service.change("delete_database", Name=name)
        except GlueRefusal as refused:
            if refused.code == NOT_FOUND:
                raise no_namespace(self._service, namespace) from refused
            raise self._service.meaning(refused) from refused
        except GlueReplyLost as lost:
            if not self._is_gone(name):
                raise self._service.lost(f"drop namespace {name}", lost) from lost

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        if parent:
            self._require(parent)
            return Page(())
        return _page([(name,) for name in database_names(self._service)], token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return checked_properties(namespace, properties_of(self._require(namespace)))

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        self._require(namespace)
        # Glue has no condition for the change: threads of this process at least take turns.
        with _turn(self._service.options.client, kept_name(namespace)):
            self._update(namespace, updates, removals)

    def _update(self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]) -> None:
        for _ in range(_TRIES):
            record = self._require(namespace)
            name, before = record["Name"], properties_of(record)
            after = {key: value for key, value in {**before, **updates}.items() if key not in removals}
            try:
                self._service.change("update_database", Name=name, DatabaseInput=database_of(name, after, record))
                return
            except GlueRefusal as refused:
                if refused.code == NOT_FOUND:
                    raise no_namespace(self._service, namespace) from refused
                if refused.code != CHANGED:
                    raise self._service.meaning(refused) from refused
            except GlueReplyLost as lost:
                if self.namespace_properties(namespace) != after:
                    raise self._service.lost(f"change namespace {name}", lost) from lost
                return
        raise StorageError(
            f"namespace {'.'.join(namespace)} of catalog '{self.name}' is changed by others all the time",
            retryable=True,
        )

    # -- tables

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        name = self._require(namespace)["Name"]
        ours = (record["Name"] for record in self._service.tables(name) if is_iceberg(record))
        try:
            found = checked_names(f"the tables of {name} in catalog '{self.name}'", ours)
        except GlueRefusal as refused:
            if refused.code == NOT_FOUND:
                raise no_namespace(self._service, namespace) from refused
            raise self._service.meaning(refused) from refused
        return _page([(name, table) for table in sorted(found)], token, size)

    def table_location(self, table: TableName) -> str:
        database, name = self._table_name(table)
        place = properties_of(self._require(table[:-1])).get(LOCATION)
        if not place:
            warehouse = self.properties.get("warehouse")
            if not warehouse:
                raise InvalidArgument(
                    f"namespace {database} of catalog '{self.name}' has no location, and the catalog no property "
                    "'warehouse': set one of them, or give the table a location"
                )
            place = f"{warehouse.rstrip('/')}/{database}.db"
        return f"{place.rstrip('/')}/{name}"

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        self._table_name(table)
        # If the pointer is not known yet, the location of the table's current metadata determines the file system.
        place = location or self._pointer(table) or self.properties.get("warehouse") or "file:///"
        return GlueStrategy(table, place, self.io.storage(place), self.properties, self._service)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        database, name = self._table_name(table)
        self._require(table[:-1])
        metadata = decode_metadata(self.io.read_metadata(metadata_location), metadata_location)
        made = new_input(name, metadata_location, metadata)
        try:
            # Another registration of the same file does not differ from this one.
            created = create_once(self._service, database, made, lambda _: False)
        except OutcomeUnknown as lost:
            raise CommitStateUnknown(
                f"the reply to registering {database}.{name} was lost: {lost}; look whether the table is there",
                table=table,
                location=metadata_location,
            ) from lost
        if not created:
            raise TableExists(f"table {database}.{name} exists already in catalog '{self.name}'", table=table)

    def rename_table(self, source: TableName, target: TableName) -> None:
        self._table_name(source)
        self._table_name(target)
        self._require(target[:-1])
        rename(self._service, source, target)

    def credentials(self) -> str | None:
        return self._service.credentials

    # -- helpers

    def _pointer(self, table: TableName) -> str | None:
        record = self._service.table(*kept_name(table))
        return None if record is None else checked_pointer(table, parameters_of(record).get(METADATA_LOCATION))

    def _is_gone(self, database: str) -> bool:
        try:
            return self._service.database(database) is None
        except IcefieldError:
            return False

    def _require(self, namespace: NamespaceName) -> Record:
        is_name = len(namespace) == 1 and self._fits(namespace[0])
        record = self._service.database(*kept_name(namespace)) if is_name else None
        if record is None:
            raise no_namespace(self._service, namespace)
        return record

    def _fits(self, name: str) -> bool:
        pattern = _ANY_NAME if self._service.options.any_name else _NAME
        return len(name) <= _LONGEST and pattern.fullmatch(name) is not None

    def _database_name(self, namespace: NamespaceName) -> str:
        if len(namespace) != 1:
            raise NotSupportedByCatalog(
                f"catalog '{self.name}' has no nested namespaces: '{'.'.join(namespace)}' cannot be"
            )
        return self._checked(namespace[0])

    def _table_name(self, table: TableName) -> tuple[str, str]:
        if len(table) != 2:
            raise no_namespace(self._service, table[:-1])
        return self._checked(table[0]), self._checked(table[1])

    def _checked(self, name: str) -> str:
        """A name as Glue keeps it. Raises ``InvalidArgument`` if Glue cannot hold the name."""
        if not self._fits(name):
            raise InvalidArgument(
                f"'{name}' cannot be a name in catalog '{self.name}': up to {_LONGEST} letters a to z, digits and '_' "
                "can; 'glue.skip-name-validation' allows others, which Athena does not read"
            )
        return name.lower()


@lru_cache(maxsize=256)
def _turns(_client: GlueClientOptions, _namespace: NamespaceName, _process: int) -> threading.Lock:
    return threading.Lock()


def _turn(client: GlueClientOptions, namespace: NamespaceName) -> threading.Lock:
    """The lock of a namespace in this process; a forked process has locks of its own."""
    return _turns(client, namespace, os.getpid())


def _page(names: Sequence[tuple[str, ...]], token: str | None, size: int | None) -> Page[Any]:
    """The names after ``token``, which is the last name of the page before."""
    rest = [name for name in names if token is None or name[-1] > token]
    if size is None or len(rest) <= size:
        return Page(tuple(rest))
    return Page(tuple(rest[:size]), rest[size - 1][-1])
