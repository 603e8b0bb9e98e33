"""Position delete files: the deleted rows of data files, by path and position.

Spec: "Position Delete Files". Rows are sorted by the bytes of the path, then by position, so that readers find the
rows of one data file by row groups and pages. For format version 2: later versions have deletion vectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from icefield.abc import Note, WrittenFile
from icefield.errors import UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.partitioning.spec import normalised_key
from icefield.schema import Schema, schema_to_arrow
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS
from icefield.writing.deletes.context import DeleteContext, DeletedRows, by_path
from icefield.writing.fan_out import threads_for
from icefield.writing.files import FileSet, OpenFile, Partition, RollingWriter

COLUMNS: Final = Schema(DELETE_FILE_PATH, DELETE_FILE_POS)

SUFFIX: Final = "-deletes"
"""The suffix of the names of delete files, as in Iceberg's Java library."""

_ARROW: Final = schema_to_arrow(COLUMNS)
_BATCH_ROWS: Final = 1 << 17
_GREATEST: Final = int(np.iinfo(np.int64).max)
_BATCH_BYTES: Final = 64 << 20


def write_position_deletes(
    context: DeleteContext,
    rows: Iterable[DeletedRows],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Note | None = None,
) -> list[DataFile]:
    """Write rows of data files into new position delete files and describe these; nothing is committed.

    There is a file for each partition, or for each data file if the context says ``by_file``, and more where one
    reaches the target size. ``task_id`` and ``attempt`` go into the files' names. ``note`` is called with the location
    of each file before it is begun, by any thread.

    On an error every file of this call is aborted or deleted, and the error raised: ``UnsupportedFeature`` for a table
    of another version than 2, ``InvalidArgument`` for invalid positions, ``StorageError`` and its subclasses for files
    that cannot be written.
    """
    if context.format_version < 2:
        raise UnsupportedFeature(
            "a table of format version 1 has no row-level deletes; upgrade it to version 2 or 3, or set "
            "write.delete.mode to copy-on-write"
        )
    if context.format_version > 2:
        raise UnsupportedFeature(
            f"a table of format version {context.format_version} takes no new position delete files; write deletion "
            "vectors"
        )
    groups = _groups(context, by_path(rows))
    if not groups:
        return []
    files = _PositionFiles(context.writing(COLUMNS, exact=True), task_id, attempt, note, suffix=SUFFIX)
    with threads_for(files, min(context.io.workers(waiting=True), len(groups))) as threads:
        for partition, members in groups:
            job = partial(_write, files, partition, members, context.target_file_bytes)
            threads.submit(job, sum(each.positions.nbytes for each in members))
    return files.data_files()


@dataclass(eq=False, slots=True)
class _PositionFile(OpenFile):
    """An open position delete file, with the first and last of its paths and the lowest and highest position."""

    first_path: str | None = None
    last_path: str = ""
    lowest: int = _GREATEST
    highest: int = -1

    def write(self, batch: pa.RecordBatch) -> None:
        OpenFile.write(self, batch)
        paths, positions = batch.column(0), batch.column(1).to_numpy()
        if self.first_path is None:
            self.first_path = paths[0].as_py()
        self.last_path = paths[-1].as_py()
        self.lowest = min(self.lowest, int(positions.min()))
        self.highest = max(self.highest, int(positions.max()))


class _PositionFiles(FileSet):
    opens: ClassVar[type[OpenFile]] = _PositionFile

    def _describe(self, opened: OpenFile, written: WrittenFile) -> DataFile:
        assert isinstance(opened, _PositionFile)
        assert opened.first_path is not None
        path, pos = DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id
        # No value is null, so counts say nothing. The bounds are exact even where the format's statistics leave them
        # out, since readers find the data files of a delete file by them.
        return replace(
            super()._describe(opened, written),
            content=DataFileContent.POSITION_DELETES,
            value_counts={},
            null_value_counts={},
            nan_value_counts={},
            lower_bounds={path: opened.first_path.encode(), pos: opened.lowest.to_bytes(8, "little")},
            upper_bounds={path: opened.last_path.encode(), pos: opened.highest.to_bytes(8, "little")},
            referenced_data_file=opened.first_path if opened.first_path == opened.last_path else None,
        )


def _groups(context: DeleteContext, rows: dict[str, DeletedRows]) -> list[tuple[Partition, list[DeletedRows]]]:
    """Group the rows by output file (or by several files, depending on size), sorted by the bytes of the path."""
    found: dict[Hashable, tuple[Partition, list[DeletedRows]]] = {}
    for path in sorted(rows, key=str.encode):
        file = rows[path].file
        key: Hashable = path if context.by_file else (file.spec_id, normalised_key(file.partition))
        if key not in found:
            folder = context.folder_of(file.spec_id, file.partition)
            found[key] = Partition(file.partition, folder, len(found), file.spec_id), []
        found[key][1].append(rows[path])
    return list(found.values())


def _write(files: FileSet, partition: Partition, rows: list[DeletedRows], target_bytes: int) -> None:
    writer = RollingWriter(files, partition, target_bytes)
    for batch in _batches(rows):
        writer.write(batch)
    writer.close()


def _batches(rows: list[DeletedRows]) -> Iterator[pa.RecordBatch]:
    paths = pa.array([each.file.file_path for each in rows], pa.string())
    longest = max(len(each.file.file_path.encode()) for each in rows)
    at_once = max(1, min(_BATCH_ROWS, _BATCH_BYTES // longest))
    ends = np.cumsum([len(each.positions) for each in rows])
    for start in range(0, int(ends[-1]), at_once):
        yield _batch(rows, paths, ends, start, min(start + at_once, int(ends[-1])))


def _batch(
    rows: list[DeletedRows], paths: pa.Array, ends: np.ndarray[Any, Any], start: int, end: int
) -> pa.RecordBatch:
    """The rows from index ``start`` to before ``end``, counted over all data files."""
    first, last = np.searchsorted(ends, (start, end - 1), "right").tolist()
    parts = []
    for one in range(first, last + 1):
        begins = int(ends[one]) - len(rows[one].positions)
        parts.append(rows[one].positions[max(0, start - begins) : end - begins])
    counts = [len(part) for part in parts]
    names = paths.take(pa.array(np.repeat(np.arange(first, last + 1), counts)))
    return pa.RecordBatch.from_arrays([names, pa.array(np.concatenate(parts))], schema=_ARROW)
