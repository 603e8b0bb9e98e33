"""The tables that a folder belongs to, by the metadata files in it.

A table's metadata files are, unless ``write.metadata.path`` says otherwise, in the folder ``metadata`` of its location.
Each holds the table's uuid, so that one short listing shows whether a location is, or was, another table's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, PutMode
from icefield.base.structs import decodable
from icefield.errors import FileMissing, InvalidMetadata
from icefield.metadata import TableMetadata, decode_metadata
from icefield.metadata.file_names import METADATA_FOLDER, folder_below, is_metadata_file, metadata_folder
from icefield.metadata.properties import FOLDER_STORAGE_PATH, OBJECT_STORAGE_PATH, WRITE_DATA_PATH
from icefield.toolkit.publishing import read_whole, whole_of

_START: Final = 256
_UUID_AT_THE_START: Final = re.compile(
    rb'\s*\{\s*"format-version"\s*:\s*[0-9]+\s*,\s*"table-uuid"\s*:\s*"([0-9A-Fa-f-]{36})"\s*,'
)
_SLASHES: Final = re.compile("//+")
FOLDER_NOTE: Final = ".icefield-elsewhere.json"
_DATA_PATHS: Final = (WRITE_DATA_PATH.name, OBJECT_STORAGE_PATH.name, FOLDER_STORAGE_PATH.name)
TABLE_FOLDERS: Final = ("data", METADATA_FOLDER)
_MOST_READ: Final = 64
"""How many metadata files of one folder are read for their uuid, the latest first."""


@decodable
class _Identity(msgspec.Struct):
    table_uuid: str | None = msgspec.field(name="table-uuid", default=None)


def metadata_files(system: FileSystem, location: str) -> list[FileInfo]:
    """The metadata files of tables and views at a location, the latest first; none if the store cannot list."""
    return _metadata_files_in(system, f"{location.rstrip('/')}/{METADATA_FOLDER}")


def has_metadata_of(system: FileSystem, folder: str, uuid: str | None) -> bool:
    """Whether a metadata file of a table is in a folder. If there are very many, only the latest are read."""
    some = _metadata_files_in(system, folder)[:_MOST_READ]
    return any(not is_of_another(system, each.location, uuid) for each in some)


def _metadata_files_in(system: FileSystem, folder: str) -> list[FileInfo]:
    if FileSystemAbility.LIST not in system.abilities:
        return []
    listed = system.list_files(folder, shallow=True)
    found = [each for each in listed if is_metadata_file(each.location)]
    return sorted(found, key=lambda each: (each.modified_ms or 0, each.location), reverse=True)


def is_used(system: FileSystem, location: str) -> bool:
    """Whether there is any file below a location. False where the store cannot list."""
    if FileSystemAbility.LIST not in system.abilities:
        return False
    return any(not each.location.endswith("/") for each in system.list_files(location.rstrip("/")))


def table_uuid_in(system: FileSystem, location: str) -> str | None:
    """The table uuid in a metadata file. Raises ``FileMissing`` and ``InvalidMetadata``.

    Writers put it at the start, so that the first bytes are usually enough, even of a file of megabytes.
    """
    source = system.open_input(location)
    try:
        start = _UUID_AT_THE_START.match(source.read(_START))
        if start is not None:
            return start[1].decode()
        data = whole_of(source, location)
    finally:
        source.close()
    if data[:2] == b"\x1f\x8b":
        return decode_metadata(data, location).table_uuid
    try:
        return msgspec.json.decode(data, type=_Identity).table_uuid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMetadata(f"{location} is damaged: {error}", location=location) from error


def is_of(system: FileSystem, file: str, uuid: str | None) -> bool:
    """Whether a file is a metadata file of the table with a uuid; False for a damaged one and for any other file."""
    try:
        return table_uuid_in(system, file) == uuid
    except (FileMissing, InvalidMetadata):
        return False


def is_of_another(system: FileSystem, metadata_file: str, uuid: str | None) -> bool:
    """Whether a metadata file belongs to a table with another uuid, or to a view; False for a damaged file."""
    try:
        return table_uuid_in(system, metadata_file) != uuid
    except (FileMissing, InvalidMetadata):
        return False


def metadata_of_another(
    system: FileSystem, location: str, uuid: str | None = None, logged: Collection[str] = ()
) -> str | None:
    """A metadata file at a location that belongs to a table with another uuid; None if there is none.

    Without a uuid any metadata file counts. If there are very many, only the latest are read. Of those that the table's
    log names, one is read: in the folder of another table, it shows that the log is false.
    """
    found = [each.location for each in metadata_files(system, location)]
    if uuid is None:
        return found[0] if found else None
    some = [each for each in found if each not in logged][:_MOST_READ] + [each for each in found if each in logged][:1]
    return next((each for each in some if is_of_another(system, each, uuid)), None)


def folders_around(location: str) -> Iterator[str]:
    """The parents of every folder ``data`` or ``metadata`` in the path of a location, the nearest first."""
    scheme, separator, path = location.rstrip("/").rpartition("://")
    parts = path.split("/")
    for depth in range(len(parts) - 1, 0, -1):
        if parts[depth] in TABLE_FOLDERS:
            yield f"{scheme}{separator}{'/'.join(parts[:depth])}"


def folders_to_note(metadata: TableMetadata) -> list[str]:
    """The folders of a table that hold no metadata file to show the owner of their files: see ``note_folder``."""
    location, properties = metadata.location.rstrip("/"), metadata.properties
    home = f"{location}/{METADATA_FOLDER}"
    data = (folder_below(location, properties[each]) for each in _DATA_PATHS if properties.get(each))
    found = [each for each in data if not each.startswith(f"{location}/")]
    return found if metadata_folder(location, properties) == home else [home, *found]


def folders_noted(system: FileSystem, folder: str) -> list[tuple[str, str | None]]:
    """The metadata folders of tables that have files in a folder, each with the table's uuid: see ``note_folder``."""
    try:
        noted = msgspec.json.decode(read_whole(system, f"{folder}/{FOLDER_NOTE}"), type=list[tuple[str, str | None]])
        return noted[:_MOST_READ]
    except (FileMissing, InvalidMetadata, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def note_folder(system: FileSystem, folder: str, other: str, uuid: str | None) -> None:
    """Leave a note in a folder with present or future files of a table: its metadata files are in ``other``.

    The table moved, is registered at a location of its own, or its properties name another folder. Without the note
    nothing in the folder would show that a table needs the files. The note of a removed table does no harm: readers
    look for the table in the noted folder.
    """
    if plain_folder(f"{folder}/") == plain_folder(f"{other}/"):
        return
    noted = folders_noted(system, folder)
    if (other, uuid) not in noted:
        _put_note(system, folder, [*noted, (other, uuid)])


def is_registered_twice(system: FileSystem, folder: str, uuid: str | None) -> bool:
    """Whether a note in a metadata folder says that a table has two names: see ``note_names``."""
    here = plain_folder(f"{folder}/")
    return any(each == uuid and plain_folder(f"{place}/") == here for place, each in folders_noted(system, folder))


def note_names(system: FileSystem, folder: str, uuid: str | None, *, several: bool) -> None:
    """Note in a metadata folder whether the table with files there has several names: the note names the folder itself.

    A commit reads the note before it deletes old metadata. So do clients of a service that does not know the other
    names.
    """
    noted = [each for each in folders_noted(system, folder) if each != (folder, uuid)]
    _put_note(system, folder, [*noted, (folder, uuid)] if several else noted)


def _put_note(system: FileSystem, folder: str, noted: list[tuple[str, str | None]]) -> None:
    system.put(f"{folder}/{FOLDER_NOTE}", msgspec.json.encode(noted[-_MOST_READ:]), PutMode.OVERWRITE)


def folder_end(folder: str) -> str:
    """The last two names of a folder, with a slash behind them; they do not depend on the name of its store."""
    return "/".join(folder.rstrip("/").rpartition("://")[2].split("/")[-2:]) + "/"


def plain_folder(location: str) -> str:
    """The folder of a file in one form: extra slashes in its location make no difference."""
    scheme, _, path = location.rpartition("://") if "://" in location else ("file", "", location.removeprefix("file:"))
    return f"{scheme}://{_SLASHES.sub('/', path).rpartition('/')[0]}/"
