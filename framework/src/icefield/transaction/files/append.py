"""Appending files: no conditions, so it can always be re-applied."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.storage import HashedLocations
from icefield.transaction.action import ActionContext
from icefield.transaction.head.branch_head import Head
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer

_log = logging.getLogger(__name__)


class AddedFiles:
    """Data files that an action adds, each once. The operation itself wrote the ``fresh`` files."""

    def __init__(self) -> None:
        self._files: dict[str, DataFile] = {}
        self._foreign: list[str] = []

    def add(self, files: Iterable[DataFile], *, fresh: bool = False) -> None:
        """Add files. Raises ``InvalidArgument`` for a path that was added already, or that is no data file."""
        for file in files:
            if file.content is not DataFileContent.DATA:
                raise InvalidArgument(f"{file.file_path} holds deletes, not data", location=file.file_path)
            if file.record_count < 0:
                raise InvalidArgument(
                    f"data file {file.file_path} has {file.record_count} rows; count them first",
                    location=file.file_path,
                )
            if file.file_path in self._files:
                raise InvalidArgument(f"data file {file.file_path} is added twice", location=file.file_path)
            self._files[file.file_path] = file
            if not fresh:
                self._foreign.append(file.file_path)

    def files(self) -> list[DataFile]:
        """The files, in the order in which they were added."""
        return list(self._files.values())

    def refuse_live(self, head: Head) -> None:
        """Raise ``InvalidArgument`` when a file is in the table already: its rows would count twice.

        Any spelling of its location counts. A file that a manifest of the head names as deleted comes back with a
        warning in the log (spec, "Manifests": a location should not be used again). ``fresh`` files are not looked for,
        since this operation drew their names.
        """
        if not self._foreign:
            return
        places = HashedLocations(head.io, head.metadata.location, follows_links=True)
        refuse_twice(places, self._foreign)
        wanted = places.column(pa.array(self._foreign, pa.string()))
        # Manifests of all partitions: a file is in the table twice even if its partition is stated differently.
        manifests = [
            each
            for each in head.manifests
            if each.content is ManifestContent.DATA
            and (each.has_added_files or each.has_existing_files or each.has_deleted_files)
        ]
        for entries in head.read(manifests):
            paths = entries.column(f.FILE_PATH)
            named = np.asarray(pc.is_in(places.column(paths), value_set=wanted))
            if not named.any():
                continue
            gone = entries.status() == EntryStatus.DELETED
            if (live := named & ~gone).any():
                path = paths.filter(pa.array(live))[0].as_py()
                raise InvalidArgument(f"data file {path} is in the table already", location=path)
            for path in paths.filter(pa.array(named)).to_pylist():
                _log.warning(
                    "data file %s was deleted from the table and is added again: cleaning up the snapshot that deleted "
                    "it may remove the file; write new data under a new name",
                    path,
                )


def refuse_twice(places: HashedLocations, locations: Sequence[str]) -> None:
    """Raise ``InvalidArgument`` where two of some locations are one file."""
    seen: dict[str, str] = {}
    for location, place in zip(locations, places.column(pa.array(locations, pa.string())).to_pylist(), strict=True):
        if place in seen:
            other = "" if seen[place] == location else f", as {seen[place]} too"
            raise InvalidArgument(f"data file {location} is added twice{other}", location=location)
        seen[place] = location


class AppendFiles(SnapshotProducer):
    """Add data files; small manifests are merged as the table's properties say."""

    def _prepare(self) -> None:
        self._added = AddedFiles()

    def append_file(self, *files: DataFile) -> Self:
        """Add files. The commit checks that the table does not have them yet."""
        self._added.add(files)
        return self

    def append_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add files under names that the caller drew at random, which need not be looked for in the table."""
        self._added.add(files, fresh=True)
        return self

    def _is_filled(self) -> bool:
        return bool(self._added.files())

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The added files, which are the same for every base."""
        self._added.refuse_live(head)
        return FileChanges(self._added.files())


class FastAppendFiles(AppendFiles):
    """Add data files in a new manifest and leave every other manifest as it is."""

    merges = False
