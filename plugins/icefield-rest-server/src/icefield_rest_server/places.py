"""Where the files of a table may be, as far as not everybody may do everything: where no other table's are."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from icefield import Catalog, FileIO
from icefield.abc import CatalogAbility
from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield.metadata import TableMetadata
from icefield.storage import OwnedFiles, folders_of

from icefield_rest_server.answers import Refused
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
    """The folders of a table: ``certain`` ones, and those that it only states.

    A location is certain where it is the place of the table's name, or where its metadata file is: the catalog says
    so. All else is what the metadata says of itself, and who may write to one table could state folders of another.
    """

    certain: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()


class TablePlaces:
    """Says which locations are a table's own, by the tables and namespaces of a catalog.

    ``loaded`` gives where the metadata file of a table is, and its metadata. A table's own place is below that of its
    namespace, or one of ``Settings.owned_folders``; it is in no folder of another table or namespace, and none is in
    it. A folder that another table only states takes nothing from a table whose location is certain.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, loaded: Callable[[Name], tuple[str, TableMetadata]]
    ) -> None:
        self._catalog, self._settings, self._loaded = catalog, settings, loaded
        self._known: dict[tuple[Name, str], tuple[float, bool]] = {}
        self._lock = threading.Lock()

    # -- locations --------------------------------------------------------------------------------------------------

    def is_own(self, table: Name, location: str) -> bool:
        """Whether a table that is there, at a location, is in its own place.

        The place of its name is, without a look at the others: no client got another table in there. What was found
        of any other place is taken to be so for a minute.
        """
        table = self._catalog.backend.kept_name(table)
        home = self.home(table[:-1])
        if location.rstrip("/") == _by_name(home, table):
            return not self._shares_its_name(table)
        return self._remembered(
            table, location, lambda: self._is_free(home, table, location, certain=self._is_certain(table, location))
        )

    def may_read(self, table: Name, metadata: TableMetadata, folder: str) -> bool:
        """Whether what is in a folder may be read for whoever may read a table: its manifests, lists and statistics.

        That is so below its own location, and anywhere in its folders, in the place of its namespace and in
        ``Settings.owned_folders`` where no other table's files are. What was found is taken to be so for a minute.
        """
        table = self._catalog.backend.kept_name(table)
        io = self._catalog.io.relative_to(metadata.location)
        if _is_in(io, folder, metadata.location) and self.is_own(table, metadata.location):
            return True
        return self._remembered(
            table, f"{metadata.location}\0{folder}", lambda: self._is_nobodys(table, metadata, folder)
        )

    def check_folder(self, table: Name, location: str, folder: str) -> None:
        """Raise ``Refused`` for a folder that a table at a location cannot have its files in."""
        table = self._catalog.backend.kept_name(table)
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
        table = self._catalog.backend.kept_name(table)
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
        """Whether a folder is where a table's files may be, and in none of another table."""
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
        """The folders of others in which no file is a table's own; see ``of_others``.

        What another only states takes nothing from a location that is certain.
        """
        location, table = metadata.location, self._catalog.backend.kept_name(table)
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
        """Whether a location may be this table's, and nothing is there of others. ``certain``: it is the table's."""
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
        if home is not None:  # a namespace around this one is no other: its place holds this one's
            others.update(each for each in homes if _is_in(io, each, home) and not _is_in(io, home, each))
        for claims in self.of_others(table, near=home is not None and root == home, namespaces=namespaces):
            others.update(claims.certain if certain else (*claims.certain, *claims.stated))
            if time.monotonic() > end:
                return False
        return not _any_in(io, [place], sorted(others)) and not _any_in(io, sorted({*homes, *others}), [place])

    def _has_metadata(self, folder: str) -> bool:
        """Whether a table may have been made in a folder. One that has only been written to has none yet."""
        try:
            return any(_METADATA in each.location.rpartition("/")[2] for each in self._catalog.io.list_files(folder))
        except IcefieldError:
            return True

    def _shares_its_name(self, table: Name) -> bool:
        """Whether a namespace has the name of a table, or a table that of its namespace: their places are one."""
        catalog = self._catalog
        if CatalogAbility.NESTED_NAMESPACES not in catalog.backend.abilities:
            return False
        above = (table[:depth] for depth in range(2, len(table)))
        return catalog.namespace_exists(table) or any(catalog.table_exists(each) for each in above)

    # -- the others -------------------------------------------------------------------------------------------------

    def home(self, namespace: Name) -> str | None:
        """The place of a namespace's tables; None where the catalog has none for it. Raises ``NoSuchNamespace``."""
        try:
            return self._catalog.backend.table_location((*namespace, "x")).rpartition("/")[0]
        except InvalidArgument:  # neither the namespace nor the catalog has a place
            return None

    def of_others(
        self, table: Name, *, near: bool, namespaces: Iterable[tuple[Name, str | None]] | None = None
    ) -> Iterator[Claims]:
        """The folders of each other table and view, one after another: of those near a table, or of all there are.

        Near are those of the namespaces whose places are in that of the table's, or around it. The steps in between
        are without folders: how long they take is for the caller to watch.
        """
        table = self._catalog.backend.kept_name(table)
        home = self.home(table[:-1])
        for namespace, other in self._namespaces() if namespaces is None else namespaces:
            yield Claims()
            if near and not self._is_near(home, other):
                continue
            for each in self._tables(namespace):
                if each != table:
                    yield self._claims(each, other)

    def _namespaces(self) -> Iterator[tuple[Name, str | None]]:
        """All there are, with their places."""
        catalog = self._catalog
        nested = CatalogAbility.NESTED_NAMESPACES in catalog.backend.abilities
        left: list[Name] = list(catalog.list_namespaces())
        while left:
            namespace = left.pop()
            with suppress(NoSuchNamespace):
                yield namespace, self.home(namespace)
                if nested:
                    left += catalog.list_namespaces(namespace)

    def _is_near(self, home: str | None, other: str | None) -> bool:
        if home is None or other is None:
            return True
        io = self._catalog.io
        return _is_in(io, other, home) or _is_in(io, home, other)

    def _tables(self, namespace: Name) -> Iterator[Name]:
        listings: list[Callable[[Name], list[Name]]] = [self._catalog.list_tables]
        if CatalogAbility.VIEWS in self._catalog.backend.abilities:
            listings.append(self._catalog.list_views)
        for listing in listings:
            with suppress(NoSuchNamespace):
                yield from listing(namespace)

    def _claims(self, table: Name, home: str | None) -> Claims:
        """Where the files of a table are; of one that cannot be read, and of a view, where they ought to be."""
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
        """The location of a view, if there is one of a name."""
        if CatalogAbility.VIEWS not in self._catalog.backend.abilities:
            return ()
        with suppress(IcefieldError):
            return (self._catalog.load_view(name).metadata.location,)
        return ()

    def _may_count(self, folder: str, certain: tuple[str, ...], home: str | None) -> bool:
        """Whether a folder that a table states is one that it could have: deeper than the place of its namespace."""
        if any(folder.startswith(f"{each}/") and is_plain(folder[len(each) + 1 :]) for each in certain):
            return False  # which the location covers
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
    """The place that a table has of its name, as the catalog keeps it, below that of its namespace."""
    return None if home is None else f"{home}/{table[-1]}"


def stated_folders(metadata: TableMetadata) -> tuple[str, ...]:
    """Where a table's files go by its own word."""
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
    """Whether nothing of a path could be taken for another, by whatever is on the way to the store."""
    parts = path.split("/")
    printable = all(character.isprintable() for character in path) and "\\" not in path
    return bool(path) and printable and all(parts) and not {".", ".."} & set(parts)


def _is_in(io: FileIO, place: str, folder: str) -> bool:
    return _any_in(io, [place], [folder])


def _any_in(io: FileIO, places: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether any of some places is one of some folders, or in one, however they are written."""
    return bool(OwnedFiles(io, [f"{place.rstrip('/')}/x" for place in places], folders).below)
