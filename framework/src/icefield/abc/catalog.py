"""The contracts of a catalog: namespaces, tables' names, and the strategy that commits each table.

A backend stores names and pointers and nothing else. Defaults, schemas, transactions and messages are the work of
``icefield.catalog.Catalog``, which wraps it for users.

Optional features are classes of their own, and ``isinstance`` is the test for them: ``ViewCatalog``,
``MultiTableCatalog``, ``ServedCatalog`` and ``CaseInsensitiveCatalog``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from icefield.errors import NotSupportedByCatalog

if TYPE_CHECKING:
    from icefield.abc.commit import CommitStrategy, Committed, Conflict, Current, TableChange
    from icefield.metadata import TableUpdate, ViewMetadata, ViewRequirement, ViewUpdate
    from icefield.storage import FileIO

NamespaceName = tuple[str, ...]
"""The levels of a namespace: ``("lake", "raw")``."""

TableName = tuple[str, ...]
"""The levels of a namespace, then the table's own name."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a listing; ``next_token`` is None on the last."""

    items: tuple[T, ...]
    next_token: str | None = None


@dataclass(frozen=True, slots=True)
class NewTable:
    """A request to a service to create a table. The service chooses the uuid, and the location unless one is given.

    ``updates`` state its schema, partition spec and sort order; ``properties`` may hold ``format-version``.
    """

    updates: tuple[TableUpdate, ...]
    properties: Mapping[str, str]
    location: str | None = None


@dataclass(frozen=True, slots=True)
class CurrentView:
    """A view at one version: the location of its metadata file, and the metadata.

    ``properties`` are the view's own configuration, if a service returns one.
    """

    location: str
    metadata: ViewMetadata = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ViewProposal:
    """A change of a view that is to be committed.

    ``metadata`` is the new metadata. ``updates`` turn the base into it, or create it for a new view; ``requirements``
    are their preconditions on the base. A service that applies updates itself needs both.
    """

    metadata: ViewMetadata
    updates: tuple[ViewUpdate, ...] = ()
    requirements: tuple[ViewRequirement, ...] = ()


class CatalogAbility(Enum):
    """An optional feature of a catalog. The kit tests that declared features work and that all others are refused."""

    RENAME = "rename"
    """``rename_table`` gives a table another name, in one step."""

    REGISTRATION = "registration"
    """``register_table`` adds a table from its existing metadata file."""

    NESTED_NAMESPACES = "nested-namespaces"
    """A namespace may have several levels. Without this ability, such names never reach the backend."""


class CatalogBackend(ABC):
    """Stores namespaces and table names, and hands out each table's commit strategy.

    Built with the catalog's name, its string properties and the file IO that was assembled for it. Names come
    checked: no empty level, no control character. Every method is atomic: it happens whole or not at all.
    """

    contract: ClassVar[int] = 2
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    @property
    def abilities(self) -> frozenset[CatalogAbility]:
        """The declared abilities, usually a class attribute: ``abilities = frozenset({...})``.

        Instances may differ, for example by the answer of a service. Read it from an instance, not from the class.
        """
        return frozenset()

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        self.name = name
        self.properties: dict[str, str] = dict(properties)
        self.io = io

    @abstractmethod
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raises ``NamespaceExists``, and ``NoSuchNamespace`` unless it makes missing parents."""

    @abstractmethod
    def drop_namespace(self, namespace: NamespaceName) -> None:
        """Drop an empty namespace. Raises ``NoSuchNamespace``, ``NamespaceNotEmpty``."""

    @abstractmethod
    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        """The namespaces directly below ``parent`` (``()`` is the root), sorted. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        """The properties of a namespace. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        """Set and remove properties in one step. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        """The tables directly in a namespace, sorted. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def table_location(self, table: TableName) -> str:
        """The default location of a new table of that name, without a trailing slash. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        """The strategy that loads and commits that table; ``location`` is given when the table is being created.

        Does not check whether the table exists: ``CommitStrategy.load`` does.
        """

    def register_table(self, table: TableName, metadata_location: str) -> None:
        """Add a table from its existing metadata file. Raises ``TableExists``, ``NoSuchNamespace``.

        Without ``REGISTRATION``, raises ``NotSupportedByCatalog``.
        """
        raise NotSupportedByCatalog(f"catalog '{self.name}' cannot register a table")

    def rename_table(self, source: TableName, target: TableName) -> None:
        """Rename a table. Raises ``NoSuchTable``, ``TableExists``, ``NoSuchNamespace``.

        Without ``RENAME``, raises ``NotSupportedByCatalog``.
        """
        raise NotSupportedByCatalog(f"catalog '{self.name}' cannot rename a table")

    def credentials(self) -> str | None:
        """The identity that the catalog uses at its store, without secrets; None without authentication."""
        return None

    def close(self) -> None:  # noqa: B027 -- a backend without connections has nothing to do
        """Release connections."""


class ServedCatalog(CatalogBackend):
    """A catalog whose service reads and writes the metadata of its tables.

    The kernel opens no metadata file, and the property ``warehouse`` is a name that the service knows.
    """

    @abstractmethod
    def create_table(self, table: TableName, new: NewTable, *, staged: bool = False) -> Current:
        """Create a table; the result holds its metadata.

        With ``staged`` nothing becomes visible: the caller completes the returned table, and its strategy commits it
        with ``base=None``. Raises ``TableExists``, ``NoSuchNamespace``, ``CommitStateUnknown``.
        """

    @abstractmethod
    def purge_table(self, table: TableName) -> None:
        """Drop a table and delete its files. Raises the errors of ``CommitStrategy.drop``."""

    @abstractmethod
    def table_exists(self, table: TableName) -> bool:
        """Whether there is a table of that name."""

    @abstractmethod
    def namespace_exists(self, namespace: NamespaceName) -> bool:
        """Whether there is a namespace of that name."""


class MultiTableCatalog(CatalogBackend):
    """A catalog that changes several tables in one step."""

    @abstractmethod
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        """Commit changes of several tables in one step, which keeps the promises of ``CommitStrategy.commit``.

        A ``Conflict`` says that another commit of one of the tables came first, and that no part of the change is
        visible.
        """


class ViewCatalog(CatalogBackend):
    """A catalog that keeps views. Tables and views share one set of names."""

    @abstractmethod
    def list_views(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        """The views directly in a namespace, sorted. Raises ``NoSuchNamespace``."""

    @abstractmethod
    def load_view(self, view: TableName) -> CurrentView | None:
        """A view at its current version; None when there is none of that name."""

    @abstractmethod
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        """Replace ``base`` by the proposal, in one step; ``base=None`` creates the view, if there is none.

        Returns None if another change came first; nothing of this one is then left. Raises ``ViewExists``,
        ``TableExists``, ``NoSuchNamespace``, ``NoSuchView``, ``CommitStateUnknown``.
        """

    @abstractmethod
    def drop_view(self, view: TableName) -> None:
        """Drop a view. Raises ``NoSuchView``."""

    @abstractmethod
    def rename_view(self, source: TableName, target: TableName) -> None:
        """Rename a view. Raises ``NoSuchView``, ``ViewExists``, ``TableExists``, ``NoSuchNamespace``."""


class CaseInsensitiveCatalog(CatalogBackend):
    """A catalog that finds a table by several spellings of its name, such as in another case."""

    @abstractmethod
    def kept_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The name of a namespace, table or view as the catalog keeps it: the same for all spellings of one table."""
