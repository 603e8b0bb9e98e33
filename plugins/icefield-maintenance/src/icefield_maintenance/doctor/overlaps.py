"""Tables of a catalog with overlapping folders: maintenance of one table may delete files of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from icefield import Catalog
from icefield.abc import TableName
from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield.storage import HashedLocations, folders_of
from icefield.toolkit import without_userinfo

from icefield_maintenance.doctor.findings import Finding, Result

CHECK = "locations"
_TWICE = "the same table is registered under two names"
_ADVICE = {
    _TWICE: "drop one of the names without purging it",
    "at one location": "move the rows of one to a table of its own, then drop it; remove no orphan files until then",
}
_APART = "give one of them folders of its own for new files, and remove orphan files with care until then"


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder of a table: its location in a normal form, its role, and the location as the table states it."""

    place: str
    role: str
    table: str
    stated: str
    uuid: str
    metadata: str


def examine_locations(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each two tables of a catalog that overlap, or a single finding that all is well.

    Two tables overlap if they are one table under two names, if they have the same location, if they share a data or
    metadata folder, or if one is inside a data or metadata folder of the other. A table below another table's
    location, but outside of its folders, does not overlap: maintenance cleans each of them separately.
    """
    folders: list[_Folder] = []
    tables, unread = 0, 0
    places = HashedLocations(catalog.io, "", follows_links=True)
    for name in catalog.walk_tables():
        try:
            folders += _folders(catalog, name, places)
        except (NoSuchTable, NoSuchNamespace):
            continue  # dropped meanwhile
        except IcefieldError:
            unread += 1
            continue
        tables += 1
    found = [*_overlaps(folders)]
    for kind, one, other in found:
        what = f"{one.table} and {other.table}: {kind}, {without_userinfo(other.stated)}"
        yield Finding(CHECK, Result.WARNING, what, _ADVICE.get(kind, _APART), location=other.stated)
    said = f"; {unread} tables could not be read" if unread else ""
    if not found:
        yield Finding(CHECK, Result.OK, f"each of {tables} tables has folders of its own{said}")


def _folders(catalog: Catalog, name: TableName, places: HashedLocations) -> Iterator[_Folder]:
    table = catalog.load_table(name)
    metadata, uuid = table.metadata, table.metadata.table_uuid or ""
    try:
        stated = folders_of(metadata)
    except InvalidArgument:  # properties that cannot be used
        stated = (metadata.location,)
    metadata_folder = places.place(table.metadata_location).rpartition("/")[0]
    for role, each in zip(("location", "data", "metadata"), stated, strict=False):
        place = places.place(f"{each.rstrip('/')}/-")[:-1]
        yield _Folder(place, role, ".".join(name), each, uuid, metadata_folder)


def _overlaps(folders: list[_Folder]) -> Iterator[tuple[str, _Folder, _Folder]]:
    """Each pair of overlapping tables, once, with the most serious kind of overlap.

    Folders are sorted by location, so that the folders inside a folder follow it: disjoint folders are not compared.
    """
    said: set[frozenset[str]] = set()
    ordered = sorted(folders, key=lambda each: (each.place, each.table, each.role))
    ranked: list[tuple[int, str, _Folder, _Folder]] = []
    around: list[list[_Folder]] = []
    for place, group in groupby(ordered, key=lambda each: each.place):
        same = [*group]
        while around and not place.startswith(around[-1][0].place):
            around.pop()
        for at, other in enumerate(same):
            outer = [each for level in around for each in level if each.role != "location"]
            for one in [*same[:at], *outer]:
                if one.table != other.table and (kind := _kind(one, other)) is not None:
                    ranked.append((_RANKS.index(kind), kind, one, other))
        around.append(same)
    for _, kind, one, other in sorted(ranked, key=lambda each: (each[0], each[2].table, each[3].table)):
        pair = frozenset((one.table, other.table))
        if pair not in said:
            said.add(pair)
            yield kind, one, other


_RANKS = (
    _TWICE,
    "at one location",
    "one is inside the folder of data or metadata of the other",
    "one folder of data or metadata for both",
)


def _kind(one: _Folder, other: _Folder) -> str | None:
    """The kind of overlap between two folders; the second equals the first, or is inside of it."""
    if one.uuid and one.uuid == other.uuid and one.metadata == other.metadata:
        return _TWICE
    if one.place == other.place and one.role == other.role == "location":
        return _RANKS[1]
    if "location" in (one.role, other.role):
        return _RANKS[2]
    return _RANKS[3]
