"""The locations of a table's files. ``icefield.metadata.file_names`` defines the names of its metadata files.

Paths are for people and object stores; no information is ever read back from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Final

import mmh3

from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.metadata.file_names import folder_below, metadata_folder
from icefield.metadata.properties import (
    ENCRYPTION_KEY_ID,
    FOLDER_STORAGE_PATH,
    OBJECT_STORAGE_ENABLED,
    OBJECT_STORAGE_PARTITIONED_PATHS,
    OBJECT_STORAGE_PATH,
    WRITE_DATA_PATH,
    get_bool,
)

DATA_FOLDER: Final = "data"
JOB_FOLDER: Final = re.compile(r"job-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The name of the folder of a job's files; see ``LocationProvider.job_folder``."""

_HASH_BITS: Final = 20
_HASH_FOLDERS: Final = ((0, 4), (4, 8), (8, 12), (12, 20))
_MAX_FOLDER: Final = 255
_MAX_FOLDERS: Final = 512
_HASH_DIGITS: Final = 32
_MORE: Final = "more-"
_HALF_AN_ESCAPE: Final = re.compile(r"%[0-9A-F]?\Z")


@dataclass(frozen=True, slots=True)
class LocationProvider:
    """The locations of a table's new files, from its location and properties. Picklable.

    ``context`` is a part of the table's location. Object-storage paths outside of this location contain it, so that
    people can tell which table a file belongs to.
    """

    data_folder: str
    metadata_folder: str
    object_storage: bool = False
    partitioned_paths: bool = True
    context: str = ""

    @classmethod
    def from_metadata(cls, metadata: TableMetadata) -> LocationProvider:
        """The provider for a table. Raises ``InvalidArgument`` for a property of the wrong form."""
        return cls.of(metadata.location, metadata.properties)

    @classmethod
    def of(cls, location: str, properties: Mapping[str, str]) -> LocationProvider:
        """The provider for a table's location and properties."""
        base = location.rstrip("/") or location
        object_storage = get_bool(properties, OBJECT_STORAGE_ENABLED)
        formerly = OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH
        names = (WRITE_DATA_PATH, *(formerly if object_storage else formerly[1:]))
        path = next((path for each in names if (path := properties.get(each.name))), DATA_FOLDER)
        data = folder_below(base, path)
        folders = (base.partition("://")[2] or base).split("/")
        return cls(
            data_folder=data,
            metadata_folder=metadata_folder(location, properties),
            object_storage=object_storage,
            partitioned_paths=ENCRYPTION_KEY_ID.name not in properties
            and (not object_storage or get_bool(properties, OBJECT_STORAGE_PARTITIONED_PATHS)),
            context="" if data == base or data.startswith(base + "/") else "/".join(filter(None, folders[-2:])),
        )

    def data_location(self, file_name: str, partition_path: str = "") -> str:
        """The location of a new data or delete file; ``partition_path`` is ``name=value/name=value`` or empty.

        With ``write.object-storage.enabled`` folders of 20 bits of the name's hash come first. Folder names that are
        too long for file systems and stores are shortened, and end with a hash of the full name or path.
        """
        with_partition = f"{_shortened(partition_path)}/{file_name}" if partition_path else file_name
        # Paths of an encrypted table have no partition values.
        name = with_partition if self.partitioned_paths else file_name
        if not self.object_storage:
            return f"{self.data_folder}/{name}"
        # The hash is of the file name alone, or of the partition path and the name if paths have partition values.
        entropy = _entropy(name)
        if self.context:
            return f"{self.data_folder}/{entropy}/{self.context}/{name}"
        return f"{self.data_folder}/{entropy}{'/' if self.partitioned_paths else '-'}{name}"

    def job_folder(self, operation_id: str) -> str:
        """The folder for the files of one operation (a UUID) by an engine's own writer, temporary files included.

        Names in it that begin with ``_`` are private to the writer, and no file of them is published.
        """
        return f"{self.data_folder}/job-{operation_id}"

    def metadata_location(self, file_name: str) -> str:
        """The location of a new metadata file, manifest list or manifest."""
        return f"{self.metadata_folder}/{file_name}"


def _shortened(path: str) -> str:
    """A partition path in which no folder has more than 255 bytes, and all have no more than 512 together.

    The first is the limit of most file systems and of HDFS. Keys in object stores have at most 1,024 bytes, and the
    table's own location and the file's name need some of them. Values are escaped, so that a character is a byte.
    """
    folders = [_cut(folder, _MAX_FOLDER) for folder in path.split("/")]
    if sum(map(len, folders)) + len(folders) <= _MAX_FOLDERS:
        return "/".join(folders)
    kept, room = [], _MAX_FOLDERS - len(_MORE) - _HASH_DIGITS
    for folder in folders:
        room -= len(folder) + 1
        if room < 0:
            break
        kept.append(folder)
    return "/".join([*kept, f"{_MORE}{_hash(path)}"])


def _cut(folder: str, limit: int) -> str:
    if len(folder) <= limit:
        return folder
    head = folder[: limit - 1 - _HASH_DIGITS]
    return f"{_HALF_AN_ESCAPE.sub('', head)}-{_hash(folder)}"


def _hash(string: str) -> str:
    return f"{mmh3.hash128(string, signed=False):0{_HASH_DIGITS}x}"


def _entropy(name: str) -> str:
    """20 bits of the name's hash as folders: ``0101/0110/1001/10110010``."""
    bits = f"{mmh3.hash(name, signed=False) & ((1 << _HASH_BITS) - 1):0{_HASH_BITS}b}"
    return "/".join(bits[start:end] for start, end in _HASH_FOLDERS)


def given_location(given: object) -> str:
    """A location that a user gives, as a string or a path. Raises ``InvalidArgument`` for anything else."""
    if not isinstance(given, str | PathLike):
        raise InvalidArgument(f"a location is a URI or a path, not {given!r:.200}")
    return str(given)
