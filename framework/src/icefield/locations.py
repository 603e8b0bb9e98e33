"""Where files go: the folders of a table, and the names of its metadata files.

Paths are for people and object stores; nothing is ever read back out of them but the version in the name of a
metadata file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import uuid4

import mmh3

from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.properties import (
    FOLDER_STORAGE_PATH,
    METADATA_COMPRESSION,
    OBJECT_STORAGE_ENABLED,
    OBJECT_STORAGE_PARTITIONED_PATHS,
    OBJECT_STORAGE_PATH,
    WRITE_DATA_PATH,
    WRITE_METADATA_PATH,
    get_bool,
    get_str,
)

METADATA_FOLDER: Final = "metadata"
DATA_FOLDER: Final = "data"
VERSION_HINT: Final = "version-hint.text"

_HASH_BITS: Final = 20
_HASH_FOLDERS: Final = ((0, 4), (4, 8), (8, 12), (12, 20))

_SUFFIX = re.compile(r"(?:(?P<gzip>\.gz)?\.metadata\.json|\.metadata\.json(?P<old_gzip>\.gz))\Z")
_FILE_SYSTEM_NAME = re.compile(r"v(\d{1,18})", re.ASCII)
_METASTORE_NAME = re.compile(r"(\d{1,18})-.+", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True)
class LocationProvider:
    """The places of a table's new files, by its location and properties. Picklable.

    ``context`` is the part of the table's location that object-storage paths outside of it carry, so that people can
    tell whose files they are.
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
        data = _folder(base, _data_path(properties, object_storage))
        return cls(
            data_folder=data,
            metadata_folder=_folder(base, properties.get(WRITE_METADATA_PATH.name) or METADATA_FOLDER),
            object_storage=object_storage,
            partitioned_paths=get_bool(properties, OBJECT_STORAGE_PARTITIONED_PATHS),
            context="" if data == base or data.startswith(base + "/") else _last_two_folders(base),
        )

    def data_location(self, file_name: str, partition_path: str = "") -> str:
        """Where a new data or delete file goes; ``partition_path`` is ``name=value/name=value`` or empty.

        With ``write.object-storage.enabled`` folders of 20 bits of the name's hash come first.
        """
        with_partition = f"{partition_path}/{file_name}" if partition_path else file_name
        if not self.object_storage:
            return f"{self.data_folder}/{with_partition}"
        # Without partition values the name is hashed alone, and with them together with the path.
        name = with_partition if self.partitioned_paths else file_name
        entropy = _entropy(name)
        if self.context:
            return f"{self.data_folder}/{entropy}/{self.context}/{name}"
        return f"{self.data_folder}/{entropy}{'/' if self.partitioned_paths else '-'}{name}"

    def metadata_location(self, file_name: str) -> str:
        """Where a new metadata file, manifest list or manifest goes."""
        return f"{self.metadata_folder}/{file_name}"


class MetadataFileName(NamedTuple):
    """What the name of a metadata file tells."""

    version: int
    gzip: bool


def parse_metadata_file_name(name: str) -> MetadataFileName | None:
    """The version and compression in the name of a metadata file; None for any other name.

    Knows ``v3.metadata.json`` of file-system tables and ``00003-<uuid>.metadata.json`` of metastore tables, gzipped
    as ``.gz.metadata.json`` or, formerly, ``.metadata.json.gz``. ``name`` may be a whole location.
    """
    name = name.rpartition("/")[2]
    suffix = _SUFFIX.search(name)
    if suffix is None:
        return None
    stem = name[: suffix.start()]
    gzip = suffix["gzip"] is not None or suffix["old_gzip"] is not None
    # The temporary name of a file-system commit is a bare uuid, which may begin with digits.
    match = None if _UUID.fullmatch(stem) else _FILE_SYSTEM_NAME.fullmatch(stem) or _METASTORE_NAME.fullmatch(stem)
    return None if match is None else MetadataFileName(int(match[1]), gzip)


def new_metadata_file_name(version: int, *, compress: bool = False) -> str:
    """A new name for the metadata file of a metastore table: ``00003-<uuid>.metadata.json``."""
    return f"{_checked(version):05d}-{uuid4()}{_metadata_suffix(compress)}"


def file_system_metadata_name(version: int, *, compress: bool = False) -> str:
    """The name of a version of a file-system table: ``v3.metadata.json``."""
    return f"v{_checked(version)}{_metadata_suffix(compress)}"


def temporary_metadata_name() -> str:
    """A new name for a metadata file of a file-system table before it is published: ``<uuid>.metadata.json``."""
    return f"{uuid4()}{_metadata_suffix(False)}"


def parse_version_hint(text: bytes | str) -> int | None:
    """The version that ``version-hint.text`` tells, or None: a hint may be stale, damaged or of another kind."""
    if isinstance(text, bytes):
        text = text[:32].decode("ascii", errors="replace")
    text = text.strip()
    return int(text) if 0 < len(text) < 19 and text.isascii() and text.isdigit() else None


def writes_gzip(properties: Mapping[str, str]) -> bool:
    """Whether ``write.metadata.compression-codec`` asks for gzipped metadata files."""
    return get_str(properties, METADATA_COMPRESSION).lower() == "gzip"


def _metadata_suffix(compress: bool) -> str:
    return ".gz.metadata.json" if compress else ".metadata.json"


def _checked(version: int) -> int:
    if version < 0:
        raise InvalidArgument(f"a version of metadata cannot be {version}")
    return version


def _data_path(properties: Mapping[str, str], object_storage: bool) -> str:
    formerly = OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH
    names = (WRITE_DATA_PATH, *(formerly if object_storage else formerly[1:]))
    return next((path for prop in names if (path := properties.get(prop.name))), DATA_FOLDER)


def _folder(base: str, path: str) -> str:
    path = path.rstrip("/") or path
    return path if _ABSOLUTE.match(path) else f"{base}/{path}"


def _last_two_folders(location: str) -> str:
    """The names of a table's folder and of the one above it: ``db.db/events``."""
    path = location.partition("://")[2] or location
    return "/".join([part for part in path.split("/")[-2:] if part])


def _entropy(name: str) -> str:
    """20 bits of the name's hash as folders: ``0101/0110/1001/10110010``."""
    bits = f"{mmh3.hash(name, signed=False) & ((1 << _HASH_BITS) - 1):0{_HASH_BITS}b}"
    return "/".join(bits[start:end] for start, end in _HASH_FOLDERS)
