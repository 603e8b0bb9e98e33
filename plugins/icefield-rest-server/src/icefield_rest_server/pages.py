"""Pages for people beside the protocol: the request of a page, and the parts of the catalog that its client may see."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from icefield import Plugins, Provider, Table
from icefield.abc import ViewCatalog
from icefield.commit import TableHandle, load_table
from icefield.errors import MissingPlugin, NoSuchTable
from icefield.metadata import ViewMetadata

from icefield_rest_server.answers import Answer
from icefield_rest_server.calls import levels
from icefield_rest_server.state import State
from icefield_rest_server.tokens import Principal

_LISTING = ("listTables", "listNamespaces")

_MOST_WALKED = 100_000

Name = tuple[str, ...]


class ReadAccess:
    """The catalog as one client may see it. Nothing can be changed through it.

    Rights are those of the protocol: each method asks the authorizer for the operation that it names, and raises
    ``Refused`` without the right. Lists leave out names that the client may not load.
    """

    def __init__(self, state: State, principal: Principal | None) -> None:
        self._state, self._principal = state, principal

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReadAccess):
            return NotImplemented
        return self._state is other._state and self._principal == other._principal

    def __hash__(self) -> int:
        return hash((id(self._state), self.user))

    @property
    def server(self) -> Hashable:
        """The server. A result about a table may be kept by it, for all clients with the rights for this result."""
        return self._state

    @property
    def catalog_name(self) -> str:
        """The name of the catalog."""
        return self._state.catalog.name

    @property
    def user(self) -> str:
        """The name of the client; empty without authentication."""
        return "" if self._principal is None else self._principal.name

    def allows(self, operation: str, name: Name) -> bool:
        """Whether the client may do an operation, such as ``loadTable``, with a namespace, table or view."""
        return self._state.allows(self._principal, operation, name)

    def namespaces(self, parent: Name, *, most: int, containing: str = "") -> list[Name]:
        """The namespaces directly below another, ``()`` at the top (``listNamespaces``); at most ``most``.

        Namespaces without the right to list their tables or namespaces are left out.
        """
        self._check("listNamespaces", parent)
        found = self._state.catalog.list_namespaces(parent)
        return _first(found, most, containing, lambda each: any(self.allows(right, each) for right in _LISTING))

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """The properties of a namespace (``loadNamespaceMetadata``). Raises ``NoSuchNamespace``."""
        self._check("loadNamespaceMetadata", namespace)
        return self._state.catalog.load_namespace_properties(namespace)

    def tables(self, namespace: Name, *, most: int, containing: str = "", after: str = "") -> list[Name]:
        """The tables directly in a namespace (``listTables``) with a name after another; at most ``most``.

        Tables without the right ``loadTable`` are left out.
        """
        self._check("listTables", namespace)
        found = sorted(each for each in self._state.catalog.list_tables(namespace) if each[-1] > after)
        return _first(found, most, containing, lambda each: self.allows("loadTable", each))

    def find_tables(self, containing: str, *, most: int) -> tuple[list[Name], bool]:
        """The tables of all namespaces with a name that contains a string, at most ``most``, and whether these are all.

        Namespaces without the right ``listTables`` and tables without the right ``loadTable`` are left out. Names
        beyond the first 100,000 of the catalog are not looked at.
        """
        listed: dict[Name, bool] = {}

        def may(name: Name) -> bool:
            space = name[:-1]
            if space not in listed:
                listed[space] = self.allows("listTables", space)
            return listed[space] and self.allows("loadTable", name)

        names = self._state.catalog.walk_tables()
        found = _first(islice(names, _MOST_WALKED), most + 1, containing, may)
        return found[:most], len(found) <= most and next(names, None) is None

    def views(self, namespace: Name, *, most: int, containing: str = "", after: str = "") -> list[Name]:
        """The views directly in a namespace (``listViews``), as ``tables``; none if the catalog has no views."""
        if not isinstance(self._state.catalog.backend, ViewCatalog):
            return []
        self._check("listViews", namespace)
        found = sorted(each for each in self._state.catalog.list_views(namespace) if each[-1] > after)
        return _first(found, most, containing, lambda each: self.allows("loadView", each))

    def table(self, name: Name) -> Table:
        """A table at its current version (``loadTable``), which can only be read. Raises ``NoSuchTable``.

        With an authorizer, it opens only files in the table's own place; see ``State.io_for_clients``.
        """
        self._check("loadTable", name)
        catalog = self._state.catalog
        state = load_table(TableHandle(name, catalog.io, catalog.backend.strategy(name)))
        if state is None:
            raise NoSuchTable(f"no table {'.'.join(name)} in catalog '{catalog.name}'", table=name)
        io = catalog.io
        if self._state.settings.authorizer is not None:
            io = self._state.policy.confined(io, name, state.metadata)
        return Table(TableHandle(name, io), state)

    def view(self, name: Name) -> ViewMetadata:
        """The metadata of a view (``loadView``). Raises ``NoSuchView``."""
        self._check("loadView", name)
        return self._state.catalog.load_view(name).metadata

    def check_files(self, name: Name) -> None:
        """Raise ``Refused`` for a client that may not plan scans of a table (``planTableScan``): it sees no files."""
        self._check("planTableScan", name)

    def gives_rows(self, table: Table) -> bool:
        """Whether the client could read a table's rows through the protocol, with the server's help.

        A client without authentication may. An authenticated one may if it would get credentials or signatures for the
        table's files (``loadCredentials``), and may plan scans.
        """
        settings, name, location = self._state.settings, table.name(), table.location()
        if settings.authenticator is None and settings.authorizer is None:
            return True
        if not (self.allows("loadCredentials", name) and self.allows("planTableScan", name)):
            return False
        if settings.authenticator is None or self._state.signs(name, location):
            return self._state.may_open(name, location)
        return bool(self._state.vended(self._principal, name, location))

    def _check(self, operation: str, name: Name) -> None:
        self._state.check_allowed(self._principal, operation, name)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of a page, by a client that is authenticated where the server asks for it.

    ``parts`` are the parts of the path below the pages' own, without escapes. ``root`` is the path of the pages, for
    links: ``/ui``. ``is_foreign`` says that a page of another site sent the client here: start no costly work then.
    ``gone`` is done when the client no longer waits for the answer: costly work can end then.
    """

    parts: Sequence[str]
    query: Mapping[str, str]
    root: str
    is_foreign: bool
    access: ReadAccess = field(repr=False)
    gone: Future[None] = field(default_factory=Future, repr=False)

    def name(self, first: int, what: str) -> Name:
        """The levels of a name from a part on. Raises ``InvalidArgument`` for names that no catalog can have."""
        return levels(tuple(self.parts[first:]), what)


Pages: TypeAlias = Callable[[PageRequest], Answer]
"""Answers a request of a page, in a thread. The body is bytes, and the headers state the ``Content-Type``."""


def installed_pages(plugins: Plugins) -> dict[str, Pages]:
    """The pages of all plugins, by the first part of their path. Raises ``MissingPlugin`` if there are none."""
    names = {name for _, provider in plugins.records("icefield_pages", Provider) for name in provider.names}
    if not names:
        raise MissingPlugin('no plugin provides pages: pip install "icefield[explorer]"')
    return {name: plugins.provided("icefield_pages", name, "pages") for name in sorted(names)}


def _first(names: Iterable[Name], most: int, containing: str, may: Callable[[Name], bool]) -> list[Name]:
    """The first names that contain a string and may be seen, in the order of the catalog."""
    wanted = containing.casefold()
    return list(islice((each for each in names if wanted in each[-1].casefold() and may(each)), most))
