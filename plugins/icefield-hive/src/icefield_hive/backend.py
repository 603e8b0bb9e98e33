"""The catalog ``hive``: namespaces are databases of a Hive Metastore, tables its external tables of type ICEBERG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icefield.abc import (
    CaseInsensitiveCatalog,
    CatalogAbility,
    CommitStrategy,
    NamespaceName,
    Page,
    Proposal,
    TableName,
)
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)
from icefield.metadata import decode_metadata
from icefield.toolkit import OutcomeUnknown, checked_names, checked_pointer, checked_properties

from icefield_hive.client import Metastore
from icefield_hive.connection import MetastoreRefusal
from icefield_hive.databases import COMMENT, LOCATION, database_of, location_of, properties_of
from icefield_hive.locks import Locked, held
from icefield_hive.messages import (
    ALTER_DATABASE,
    ALTER_TABLE,
    CREATE_DATABASE,
    DROP_DATABASE,
    GET_ALL_DATABASES,
    GET_ALL_TABLES,
    GET_DATABASE,
    GET_TABLES,
)
from icefield_hive.strategy import KEEP_STATISTICS, TABLES_AT_ONCE, HiveStrategy, kept_name, record_of
from icefield_hive.structs import Record
from icefield_hive.table_record import METADATA_LOCATION, is_iceberg, pointer_in

if TYPE_CHECKING:
    from icefield import FileIO

_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_LONGEST: Final = 128


class HiveBackend(CaseInsensitiveCatalog):
    """Databases and tables of the metastore that the property ``uri`` names."""

    abilities = frozenset({CatalogAbility.RENAME, CatalogAbility.REGISTRATION})

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self._metastore = Metastore(name, self.properties)

    def kept_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return kept_name(name)

    # -- namespaces

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        name = self._database_name(namespace)
        given = dict(properties)
        if LOCATION not in given and "warehouse" in self.properties:
            given[LOCATION] = f"{self.properties['warehouse'].rstrip('/')}/{name}.db"
        record = database_of(name, given, self._metastore.settings.user)
        taken = NamespaceExists(f"namespace {name} exists already in catalog '{self.name}'", namespace=namespace)
        with held(self._metastore, [(name, None)]):
            if self._database(name) is not None:
                raise taken
            try:
                self._metastore.ask(CREATE_DATABASE, record)
            except MetastoreRefusal as refused:
                if refused.kind == "AlreadyExists":
                    raise taken from refused
                raise InvalidArgument(
                    f"the Hive Metastore of '{self.name}' refuses {name}: {refused.said}"
                ) from refused

    def drop_namespace(self, namespace: NamespaceName) -> None:
        name = self._database_name(namespace)
        with held(self._metastore, [(name, None)]):
            self._require(namespace)
            try:
                self._metastore.ask(DROP_DATABASE, name, False, False)
            except MetastoreRefusal as refused:
                if refused.kind == "NoSuchObject":
                    raise self._no_namespace(namespace) from refused
                raise NamespaceNotEmpty(
                    f"namespace {name} of catalog '{self.name}' is not empty: {refused.said}", namespace=namespace
                ) from refused

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        if parent:
            self._require(parent)
            return Page(())
        names = checked_names(f"the namespaces of catalog '{self.name}'", self._metastore.names(GET_ALL_DATABASES))
        return _page([(name,) for name in sorted(names)], token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return checked_properties(namespace, properties_of(self._require(namespace)))

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        name = self._database_name(namespace)
        with held(self._metastore, [(name, None)]):
            record = self._require(namespace)
            before = properties_of(record)
            after = {key: value for key, value in {**before, **updates}.items() if key not in removals}
            changed = {**record, "ownerName": None, "description": "", **database_of(name, after, None)}
            try:
                self._metastore.ask(ALTER_DATABASE, name, changed)
            except MetastoreRefusal as refused:
                raise self._no_namespace(namespace) from refused
            stayed = self._stayed(namespace, before, after)
            if stayed:
                self._metastore.ask(ALTER_DATABASE, name, record)
                raise NotSupportedByCatalog(
                    f"the Hive Metastore of catalog '{self.name}' does not change {' and '.join(stayed)} of a namespace"
                )

    def _stayed(self, namespace: NamespaceName, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
        """The names of properties that did not change as requested: older metastores ignore such changes."""
        wanted = [key for key in (LOCATION, COMMENT) if after.get(key, "") != before.get(key, "")]
        found = properties_of(self._require(namespace)) if wanted else {}
        return [key for key in wanted if found.get(key, "") != after.get(key, "")]

    # -- tables

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        name = self._database_name(namespace)
        self._require(namespace)
        every = checked_names(
            f"the tables of {name} in catalog '{self.name}'", self._metastore.names(GET_ALL_TABLES, name)
        )
        names = sorted(found for found in every if token is None or found > token)
        tables: list[TableName] = []
        # The names include views and tables of other kinds, so that the number of names for a page is unknown.
        for start in range(0, len(names), TABLES_AT_ONCE):
            some = names[start : start + TABLES_AT_ONCE]
            try:
                answer: Record = self._metastore.ask(GET_TABLES, {"dbName": name, "tblNames": some})
            except MetastoreRefusal as refused:
                raise self._no_namespace(namespace) from refused
            ours = sorted(record["tableName"] for record in answer["tables"] if is_iceberg(record))
            tables += ((name, found) for found in ours)
            if size is not None and len(tables) > size:
                break
        return _page(tables, None, size)

    def table_location(self, table: TableName) -> str:
        _, name = self._table_name(table)
        return f"{location_of(self._require(table[:-1]))}/{name}"

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        self._table_name(table)
        # If the pointer is not known yet, the location of the table's current metadata determines the file system.
        place = location or self._pointer(table) or self.properties.get("warehouse") or "file:///"
        return HiveStrategy(table, place, self.io.storage(place), self.properties, self._metastore)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        name = self._table_name(table)
        self._require(table[:-1])
        metadata = decode_metadata(self.io.read_metadata(metadata_location), metadata_location)
        file_system = self.io.storage(metadata_location)
        strategy = HiveStrategy(table, metadata_location, file_system, self.properties, self._metastore)
        try:
            created = strategy.swap_pointer(None, metadata_location, Proposal(metadata))
        except OutcomeUnknown as lost:
            raise CommitStateUnknown(
                f"the reply to registering {'.'.join(name)} was lost: {lost}; look whether the table is there",
                table=table,
                location=metadata_location,
            ) from lost
        if not created:
            raise TableExists(f"table {'.'.join(name)} exists already in catalog '{self.name}'", table=table)

    def rename_table(self, source: TableName, target: TableName) -> None:
        old, new = self._table_name(source), self._table_name(target)
        names: list[Locked] = [old] if old == new else [old, new]
        with held(self._metastore, names) as lock:
            record = record_of(self._metastore, source)
            if record is None or pointer_in(record, source, self.name) is None:
                raise NoSuchTable(f"no table {'.'.join(source)} in catalog '{self.name}'", table=source)
            self._require(target[:-1])
            if record_of(self._metastore, target) is not None:
                raise TableExists(f"table {'.'.join(target)} exists already in catalog '{self.name}'", table=target)
            renamed = {**record, "dbName": new[0], "tableName": new[1]}
            lock.ensure_held()
            try:
                self._metastore.ask(ALTER_TABLE, *old, renamed, {"properties": KEEP_STATISTICS})
            except MetastoreRefusal as refused:
                raise self._not_renamed(source, target, refused) from refused

    def credentials(self) -> str | None:
        settings = self._metastore.settings
        return None if settings.groups is None else f"user '{settings.user}' by ugi, which the metastore believes"

    def close(self) -> None:
        self._metastore.close()

    def _not_renamed(self, source: TableName, target: TableName, refused: MetastoreRefusal) -> IcefieldError:
        if record_of(self._metastore, target) is not None:
            return TableExists(f"table {'.'.join(target)} exists already in catalog '{self.name}'", table=target)
        if record_of(self._metastore, source) is None:
            return NoSuchTable(f"no table {'.'.join(source)} in catalog '{self.name}'", table=source)
        return InvalidArgument(f"the Hive Metastore of '{self.name}' does not rename: {refused.said}")

    def _pointer(self, table: TableName) -> str | None:
        record = record_of(self._metastore, table)
        return (
            None if record is None else checked_pointer(table, (record.get("parameters") or {}).get(METADATA_LOCATION))
        )

    def _database(self, name: str) -> Record | None:
        try:
            record: Record = self._metastore.ask(GET_DATABASE, name)
        except MetastoreRefusal:
            return None
        return record

    def _require(self, namespace: NamespaceName) -> Record:
        record = self._database(*kept_name(namespace)) if len(namespace) == 1 else None
        if record is None:
            raise self._no_namespace(namespace)
        return record

    def _no_namespace(self, namespace: NamespaceName) -> NoSuchNamespace:
        return NoSuchNamespace(
            f"no namespace {'.'.join(namespace)} in catalog '{self.name}'; create_namespace makes it",
            namespace=namespace,
        )

    def _database_name(self, namespace: NamespaceName) -> str:
        if len(namespace) != 1:
            raise NotSupportedByCatalog(
                f"catalog '{self.name}' has no nested namespaces: '{'.'.join(namespace)}' cannot be"
            )
        return _checked(namespace[0])

    def _table_name(self, table: TableName) -> tuple[str, str]:
        if len(table) != 2:
            raise self._no_namespace(table[:-1])
        return _checked(table[0]), _checked(table[1])


def _checked(name: str) -> str:
    """A name as the metastore keeps it. Raises ``InvalidArgument`` if the metastore cannot hold the name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InvalidArgument(
            f"'{name}' cannot be a name in a Hive Metastore: up to {_LONGEST} letters a to z, digits and '_' can"
        )
    return name.lower()


def _page(names: Sequence[tuple[str, ...]], token: str | None, size: int | None) -> Page[Any]:
    """The names after ``token``, which is the last name of the page before."""
    rest = [name for name in names if token is None or name[-1] > token]
    if size is None or len(rest) <= size:
        return Page(tuple(rest))
    return Page(tuple(rest[:size]), rest[size - 1][-1])
