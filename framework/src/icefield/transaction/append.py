"""Appending files: no conditions, so it can always be re-applied."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidArgument
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import FileSet
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer

_log = logging.getLogger(__name__)


class AddedFiles:
    """Data files that an action adds, each once. ``fresh`` ones were written by this very operation."""

    def __init__(self) -> None:
        self._files: dict[str, DataFile] = {}
        self._foreign = FileSet()

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
                # Only the path: a file is in the table twice even if it is said to be of another partition.
                self._foreign.add(file.file_path)

    def files(self) -> list[DataFile]:
        """The files, in the order in which they were added."""
        return list(self._files.values())

    def refuse_live(self, head: Head) -> None:
        """Raise ``InvalidArgument`` when a file is in the table already: its rows would count twice.

        A file that a manifest of the head names as deleted comes back with a warning in the log (spec, "Manifests": a
        location should not be used again). Files with names that this operation drew are not looked for.
        """
        for position, mask in self._foreign.find(head, (ManifestContent.DATA,)).items():
            entries = head.entries(head.manifests[position])
            path = entries.column(f.FILE_PATH).filter(pa.array(mask))[0].as_py()
            raise InvalidArgument(f"data file {path} is in the table already", location=path)
        self._warn_of_deleted(head)

    def _warn_of_deleted(self, head: Head) -> None:
        if not len(self._foreign):
            return
        named = pa.array(self._foreign.paths, pa.string())
        manifests = [each for each in head.manifests if each.content is ManifestContent.DATA and each.has_deleted_files]
        for entries in head.read(manifests):
            paths = entries.column(f.FILE_PATH)
            mask = np.asarray(pc.is_in(paths, value_set=named)) & (entries.status() == EntryStatus.DELETED)
            for path in paths.filter(pa.array(mask)).to_pylist():
                _log.warning(
                    "data file %s was deleted from the table and is added again: cleaning up the snapshot that deleted "
                    "it may remove the file; write new data under a new name",
                    path,
                )


class AppendFiles(SnapshotProducer):
    """Add data files; small manifests are merged as the table's properties say."""

    def _prepare(self) -> None:
        self._added = AddedFiles()

    def append_file(self, *files: DataFile) -> Self:
        """Add files. On commit it is made sure that the table does not have them yet."""
        self._added.add(files)
        return self

    def append_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add files under names that the caller drew at random, which need not be looked for in the table."""
        self._added.add(files, fresh=True)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files, whatever the base is."""
        self._added.refuse_live(head)
        return FileChanges(self._added.files())

    def operation(self, changes: FileChanges) -> Operation:
        """Files are added and none removed."""
        return Operation.APPEND


class FastAppendFiles(AppendFiles):
    """Add data files in a new manifest and leave every other manifest as it is."""

    merges = False
