"""The locations that a table may use if clients have limited rights: locations without files of other tables."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from icefield import Catalog, FileIO
from icefield.abc import CatalogAbility, ViewCatalog
from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield.metadata import TableMetadata
from icefield.storage import folders_of

from icefield_rest_server.answers import Refused
from icefield_rest_server.owned_folders import OwnedFiles
from icefield_rest_server.settings import Settings

Name = tuple[str, ...]

_MOST_SECONDS: Final = 10.0
_HELD: Final = 60.0
_METADATA: Final = ".metadata.json"
_FOLDERS: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_HIDES: Final = re.compile(r"%(2e|2f|5c|00)|[?#]", re.IGNORECASE)
"""Dots and slashes that some engines undo, and where a location ends for some."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The folders of a table: ``certain`` folders, and folders that its metadata only states.

    A location is certain if the catalog confirms it: if it is the default location of the table's name, or contains the
    table's metadata file. All other folders are only claims of the metadata, and a writer of one table could state
    folders of another.
    """

    certain: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()


class TablePlaces:
    """Says which locations are a table's own, by the tables and namespaces of a catalog.

    ``loaded`` returns the location of a table's metadata file, and its metadata. A table's own location is below the
    location of its namespace, or a folder of ``Settings.owned_folders``. It is in no folder of another table or
    namespace, and contains none. A table with a certain location keeps it even if another table only states the same
    folder.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, loaded: Callable[[Name], tuple[str, TableMetadata]]
    ) -> None:
        self._catalog, self._settings, self._loaded = catalog, settings, loaded
        self._known: dict[tuple[Name, str], tuple[float, bool]] = {}
        self._lock = threading.Lock()

    # -- locations --------------------------------------------------------------------------------------------------

    def is_own(self, table: Name, location: str) -> bool:
        """Whether the location of an existing table is its own.

        The default location of the table's name is its own, unless a namespace shares the name. Other tables are not
        checked: no client could create another table there. The result for any other location is cached for a minute.
        """
        table = self._catalog.kept_name(table)
        home = self.home(table[:-1])
        if location.rstrip("/") == _by_name(home, table):
            return not self._shares_its_name(table)
        return self._remembered(
            table, location, lambda: self._is_free(home, table, location, certain=self._is_certain(table, location))
        )

    def may_read(self, table: Name, metadata: TableMetadata, folder: str) -> bool:
        """Whether readers of a table may get manifests, manifest lists and statistics from a folder.

        They may get files below the table's own location. They may also get files in its folders, in the location of
        its namespace and in ``Settings.owned_folders``, except for folders of other tables. The result is cached for a
        minute.
        """
        table = self._catalog.kept_name(table)
        io = self._catalog.io.relative_to(metadata.location)
        if _is_in(io, folder, metadata.location) and self.is_own(table, metadata.location):
            return True
        return self._remembered(
            table, f"{metadata.location}\0{folder}", lambda: self._is_nobodys(table, metadata, folder)
        )

    def check_folder(self, table: Name, location: str, folder: str) -> None:
        """Raise ``Refused`` for a folder that a table at a location cannot have its files in."""
        table = self._catalog.kept_name(table)
        place = folder.rstrip("/")
        if not _HIDES.search(place) and place.startswith(f"{location.rstrip('/')}/"):
            within = is_plain(place[len(location.rstrip("/")) + 1 :])
            if within and _is_in(self._catalog.io.relative_to(location), place, location):
                return
        if not self._is_free(self.home(table[:-1]), table, place):
            raise _not_there(f"the files of {'.'.join(table):.300}", place)

    def _remembered(self, table: Name, what: str, found: Callable[[], bool]) -> bool:
        with self._lock:
            until, known = self._known.get((table, what), (0.0, False))
        if until < time.monotonic():
            known = found()
            now = time.monotonic()
            with self._lock:
                self._known = {key: held for key, held in self._known.items() if held[0] > now}
                self._known[table, what] = (now + _HELD, known)
        return known

    def check(self, table: Name, location: str) -> None:
        """Raise ``Refused`` for a location that a table cannot take."""
        table = self._catalog.kept_name(table)
        home = self.home(table[:-1])
        by_name = _by_name(home, table)
        place = location.rstrip("/")
        if place != by_name:
            free = self._is_free(home, table, place)
        else:
            begun = self._has_metadata(place)
            free = not self._shares_its_name(table) and (not begun or self._is_free(home, table, place))
        if not free:
            raise _not_there(f"{'.'.join(table):.300}", place)

    def _is_certain(self, table: Name, location: str) -> bool:
        """Whether the catalog has the metadata file of a table below its location."""
        try:
            return _is_in(self._catalog.io.relative_to(location), self._loaded(table)[0], location)
        except IcefieldError:
            return False

    def _is_nobodys(self, table: Name, metadata: TableMetadata, folder: str) -> bool:
        """Whether a table's files may be in a folder, and it is in no folder of another table."""
        io, home = self._catalog.io.relative_to(metadata.location), self.home(table[:-1])
        stated = stated_folders(metadata)
        near = (*(() if home is None else (home,)), *self._settings.owned_folders)
        if not _any_in(io, [folder], [*stated, *near]):
            return False
        is_near = home is not None and all(_is_in(io, each, home) for each in (folder, *stated))
        end, others = time.monotonic() + _MOST_SECONDS, set[str]()
        for folders in self.taken_from(table, metadata, near=is_near):
            others.update(folders)
            if time.monotonic() > end:
                return False
        return not _any_in(io, [folder], sorted(others))

    def taken_from(self, table: Name, metadata: TableMetadata, *, near: bool) -> Iterator[tuple[str, ...]]:
        """Iterate over the folders of other tables that cannot hold files of this table; see ``of_others``.

        A certain location stays a table's own even if another table only states the same folder.
        """
        location, table = metadata.location, self._catalog.kept_name(table)
        io = self._catalog.io.relative_to(location)
        by_name = _by_name(self.home(table[:-1]), table)
        certain = location.rstrip("/") == by_name or self._is_certain(table, location)
        for claims in self.of_others(table, near=near):
            stated = (
                each
                for each in claims.stated
                if not certain or not (_is_in(io, each, location) or _is_in(io, location, each))
            )
            yield (*claims.certain, *stated)

    def _is_free(self, home: str | None, table: Name, location: str, *, certain: bool = False) -> bool:
        """Whether a table may have a location, and no other table uses it. ``certain``: see ``Claims``."""
        roots = [*([] if home is None else [home]), *(each.rstrip("/") for each in self._settings.owned_folders)]
        place = location.rstrip("/")
        root = next((each for each in roots if place.startswith(f"{each}/")), None)
        if root is None or not is_plain(place[len(root) + 1 :]) or _HIDES.search(place):
            return False
        end = time.monotonic() + _MOST_SECONDS
        io = self._catalog.io.relative_to(place)
        if not _is_in(io, place, root):  # a link leads elsewhere
            return False
        namespaces = list(self._namespaces())
        homes = [other for name, other in namespaces if other is not None and name != table[:-1]]
        others = set[str]()
        if home is not None:  # a namespace around this one does not count: its location contains this one's
            others.update(each for each in homes if _is_in(io, each, home) and not _is_in(io, home, each))
        for claims in self.of_others(table, near=home is not None and root == home, namespaces=namespaces):
            others.update(claims.certain if certain else (*claims.certain, *claims.stated))
            if time.monotonic() > end:
                return False
        return not _any_in(io, [place], sorted(others)) and not _any_in(io, sorted({*homes, *others}), [place])

    def _has_metadata(self, folder: str) -> bool:
        """Whether a table may exist in a folder: only metadata files count. True if the folder cannot be listed."""
        try:
            return any(_METADATA in each.location.rpartition("/")[2] for each in self._catalog.io.list_files(folder))
        except IcefieldError:
            return True

    def _shares_its_name(self, table: Name) -> bool:
        """Whether a namespace shares a table's name, or a table its namespace's name: they share a default location."""
        catalog = self._catalog
        if CatalogAbility.NESTED_NAMESPACES not in catalog.backend.abilities:
            return False
        above = (table[:depth] for depth in range(2, len(table)))
        return catalog.namespace_exists(table) or any(catalog.table_exists(each) for each in above)

    # -- the others -------------------------------------------------------------------------------------------------

    def home(self, namespace: Name) -> str | None:
        """Return the location of a namespace's tables; None if it has none. Raises ``NoSuchNamespace``."""
        try:
            return self._catalog.backend.table_location((*namespace, "x")).rpartition("/")[0]
        except InvalidArgument:  # neither the namespace nor the catalog has a place
            return None

    def of_others(
        self, table: Name, *, near: bool, namespaces: Iterable[tuple[Name, str | None]] | None = None
    ) -> Iterator[Claims]:
        """Iterate over the folders of all other tables and views, or of the ones near a table.

        Tables are near if the location of their namespace contains the location of this table's namespace, or is inside
        it. Empty claims in between let the caller check the time limit.
        """
        table = self._catalog.kept_name(table)
        home = self.home(table[:-1])
        for namespace, other in self._namespaces() if namespaces is None else namespaces:
            yield Claims()
            if near and not self._is_near(home, other):
                continue
            for each in self._tables(namespace):
                if each != table:
                    yield self._claims(each, other)

    def _namespaces(self) -> Iterator[tuple[Name, str | None]]:
        """Iterate over all namespaces, with the locations of their tables."""
        for namespace in self._catalog.walk_namespaces():
            with suppress(NoSuchNamespace):
                yield namespace, self.home(namespace)

    def _is_near(self, home: str | None, other: str | None) -> bool:
        if home is None or other is None:
            return True
        io = self._catalog.io
        return _is_in(io, other, home) or _is_in(io, home, other)

    def _tables(self, namespace: Name) -> Iterator[Name]:
        listings: list[Callable[[Name], list[Name]]] = [self._catalog.list_tables]
        if isinstance(self._catalog.backend, ViewCatalog):
            listings.append(self._catalog.list_views)
        for listing in listings:
            with suppress(NoSuchNamespace):
                yield from listing(namespace)

    def _claims(self, table: Name, home: str | None) -> Claims:
        """Return the folders of a table's files; for views and unreadable tables, their default locations."""
        by_name = _by_name(home, table)
        ought = () if by_name is None else (by_name,)
        try:
            pointer, metadata = self._loaded(table)
        except NoSuchTable:
            return Claims((*ought, *self._of_view(table)))
        except IcefieldError:
            found = self._catalog.backend.strategy(table).load()
            location = "" if found is None else getattr(found, "location", "")
            return Claims(
                (*ought, *([location.rpartition("/")[0].rpartition("/")[0]] if location.count("/") > 4 else []))
            )
        location = metadata.location.rstrip("/")
        certain: tuple[str, ...]
        if location == by_name or _is_in(self._catalog.io.relative_to(location), pointer, location):
            certain, stated = (location,), stated_folders(metadata)[1:]
        else:
            certain, stated = (), stated_folders(metadata)
        return Claims(certain, tuple(each for each in stated if self._may_count(each, certain, home)))

    def _of_view(self, name: Name) -> tuple[str, ...]:
        """Return the location of a view; empty if no view has the name."""
        if not isinstance(self._catalog.backend, ViewCatalog):
            return ()
        with suppress(IcefieldError):
            return (self._catalog.load_view(name).metadata.location,)
        return ()

    def _may_count(self, folder: str, certain: tuple[str, ...], home: str | None) -> bool:
        """Whether a stated folder could belong to a table: it must not contain its namespace's location."""
        if any(folder.startswith(f"{each}/") and is_plain(folder[len(each) + 1 :]) for each in certain):
            return False  # a certain folder covers it
        io = self._catalog.io.relative_to(folder)
        around = [*([] if home is None else [home]), *self._settings.owned_folders]
        return not any(_is_in(io, each, folder) for each in around)


def _not_there(what: str, place: str) -> Refused:
    return Refused(
        403,
        "ForbiddenException",
        f"{what} cannot be at {place:.500}: a location is below the place of its namespace, in no folder of another "
        "table or namespace, and around none; give another location",
    )


def _by_name(home: str | None, table: Name) -> str | None:
    """Return a table's default location: its name, as the catalog keeps it, below the location of its namespace."""
    return None if home is None else f"{home}/{table[-1]}"


def stated_folders(metadata: TableMetadata) -> tuple[str, ...]:
    """Return the folders for new files that a table's metadata states."""
    try:
        return folders_of(metadata)
    except InvalidArgument:  # properties that cannot be used
        return (metadata.location,)


def named_folders(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """All folders that properties of a table or view name, whether they are in use now or not."""
    base = location.rstrip("/")
    named = (properties.get(key, "") for key in _FOLDERS)
    return tuple(path if _ABSOLUTE.match(path) else f"{base}/{path}" for path in named if path)


def disk_path(location: str) -> str | None:
    """The path of a location on a local disk; None for any other."""
    scheme, _, rest = location.partition(":")
    if scheme.lower() != "file":
        return None
    return f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest


def is_plain(path: str) -> bool:
    """Whether every program between client and store reads a path the same way."""
    parts = path.split("/")
    printable = all(character.isprintable() for character in path) and "\\" not in path
    return bool(path) and printable and all(parts) and not {".", ".."} & set(parts)


def _is_in(io: FileIO, place: str, folder: str) -> bool:
    return _any_in(io, [place], [folder])


def _any_in(io: FileIO, places: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether any of some places equals one of some folders, or is in one; the spelling does not matter."""
    return bool(OwnedFiles(io, [f"{place.rstrip('/')}/x" for place in places], folders).below)
