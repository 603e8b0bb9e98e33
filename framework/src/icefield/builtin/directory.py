"""The catalog ``directory``: a table's name is its path below the warehouse, and no service is needed.

Properties: ``warehouse``, a location; ``commit``, the strategy (``create`` or ``rename``; by default ``create`` if the
storage supports it, else ``rename``). The layout is that of Iceberg's Hadoop catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from icefield.abc import (
    CatalogAbility,
    CatalogBackend,
    CommitStrategy,
    Conflict,
    FileSystemAbility,
    NamespaceName,
    Page,
    TableName,
)
from icefield.builtin.namespaces import NamespaceFolder, folders_in, is_table
from icefield.commit import creation_of
from icefield.errors import (
    IcefieldError,
    InvalidArgument,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NotSupportedByCatalog,
    TableExists,
)
from icefield.metadata import METADATA_FOLDER, decode_metadata, metadata_folder
from icefield.storage import FileIO
from icefield.toolkit.table_folders import note_folder
from icefield.toolkit.versioned_strategy import VersionedStrategy

Name = TypeVar("Name", NamespaceName, TableName)


class DirectoryBackend(CatalogBackend):
    """Namespaces and tables as folders below the warehouse.

    Renaming a table is a declared gap: its name is its path.
    """

    abilities = frozenset({CatalogAbility.REGISTRATION, CatalogAbility.NESTED_NAMESPACES})

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise InvalidArgument(f"catalog '{name}' of type 'directory' needs the property 'warehouse'")
        # The location is kept as given. Metadata holds locations without ``location.map``, which applies only when a
        # file is opened.
        self.warehouse = warehouse.rstrip("/")
        self._strategy = self.properties.get("commit") or self._safe_strategy()
        # Refuses an unsuitable commit strategy before anything is written.
        self._versioned((), self.warehouse)

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self._namespace(namespace).create(properties)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        found = self._existing(namespace)
        below = [(*namespace, name) for name in self._folders(self._path(namespace))]
        if any(self._is_table(self._path(name)) or self._namespace(name).exists() for name in below):
            raise NamespaceNotEmpty(f"namespace {'.'.join(namespace)} is not empty", namespace=namespace)
        found.drop()

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        if parent:
            self._existing(parent)
        names = [
            (*parent, name) for name in self._folders(self._path(parent)) if self._namespace((*parent, name)).exists()
        ]
        return _page(names, token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self._namespace(namespace).properties()

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        self._namespace(namespace).update(updates, removals)

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self._existing(namespace)
        folder = self._path(namespace)
        names = [(*namespace, name) for name in self._folders(folder) if self._is_table(f"{folder}/{name}")]
        return _page(names, token, size)

    def table_location(self, table: TableName) -> str:
        self._existing(table[:-1])
        return self._path(table)

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        path = self._path(table)
        if location is not None and location.rstrip("/") != path:
            raise InvalidArgument(
                f"catalog '{self.name}' finds a table by its path, and {'.'.join(table)} is at {path}: "
                "leave location out",
                table=table,
            )
        return self._versioned(table, path)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        self._existing(table[:-1])
        metadata = decode_metadata(self.io.read_metadata(metadata_location), metadata_location)
        place = metadata_folder(metadata.location, metadata.properties)
        with suppress(IcefieldError):  # the folder of its files may be read-only
            note_folder(self.io.storage(place), place, f"{self._path(table)}/{METADATA_FOLDER}", metadata.table_uuid)
        if isinstance(self.strategy(table).commit(None, creation_of(metadata)), Conflict):
            raise TableExists(f"table {'.'.join(table)} exists already", table=table)

    def rename_table(self, source: TableName, target: TableName) -> None:
        old, new = ".".join(source), ".".join(target)
        raise NotSupportedByCatalog(
            f"{old} cannot be renamed to {new}: catalog '{self.name}' finds a table by its path, {self._path(source)}, "
            f"and a folder cannot be moved in one step while others use it. Create {new} and append "
            f"load_table('{old}').scan().to_arrow_batch_reader() to it, then drop {old}; or keep tables that are to be "
            "renamed in a metastore catalog, such as type='sql'. Nothing was changed",
            table=source,
        )

    def _safe_strategy(self) -> str:
        abilities = self.io.file_system(self.warehouse).abilities
        return "create" if FileSystemAbility.ATOMIC_CREATE in abilities else "rename"

    def _path(self, name: Sequence[str]) -> str:
        for level in name:
            if "/" in level or "\\" in level or level.startswith("."):  # folders with a dot are hidden: never listed
                raise InvalidArgument(f"'{level}' cannot be a name in catalog '{self.name}': names are folders here")
        return "/".join((self.warehouse, *name))

    def _namespace(self, namespace: NamespaceName) -> NamespaceFolder:
        path = self._path(namespace)
        # The strategy that publishes and deletes versions does the same with markers.
        return NamespaceFolder(namespace, path, self._versioned(namespace, path))

    def _versioned(self, name: tuple[str, ...], path: str) -> VersionedStrategy:
        """The strategy for the table or namespace at a path. Raises ``InvalidArgument`` for an unsuitable strategy."""
        strategy = self.io.commit_strategy(self._strategy, name, path)
        if not isinstance(strategy, VersionedStrategy):
            raise InvalidArgument(
                f"catalog '{self.name}' of type 'directory' finds tables by the versions in their folders, and commit "
                f"strategy '{self._strategy}' publishes none: {type(strategy).__name__} is no subclass of "
                "icefield.toolkit.VersionedStrategy. Set 'commit' to another strategy, such as 'create' or "
                "'rename'"
            )
        return strategy

    def _existing(self, namespace: NamespaceName) -> NamespaceFolder:
        found = self._namespace(namespace)
        if not found.exists():
            raise NoSuchNamespace(
                f"no namespace {'.'.join(namespace)} in catalog '{self.name}'; create_namespace makes it",
                namespace=namespace,
            )
        return found

    def _folders(self, folder: str) -> Iterator[str]:
        found = folders_in(self.io.storage(folder), folder)
        return (name for name in found if not name.startswith("."))

    def _is_table(self, folder: str) -> bool:
        return is_table(self.io.storage(folder), folder)


def _page(names: list[Name], token: str | None, size: int | None) -> Page[Name]:
    """The names after ``token``, which is the last name of the page before."""
    ordered = sorted(name for name in names if token is None or name[-1] > token)
    if size is None or len(ordered) <= size:
        return Page(tuple(ordered))
    return Page(tuple(ordered[:size]), ordered[size - 1][-1])
