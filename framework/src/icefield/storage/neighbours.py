"""Finds the tables that are, or were, at a location, by the metadata files of its folders and by the catalog."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, TypeGuard
from uuid import uuid4

from icefield.abc import CommitStrategy, FileSystemAbility
from icefield.errors import (
    AccessDenied,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidMetadata,
    LocationInUse,
    LocationRefused,
    LocationWarning,
    MissingPlugin,
)
from icefield.metadata import TableMetadata, metadata_folder
from icefield.metadata.properties import OWNED_FILES_ONLY, get_bool
from icefield.metadata.property_checks import callers_level
from icefield.storage.allowed import OWNED_ONLY
from icefield.storage.file_io import FileIO
from icefield.storage.local_paths import local_path
from icefield.toolkit.table_folders import (
    TABLE_FOLDERS,
    folders_around,
    folders_noted,
    has_metadata_of,
    is_registered_twice,
    is_used,
    metadata_of_another,
    note_names,
    plain_folder,
    table_uuid_in,
)

_MOST_FOLDERS: Final = 64
_UNKNOWN: Final = (AccessDenied, LocationRefused, MissingPlugin)
"""Errors that say that nothing is known of a location."""

_OTHER: Final = "give another location, or remove what is there if no table needs it any more"


def knows_tables(strategy: CommitStrategy | None) -> TypeGuard[CommitStrategy]:
    """Whether a strategy tells which tables are in a folder; a service's client does not."""
    return strategy is not None and type(strategy).tables_in is not CommitStrategy.tables_in


def free_location(io: FileIO, strategy: CommitStrategy, default: str) -> str:
    """The default location of a new table or view; with a uuid behind it if anything is below that location.

    The files of a renamed table are still there, and files of a dropped table may be. A strategy that finds a table by
    its path needs the default location, where a new table continues the versions of a dropped table.
    """
    if strategy.folder is not None:
        return default
    try:
        used = is_used(io.storage(default), default)
    except AccessDenied:  # without permission to list nothing is known
        used = True
    return f"{default.rstrip('/')}-{uuid4().hex}" if used else default


def check_location(io: FileIO, strategy: CommitStrategy, location: str, uuid: str | None = None) -> None:
    """Refuse the location of another table, a location around it, and one in its folder of data or of metadata.

    ``uuid`` is the UUID of the table to be placed there; None for a new table. Raises ``LocationInUse`` if the catalog
    knows the other table. Otherwise gives a ``LocationWarning``: that table may have been dropped, or belong to another
    catalog. A location with no file below it costs one request.
    """
    places = [*folders_around(location)]
    may_be_used = True
    with suppress(*_UNKNOWN):
        system = io.storage(location)
        may_be_used = FileSystemAbility.LIST not in system.abilities or is_used(system, location)
    if may_be_used:
        _refuse_around(io, strategy, location)
        places.insert(0, location.rstrip("/"))
    for place in places:
        try:
            found = metadata_of_another(io.storage(place), place, uuid)
        except _UNKNOWN:
            continue
        # A table may have its metadata elsewhere, or nothing but data here.
        folders = (place, *(f"{place}/{each}" for each in TABLE_FOLDERS))
        noted = [each for folder in folders for each in tables_noted(io, strategy, folder, uuid)]
        if noted:
            raise _in_use(location, ", ".join(noted[:5]))
        if found is None:
            continue
        known = tables_in(io, strategy, found)
        if known:
            raise _in_use(location, _names(known))
        warn(
            f"{location} may be in use: {found} is the metadata of another table, or of one that was dropped; {_OTHER}"
        )
        return


def _refuse_around(io: FileIO, strategy: CommitStrategy, location: str) -> None:
    """Refuse a location below which the catalog knows the metadata file of another table."""
    place = location.rstrip("/")
    home = f"{folder_of(io, f'{place}/-')}/"
    known = [each for each in strategy.tables_in(place) if f"{folder_of(io, each[1])}/".startswith(home)]
    if known:
        raise _in_use(location, _names(known))


def _in_use(location: str, names: str) -> LocationInUse:
    return LocationInUse(f"{location} is in use by {names} of this catalog: give another location", location=location)


def check_move(
    io: FileIO, strategy: CommitStrategy, before: TableMetadata, after: TableMetadata, metadata_location: str
) -> None:
    """Refuse to move a table to another table's location, and to change the folders of a table with a second name.

    Otherwise nothing would show any longer that both names need the same files.
    """
    places = [(each.location, metadata_folder(each.location, each.properties)) for each in (before, after)]
    if places[0] == places[1]:
        return
    refuse_twins(io, strategy, before, metadata_location, "moving the table")
    if after.location.rstrip("/") != before.location.rstrip("/"):
        check_location(io, strategy, after.location, after.table_uuid)


def warn_of_twins(io: FileIO, strategy: CommitStrategy, metadata: TableMetadata, metadata_location: str) -> None:
    """Warn if a metadata file is registered under a second name, or is in a folder with another table's metadata."""
    known: list[tuple[str, str]] = []
    present = metadata_folder(metadata.location, metadata.properties)
    for folder in dict.fromkeys((metadata_location.rpartition("/")[0], present)):
        with suppress(*_UNKNOWN):
            if found := tables_in(io, strategy, f"{folder}/-", metadata.table_uuid):
                known += found
                note_names(io.storage(folder), folder, metadata.table_uuid, several=True)
    if known:
        warn(
            f"{metadata_location} is a version of the table {_names(known)}, which is now registered "
            "twice: two names change the same files. Drop one of the names, without purging it; until then neither can "
            "be purged, and expiry and removal of orphan files are refused"
        )
        return
    others = tables_in(io, strategy, metadata_location)
    if others:
        warn(f"{metadata.location} is in use by {_names(others)} of this catalog, too: two tables are in one folder")


def forget_name(io: FileIO, strategy: CommitStrategy, metadata_file: str) -> None:
    """Note that a table has one name left after one of its two names was dropped. Best effort."""
    folder = metadata_file.rpartition("/")[0]
    with suppress(IcefieldError):
        system, uuid = io.storage(folder), table_uuid_in(io.storage(folder), metadata_file)
        if is_registered_twice(system, folder, uuid) and len(tables_in(io, strategy, metadata_file, uuid)) < 2:
            note_names(system, folder, uuid, several=False)


def warn(message: str) -> None:
    """Give a ``LocationWarning`` that points to the first caller outside of the kernel."""
    warnings.warn(message, LocationWarning, stacklevel=callers_level())


def _names(found: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted({name for name, _ in found})[:5])


def tables_in(
    io: FileIO, strategy: CommitStrategy, metadata_file: str, uuid: str | None = None
) -> list[tuple[str, str]]:
    """The other tables of the catalog with files in the folder of a metadata file: name and metadata file.

    Their current metadata files are in that folder, or in a folder that a note in it names. With a ``uuid`` only tables
    of this UUID count: the same table under another name.
    """
    found: dict[str, tuple[str, str]] = {}
    left, seen = [metadata_file.rpartition("/")[0]], set[str]()
    # For a table that is found by its path, each spelling of the path is the table itself.
    itself = None if strategy.folder is None else folder_of(io, f"{strategy.folder}/-")
    while left and len(seen) < _MOST_FOLDERS:
        folder = left.pop()
        wanted = folder_of(io, f"{folder}/-")
        if wanted in seen:
            continue
        seen.add(wanted)
        for name, location in strategy.tables_in(folder):
            if folder_of(io, location) == wanted != itself:
                found[name] = name, location
        try:
            left += [each for each, _ in folders_noted(io.storage(folder), folder)]
        except AccessDenied:  # nothing is known
            continue
    return [each for each in found.values() if uuid is None or _uuid_in(io, each[1]) == uuid]


def tables_noted(io: FileIO, strategy: CommitStrategy | None, folder: str, uuid: str | None) -> list[str]:
    """The other tables with files in a folder, by the notes there: names, or metadata folders if the names are unknown.

    ``uuid`` is the UUID of the table that asks.
    """
    try:
        noted = [each for each in folders_noted(io.storage(folder), folder) if each[1] != uuid]
    except _UNKNOWN:
        return []
    found: list[str] = []
    for place, other in noted:
        if knows_tables(strategy):
            wanted = folder_of(io, f"{place}/-")
            here = [each for each in strategy.tables_in(place) if folder_of(io, each[1]) == wanted]
            found += [name for name, location in here if _uuid_in(io, location) == other]
        else:
            has_metadata = True
            with suppress(*_UNKNOWN):
                has_metadata = has_metadata_of(io.storage(place), place, other)
            found += [place] if has_metadata else []
    return sorted(set(found))


def refuse_twins(
    io: FileIO, strategy: CommitStrategy | None, metadata: TableMetadata, metadata_location: str | None, what: str
) -> None:
    """Raise ``InvalidArgument`` if the catalog has the table under a second name, which shares the files.

    A file that one name no longer needs may still be read through the other name. The present and former metadata
    folders of the table are searched.
    """
    if strategy is None or metadata_location is None:
        return
    files = [metadata_location, f"{metadata_folder(metadata.location, metadata.properties)}/-"]
    files += [entry.metadata_file for entry in metadata.metadata_log]
    files += [each.manifest_list for each in metadata.snapshots if each.manifest_list is not None]
    folders = {file.rpartition("/")[0]: file for file in files}
    others: list[tuple[str, str]] = []
    for folder, file in folders.items():
        if knows_tables(strategy):
            others += tables_in(io, strategy, file, metadata.table_uuid)
            continue
        with suppress(*_UNKNOWN):  # the service has left a note
            if is_registered_twice(io.storage(folder), folder, metadata.table_uuid):
                others.append(("another name", folder))
    if others:
        raise InvalidArgument(
            f"{what} would delete files that {_names(others)} may need, or forget that it needs them: the same table "
            "is registered under both names. Drop one of the names without purging it, and try again",
            table=strategy.table,
        )


def owned_only(io: FileIO, metadata: TableMetadata) -> bool:
    """Whether maintenance deletes only files that a table owns. A table can turn this on, only the user can off."""
    return io.properties.get(OWNED_ONLY, "true").lower() != "false" or get_bool(metadata.properties, OWNED_FILES_ONLY)


def folder_of(io: FileIO, location: str) -> str:
    """The folder of a file in canonical form: authority and path, or the resolved path on local disks."""
    try:
        opened = io.resolve(location)
        if opened.startswith("file:"):
            return os.path.realpath(os.path.dirname(local_path(opened)))
    except (IcefieldError, OSError, ValueError):
        opened = location
    return plain_folder(opened).partition("://")[2].rstrip("/")


def _uuid_in(io: FileIO, metadata_file: str) -> str | None:
    try:
        return table_uuid_in(io.storage(metadata_file), metadata_file)
    except (FileMissing, InvalidMetadata):
        return None
