"""Marking rows as deleted: position deletes in version 2, deletion vectors in version 3.

Spec: "Position Delete Files" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.manifest import DataFile, ManifestContent, ManifestEntries
from icefield.manifest import schemas as f
from icefield.scan.deletes.targets import data_file_of
from icefield.transaction.action import ActionContext
from icefield.transaction.head.branch_head import Head, Mask
from icefield.transaction.row_level.changed_files import FileResult, FileResults
from icefield.writing.deletes import DeleteContext, DeletedRows, write_deletion_vectors, write_position_deletes


def mark_rows(
    files: FileResults, head: Head, context: ActionContext, marked: Sequence[FileResult]
) -> Sequence[DataFile]:
    """The delete files that mark rows of data files that stay: written together, and once for the same rows.

    A deletion vector holds all deleted positions of its data file. It replaces the earlier vector, and the position
    delete files of that data file alone; see ``superseded``.
    """
    if not marked:
        return ()
    version = head.metadata.format_version

    def write() -> Sequence[DataFile]:
        writing = DeleteContext.from_metadata(head.metadata, context.io, operation_id=files.uuid)
        write_deletes = write_position_deletes if version < 3 else write_deletion_vectors
        rows = [DeletedRows(one.task.file, one.positions) for one in marked if one.positions is not None]
        return write_deletes(writing, rows, task_id=files.next_number(), note=context.written.add)

    # Properties only decide the form of delete files, so the files of another attempt will do.
    return files.once(("marks", version, *(one.key for one in marked)), write)


def superseded(head: Head, marked: Sequence[FileResult]) -> dict[int, Mask]:
    """Masks of the delete files that new deletion vectors replace, by position of a manifest.

    Each of these delete files is for a single data file.
    """
    if head.metadata.format_version < 3:
        return {}
    paths = [
        file.file_path
        for one in marked
        for file in one.task.delete_files
        if data_file_of(file) == one.task.file.file_path
    ]
    targets = [one.task.file.file_path for one in marked]

    def is_replaced(entries: ManifestEntries) -> Mask:
        named = pc.is_in(entries.column(f.FILE_PATH), value_set=pa.array(paths, pa.string()))
        referred = entries.column(f.REFERENCED_DATA_FILE)
        # A Puffin file holds the vectors of many data files.
        fits = pc.or_(referred.is_null(), pc.is_in(referred, value_set=pa.array(targets, pa.string())))
        return np.asarray(pc.and_(named, fits))

    return head.find(head.live(ManifestContent.DELETES) if paths else [], is_replaced)
