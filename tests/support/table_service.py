"""A catalog with a service that holds the metadata itself, like a REST catalog: clients can read no metadata file.

The service decides by requirements and applies the updates; each response contains a new key, and only the newest keys
open files of its tables.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from dictionary_catalog import LOCK, STORES, DictionaryBackend
from icefield import Plugins, Provider, hookimpl
from icefield.abc import (
    CatalogAbility,
    CommitStrategy,
    Committed,
    Conflict,
    Current,
    FileInfo,
    FileSystem,
    InputFile,
    OutputStream,
    Pointer,
    Proposal,
    PutMode,
    TableName,
)
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import (
    AccessDenied,
    CommitFailed,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
)
from icefield.metadata import (
    TableMetadata,
    apply_updates,
    decode_metadata,
    encode_metadata,
    new_table_metadata,
    with_metadata_log,
)
from icefield.metadata.requirements import check
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.definitions import AddPartitionSpec, AddSchema, AddSortOrder, SetDefaultSpec
from icefield.metadata.updates.table import AssignUUID, SetLocation, SetProperties, UpgradeFormatVersion

KEY = "vended.key"
MASTER = "master"
"""A key of the catalog's own, for those who look at its files without a table."""
_KEYS = count(1)


class VendedFileSystem(FileSystem):
    """Files in memory, at ``vended://``, for clients with a recently vended key."""

    abilities = MemoryFileSystem.abilities
    valid: ClassVar[deque[str]] = deque(maxlen=1_000)
    inner: ClassVar[MemoryFileSystem] = MemoryFileSystem()

    def _open(self, location: str) -> MemoryFileSystem:
        if self.properties.get(KEY) not in (MASTER, *self.valid):
            raise AccessDenied(f"no valid key for {location}", location=location)
        return self.inner

    def open_input(self, location: str) -> InputFile:
        return self._open(location).open_input(location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self._open(location).put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        return self._open(location).open_output(location)

    def stat(self, location: str) -> FileInfo:
        return self._open(location).stat(location)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return self._open(prefix).list_files(prefix, shallow=shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            self._open(location).delete_many([location])

    def rename(self, source: str, target: str) -> None:
        self._open(source).rename(source, target)


class Offer:
    """The file system, as a plugin."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [Provider("vended", "table_service:VendedFileSystem")]


@dataclass
class Service:
    """The versions of each table, as JSON."""

    tables: dict[TableName, list[bytes]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)


SERVICES: defaultdict[str, Service] = defaultdict(Service)


class ServiceStrategy(CommitStrategy):
    """Asks the service."""

    @property
    def service(self) -> Service:
        return SERVICES[self.properties["warehouse"]]

    def load(self) -> Current | None:
        with LOCK:
            versions = self.service.tables.get(self.table)
            return None if versions is None else Current(*self._answer(versions))

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        with LOCK:
            self.service.proposals.append(proposal)
            versions = self.service.tables.get(self.table)
            current = None if versions is None else self._metadata(versions)
            try:
                check(proposal.requirements, current)
            except CommitFailed:
                return Conflict()
            if versions is None or current is None:
                self._check_namespace()
                versions = self.service.tables[self.table] = []
                made = _created(proposal.updates)
            else:
                before = self._pointer(versions).location
                made = with_metadata_log(apply_updates(current, proposal.updates), before, current.last_updated_ms)
            versions.append(encode_metadata(made))
            return Committed(*self._answer(versions))

    def drop(self) -> None:
        with LOCK:
            if self.service.tables.pop(self.table, None) is None:
                raise NoSuchTable(f"no table {'.'.join(self.table)}", table=self.table)

    def _check_namespace(self) -> None:
        namespace = self.table[:-1]
        if namespace not in STORES[self.properties["warehouse"]].namespaces:
            raise NoSuchNamespace(f"no namespace {'.'.join(namespace)}", namespace=namespace)

    def _answer(self, versions: list[bytes]) -> tuple[Pointer, TableMetadata, dict[str, str]]:
        key = f"key-{next(_KEYS)}"
        VendedFileSystem.valid.append(key)
        # A client must not obey a service's statements about the user's own limits.
        properties = {KEY: key, "location.allowed-schemes": "none"}
        return self._pointer(versions), self._metadata(versions), properties

    def _pointer(self, versions: list[bytes]) -> Pointer:
        uuid = self._metadata(versions).table_uuid
        return Pointer(f"service://{uuid}/v{len(versions)}.metadata.json", len(versions))

    def _metadata(self, versions: list[bytes]) -> TableMetadata:
        return decode_metadata(versions[-1], "the service")


class ServiceBackend(DictionaryBackend):
    """Namespaces in dictionaries, and tables in the service."""

    abilities = frozenset({CatalogAbility.NESTED_NAMESPACES})

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        place = location or self.properties["warehouse"]
        return ServiceStrategy(table, place, self.io.storage(place), self.properties)

    def list_tables(self, namespace: Any, *, token: str | None = None, size: int | None = None) -> Any:
        self.check(namespace)
        tables = SERVICES[self.properties["warehouse"]].tables
        return self.page((name for name in [*tables] if name[:-1] == namespace), token, size)

    def drop_namespace(self, namespace: Any) -> None:
        with LOCK:
            if self.list_tables(namespace).items:
                raise NamespaceNotEmpty(f"namespace {'.'.join(namespace)} is not empty", namespace=namespace)
            super().drop_namespace(namespace)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        raise NotSupportedByCatalog("no registration")

    def rename_table(self, source: TableName, target: TableName) -> None:
        raise NotSupportedByCatalog("no renaming")


def plugins() -> Plugins:
    """Return the installed plugins, and the file system of the service."""
    return Plugins.installed(extra=[Offer()])


def _created(updates: tuple[TableUpdate, ...]) -> TableMetadata:
    """The metadata of a new table, built only from the updates that a service receives."""
    found: dict[type, Any] = {}
    first = next(at for at, update in enumerate(updates) if isinstance(update, SetDefaultSpec)) + 3
    if len(updates) > first and isinstance(updates[first], SetProperties):
        first += 1
    for update in updates[:first]:
        found.setdefault(type(update), update)
    made = new_table_metadata(
        found[AddSchema].schema,
        found[AddPartitionSpec].spec,
        found[AddSortOrder].sort_order,
        found[SetLocation].location,
        found[SetProperties].updates if SetProperties in found else {},
        found[UpgradeFormatVersion].format_version,
        found[AssignUUID].uuid,
    )
    return apply_updates(made, updates[first:])
