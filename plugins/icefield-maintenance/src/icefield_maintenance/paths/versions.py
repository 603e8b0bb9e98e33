"""Metadata files as JSON with exchanged locations. All other fields stay unchanged, known or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.metadata import TableMetadata, inflated
from icefield.storage import FileIO

from icefield_maintenance.paths.keys import CopiedKeys
from icefield_maintenance.paths.prefixes import Prefixes

_PLACES: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
"""Properties that hold a location."""

_LISTS: Final = (
    ("metadata-log", "metadata-file"),
    ("statistics", "statistics-path"),
    ("partition-statistics", "statistics-path"),
    ("snapshots", "manifest-list"),
)
TOTAL_SIZE: Final = "total-files-size"
ADDED_SIZE: Final = "added-files-size"
_DIGITS: Final = 19
"""The number of digits of the greatest 64-bit integer."""

_GZIP: Final = (".gz.metadata.json", ".metadata.json.gz")


def versions_of(metadata: TableMetadata, location: str, start: str | None) -> list[str]:
    """The metadata files of a version and of earlier versions, down to the version after ``start``; the newest first.

    Raises ``InvalidArgument`` if ``start`` is not among the earlier versions.
    """
    found = [location]
    for each in reversed(metadata.metadata_log):
        if start is not None and is_called(each.metadata_file, start):
            return found
        found.append(each.metadata_file)
    if start is None:
        return found
    raise InvalidArgument(f"there is no metadata file '{start}' in the metadata log of {name_of(location)}", name=start)


def is_called(location: str, name: str) -> bool:
    """Whether a metadata file has a name, which may be its location."""
    return name in (location, name_of(location))


def name_of(location: str) -> str:
    """The name of a file in its folder."""
    return location.rsplit("/", 1)[-1]


def moved_version(
    io: FileIO, location: str, prefixes: Prefixes, summaries: Mapping[int, Mapping[str, int]], keys: CopiedKeys
) -> bytes:
    """A metadata file with the locations of the copy. Raises ``InvalidArgument`` for a location outside of the source.

    ``summaries``: by snapshot, the bytes to add to numbers of its summary because of rewritten delete files. The delete
    files of other snapshots have unknown sizes in the copy, so that the total size of these snapshots is left out.
    """
    try:
        document = json.loads(inflated(io.read_metadata(location), location))
    except ValueError as error:
        raise InvalidMetadata(f"{location} holds no JSON: {error}", location=location) from error
    keys.put_into(document, prefixes)
    _move(document, prefixes)
    for each in document.get("snapshots") or ():
        _correct(each.get("summary") or {}, summaries.get(each.get("snapshot-id")))
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return gzip.compress(data, mtime=0) if location.endswith(_GZIP) else data


def _move(document: dict[str, Any], prefixes: Prefixes) -> None:
    document["location"] = prefixes.moved(document["location"], "the table's location")
    for key, name in _LISTS:
        for each in document.get(key) or ():
            if each.get(name) is not None:
                each[name] = prefixes.moved(each[name], f"'{name}' of '{key}':")
    for each in document.get("snapshots") or ():
        if each.get("manifests"):
            each["manifests"] = [prefixes.moved(path, "manifest") for path in each["manifests"]]
    properties = document.get("properties") or {}
    for name in _PLACES:
        if isinstance(properties.get(name), str) and prefixes.has(properties[name]):
            properties[name] = prefixes.moved(properties[name], name)


def _correct(summary: dict[str, Any], grown: Mapping[str, int] | None) -> None:
    if grown is None:
        if summary.get("total-delete-files") not in (None, "0"):
            summary.pop(TOTAL_SIZE, None)
        return
    for name, more in grown.items():
        stated = summary.get(name)
        if more and isinstance(stated, str) and stated.isdecimal() and len(stated) < _DIGITS:
            summary[name] = str(max(0, int(stated) + more))
