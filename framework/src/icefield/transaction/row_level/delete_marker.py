"""Marking rows as deleted: position deletes in version 2, deletion vectors in version 3.

Spec: "Position Delete Files" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile, EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.scan.delete_targets import data_file_of
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import Mask
from icefield.transaction.row_level.changed_files import FileResult, FileResults
from icefield.writing.deletes import DeleteContext, DeletedRows, write_deletion_vectors, write_position_deletes


@dataclass(frozen=True, slots=True)
class RowMarks:
    """The delete files that mark rows, and masks of the delete files that they replace, by position of a manifest."""

    files: Sequence[DataFile]
    superseded: dict[int, Mask]


class DeleteMarker:
    """Writes the delete files of an operation: together for an attempt, and once for the same rows."""

    def __init__(self, files: FileResults) -> None:
        self._files = files
        self._made: dict[tuple[Any, ...], list[DataFile]] = {}

    def mark(self, head: Head, context: ActionContext, changed: Iterable[FileResult]) -> RowMarks:
        """Mark rows of files that stay where they are. Files written for other attempts are retired.

        A deletion vector holds all deleted positions of its data file. It replaces the earlier vector, and the position
        delete files of that data file alone.
        """
        marked = [one for one in changed if one.positions is not None]
        # Properties only decide the form of delete files, so the files of another attempt will do.
        key = (head.metadata.format_version, *(one.key for one in marked))
        if marked and key not in self._made:
            self._made[key] = self._write(head, context, marked)
        for made, files in self._made.items():
            note = context.written.add if made == key else context.written.retire
            note(*(file.file_path for file in files))
        return RowMarks(self._made.get(key, []), _superseded(head, marked))

    def _write(self, head: Head, context: ActionContext, marked: Sequence[FileResult]) -> list[DataFile]:
        writing = DeleteContext.from_metadata(head.metadata, context.io, operation_id=self._files.uuid)
        write = write_position_deletes if head.metadata.format_version < 3 else write_deletion_vectors
        rows = [DeletedRows(one.task.file, one.positions) for one in marked if one.positions is not None]
        return write(writing, rows, task_id=self._files.next_number(), note=context.written.add)


def _superseded(head: Head, marked: Sequence[FileResult]) -> dict[int, Mask]:
    """Masks of the delete files of single data files that new deletion vectors replace, by position of a manifest."""
    if head.metadata.format_version < 3:
        return {}
    paths = [
        file.file_path
        for one in marked
        for file in one.task.delete_files
        if data_file_of(file) == one.task.file.file_path
    ]
    targets = [one.task.file.file_path for one in marked]
    found: dict[int, Mask] = {}
    manifests = head.live(ManifestContent.DELETES) if paths else []
    for (position, _), entries in zip(manifests, head.read([one for _, one in manifests]), strict=True):
        named = pc.is_in(entries.column(f.FILE_PATH), value_set=pa.array(paths, pa.string()))
        referred = entries.column(f.REFERENCED_DATA_FILE)
        # A Puffin file holds the vectors of many data files.
        fits = pc.or_(referred.is_null(), pc.is_in(referred, value_set=pa.array(targets, pa.string())))
        mask = np.asarray(pc.and_(named, fits)) & (entries.status() != EntryStatus.DELETED)
        if mask.any():
            found[position] = mask
    return found
