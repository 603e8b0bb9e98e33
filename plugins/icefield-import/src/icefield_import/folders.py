"""The files of a folder to import, and the values in the names of its subfolders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import pyarrow as pa
from icefield import FileIO
from icefield.abc import FileInfo
from icefield.errors import FileMissing, InvalidArgument
from icefield.storage import HashedLocations, given_location
from icefield.types import DateType, IcebergType, IntegerType, LongType, StringType

from icefield_import.checks import format_of
from icefield_import.hive_folders import folder_values

TEXT_FORMATS: Final = {"csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "json", "ndjson": "json"}
"""The formats of text, by the suffixes of files."""
COMPRESSIONS: Final = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}
"""The codecs of compressed text, by the suffixes of files."""

_INTEGER: Final = re.compile(r"-?\d{1,19}")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class ImportedFile:
    """A file to import, with its values of partition columns: strings from folders, or values of a log."""

    location: str
    size: int
    values: Mapping[str, Any]


def has_delta_log(io: FileIO, folder: str) -> bool:
    """Whether a folder is a table of Delta Lake."""
    log = f"{given_location(folder).rstrip('/')}/_delta_log"
    return next(iter(io.list_files(log)), None) is not None


def files_in(io: FileIO, folder: str) -> list[ImportedFile]:
    """The data files below a folder. Files and folders that begin with ``.`` or ``_`` are no data.

    A link to another file of the folder is left out, so that rows are imported once. Raises ``FileMissing`` for a
    folder without files, ``InvalidArgument`` where subfolders name different columns, or two values for one file.
    """
    root = given_location(folder).rstrip("/")
    found = sorted(filter(None, (_file(root, info) for info in io.list_files(root))), key=lambda each: each.location)
    if not found:
        if io.exists(root):
            raise InvalidArgument(f"{root} is a file: give the folder of the files, or use table.add_files")
        raise FileMissing(f"no data file is in {root}", location=root)
    first, columns = found[0], tuple(found[0].values)
    for each in found:
        if tuple(each.values) != columns:
            raise InvalidArgument(
                f"the folders of {first.location} name the columns {_listed(columns)}, and those of {each.location} "
                f"{_listed(each.values)}: import each part of the folder as a table of its own",
                location=each.location,
            )
    return _without_links(io, root, found)


def real_files(io: FileIO, root: str, locations: Sequence[str]) -> list[str]:
    """A string for each location, which is equal for a link and the file that it leads to."""
    # As folders, since the kernel follows links to folders alone.
    names = pa.array([f"{each}/" for each in locations], pa.string())
    found: list[str] = HashedLocations(io, root, follows_links=True).column(names).to_pylist()
    return found


def _without_links(io: FileIO, root: str, files: Sequence[ImportedFile]) -> list[ImportedFile]:
    chosen: dict[str, ImportedFile] = {}
    for each, file in zip(files, real_files(io, root, [each.location for each in files]), strict=True):
        other = chosen.setdefault(file, each)
        if other.values != each.values:
            raise InvalidArgument(
                f"{each.location} and {other.location} are one file, and their folders name different values",
                location=each.location,
            )
        if file.endswith(f"/{each.location.rpartition('/')[2]}/"):
            chosen[file] = each
    return sorted(chosen.values(), key=lambda each: each.location)


def _file(root: str, info: FileInfo) -> ImportedFile | None:
    path = info.location.removeprefix(f"{root}/").split("/")
    return (
        None if is_hidden(path) or not info.size else ImportedFile(info.location, info.size, folder_values(path[:-1]))
    )


def is_hidden(path: Sequence[str]) -> bool:
    """Whether a file is no data: its name, or the name of a folder on its path, begins with ``.`` or ``_``."""
    *folders, name = path
    return name.startswith(("_", ".")) or any(part.startswith(("_", ".")) and "=" not in part for part in folders)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def common_format(io: FileIO, files: Iterable[ImportedFile], stated: str | None) -> str:
    """The format of all files. Raises ``InvalidArgument`` for an unknown format, or for several."""
    if stated is not None:
        name = stated.lower()
        return TEXT_FORMATS[name] if name in TEXT_FORMATS else io.file_format(name).name
    found: dict[str, str] = {}
    for each in files:
        found.setdefault(_text_format(each.location) or format_of(io, each.location, None).name, each.location)
        if len(found) > 1:
            (one, first), (other, second) = found.items()
            raise InvalidArgument(
                f"{first} is {one}, and {second} is {other}: import files of each format as a table of its own, or "
                "state the format of all files by file_format",
                location=second,
            )
    return next(iter(found))


def _text_format(location: str) -> str | None:
    parts = location.rpartition("/")[2].lower().split(".")[1:]
    if parts and parts[-1] in COMPRESSIONS:
        parts.pop()
    return TEXT_FORMATS.get(parts[-1]) if parts else None


def partition_type(strings: Iterable[str | None]) -> IcebergType:
    """The type of the values that folders name: int, long, date, or else string."""
    known = [each for each in strings if each is not None]
    if known and all(map(_INTEGER.fullmatch, known)):
        numbers = [int(each) for each in known]
        for kind, bits in ((IntegerType(), 31), (LongType(), 63)):
            if all(-(1 << bits) <= number < 1 << bits for number in numbers):
                return kind
    if known and all(map(_is_day, known)):
        return DateType()
    return StringType()


def _is_day(string: str) -> bool:
    try:
        return bool(_DAY.fullmatch(string)) and bool(date.fromisoformat(string))
    except ValueError:
        return False
