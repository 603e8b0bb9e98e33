"""Names and locations of metadata files; no other module knows them.

A file-system table has ``metadata/v3.metadata.json``, found by its name; a metastore table has
``00003-<uuid>.metadata.json``, found by the pointer. Both may be gzipped; the name then shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import uuid4

from icefield.errors import InvalidArgument
from icefield.metadata.properties import METADATA_COMPRESSION, WRITE_METADATA_PATH, get_str

METADATA_FOLDER: Final = "metadata"
VERSION_HINT: Final = "version-hint.text"
MAX_VERSION_HINT: Final = 32
"""How many bytes of a version hint are worth reading."""

_PLAIN, _GZIP, _OLD_GZIP = ".metadata.json", ".gz.metadata.json", ".metadata.json.gz"
_SUFFIX = re.compile(r"(?:(?P<gzip>\.gz)?\.metadata\.json|\.metadata\.json(?P<old_gzip>\.gz))\Z")
_FILE_SYSTEM_NAME = re.compile(r"v(\d{1,18})", re.ASCII)
_METASTORE_NAME = re.compile(r"(\d{1,18})-.+", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


class MetadataFileName(NamedTuple):
    """The parsed name of a metadata file."""

    version: int
    gzip: bool
    is_file_system: bool = False
    """Whether the file is a version of a file-system table, which readers find by this name."""


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
    if match := _FILE_SYSTEM_NAME.fullmatch(stem):
        return MetadataFileName(int(match[1]), gzip, True)
    # The temporary name of a file-system commit is a bare uuid, which may begin with digits.
    match = None if _UUID.fullmatch(stem) else _METASTORE_NAME.fullmatch(stem)
    return None if match is None else MetadataFileName(int(match[1]), gzip)


def is_metadata_file(name: str) -> bool:
    """Whether a name is that of a metadata file, in any of its forms. ``name`` may be a whole location."""
    return _SUFFIX.search(name) is not None


def version_of(name: str) -> int | None:
    """The version in the name of a file-system table's metadata file, else None. ``name`` may be a whole location."""
    parsed = parse_metadata_file_name(name)
    return parsed.version if parsed is not None and parsed.is_file_system else None


def new_metadata_file_name(version: int, *, compress: bool = False) -> str:
    """A new name for the metadata file of a metastore table: ``00003-<uuid>.metadata.json``."""
    return f"{_checked(version):05d}-{uuid4()}{_GZIP if compress else _PLAIN}"


def file_system_metadata_name(version: int, *, compress: bool = False) -> str:
    """The name of a version of a file-system table: ``v3.metadata.json``."""
    return f"v{_checked(version)}{_GZIP if compress else _PLAIN}"


def compressed_metadata_names(version: int) -> tuple[str, str]:
    """The names that a version of a file-system table has where another engine has compressed it."""
    return f"v{_checked(version)}{_GZIP}", f"v{version}{_OLD_GZIP}"


def temporary_metadata_name() -> str:
    """A new name for a metadata file of a file-system table before it is published: ``<uuid>.metadata.json``."""
    return f"{uuid4()}{_PLAIN}"


def parse_version_hint(string: bytes | str) -> int | None:
    """The version that ``version-hint.text`` holds, or None: a hint may be stale, damaged or of another kind."""
    if isinstance(string, bytes):
        string = string[:MAX_VERSION_HINT].decode("ascii", errors="replace")
    string = string.strip()
    return int(string) if 0 < len(string) < 19 and string.isascii() and string.isdigit() else None


def writes_gzip(properties: Mapping[str, str]) -> bool:
    """Whether ``write.metadata.compression-codec`` asks for gzipped metadata files."""
    return get_str(properties, METADATA_COMPRESSION).lower() == "gzip"


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """Where the metadata files of a table at a location go, by its property ``write.metadata.path``."""
    return folder_below(location.rstrip("/") or location, properties.get(WRITE_METADATA_PATH.name) or METADATA_FOLDER)


def folder_below(base: str, path: str) -> str:
    """The folder of a path: an absolute path itself, a relative path below ``base``."""
    path = path.rstrip("/") or path
    return path if _ABSOLUTE.match(path) else f"{base}/{path}"


def _checked(version: int) -> int:
    if version < 0:
        raise InvalidArgument(f"a version of metadata cannot be {version}")
    return version
