"""The policy for locations in a client's metadata: the table's location, its folders, and the files that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import Final

from icefield import FileIO
from icefield.metadata import Snapshot, TableMetadata, ViewMetadata

from icefield_rest_server.answers import Refused
from icefield_rest_server.places import TablePlaces, disk_path, named_folders

Name = tuple[str, ...]
_NONE: Final = frozenset[int]()


class LocationPolicy:
    """Checks the metadata that a request would create, for all endpoints.

    Only new parts of the metadata are checked: locations that the operator's programs set without the server may stay.
    """

    def __init__(self, places: TablePlaces) -> None:
        self._places = places

    def check(
        self,
        name: Name,
        before: TableMetadata | ViewMetadata | None,
        after: TableMetadata | ViewMetadata,
        added: Collection[int] = _NONE,
    ) -> None:
        """Raise ``Refused`` for a location, a folder or a file that the table or view may not state.

        ``before`` is None for a new table or view. ``added`` are the snapshots that the change states, known or not.
        """
        if before is None or after.location != before.location:
            self._places.check(name, after.location)
        known = set() if before is None else set(_folders(before))
        for folder in _folders(after):
            if folder not in known or (before is not None and after.location != before.location):
                self._places.check_folder(name, after.location, folder)
        if isinstance(after, TableMetadata):
            assert before is None or isinstance(before, TableMetadata)
            may = self.readable(name, after)
            for location in _files(before, after, added):
                if not may(location):
                    raise Refused(
                        403,
                        "ForbiddenException",
                        f"{'.'.join(name):.300} cannot name {location:.500}: manifests, manifest lists and statistics "
                        "are the table's own files",
                    )

    def readable(self, name: Name, metadata: TableMetadata) -> Callable[[str], bool]:
        """Return a test of metadata files, by location: True where readers of the table may read the file."""
        folders: dict[str, bool] = {}

        def may(location: str) -> bool:
            folder = _opened(location).rpartition("/")[0]
            if folder not in folders:
                folders[folder] = bool(folder) and self._places.may_read(name, metadata, folder)
            return folders[folder]

        return may

    def confined(self, io: FileIO, name: Name, metadata: TableMetadata) -> FileIO:
        """The file IO of a table, which reads no other table's metadata for a client."""
        return io.opening_only(self.readable(name, metadata))


def _folders(metadata: TableMetadata | ViewMetadata) -> tuple[str, ...]:
    """Return all folders for files in the metadata, including folders of properties that are not in use."""
    return named_folders(metadata.location, metadata.properties)


def _files(before: TableMetadata | None, after: TableMetadata, added: Collection[int]) -> Iterator[str]:
    """Iterate over the newly named metadata files: manifest lists, manifests and statistics."""
    known = before.snapshots.positions if before is not None else {}
    for snapshot_id in after.snapshots.positions:
        if snapshot_id not in known or snapshot_id in added:
            found = after.snapshot_by_id(snapshot_id)
            if found is not None:
                yield from _lists(found)
    named = set() if before is None else set(_statistics(before))
    yield from (each for each in _statistics(after) if each not in named)


def _lists(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.manifest_list is not None:
        yield snapshot.manifest_list
    yield from snapshot.manifests


def _statistics(metadata: TableMetadata) -> Iterator[str]:
    yield from (entry.statistics_path for entry in metadata.statistics_files)


def _opened(location: str) -> str:
    """Resolve symbolic links in a location on a local disk."""
    try:
        if (path := disk_path(location)) is not None:
            return f"file://{os.path.realpath(path)}"
    except (OSError, ValueError):
        return ""
    return location
