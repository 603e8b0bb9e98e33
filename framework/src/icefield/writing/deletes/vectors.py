"""Deletion vectors: the deleted rows of a data file as a bitmap, many of them in one Puffin file.

Spec: "Deletion Vectors" and Puffin, "deletion-vector-v1 blob type". For format version 3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from icefield.abc import Note
from icefield.base.limits import MAX_PUFFIN_FOOTER_BYTES
from icefield.errors import FileExists, IcefieldError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.puffin import REFERENCED_DATA_FILE, Blob, BlobType, PuffinWriter, encode_vectors, writer_name
from icefield.storage import NewFile
from icefield.types.reserved import POS
from icefield.writing.deletes.context import DeleteContext, DeletedRows, by_path
from icefield.writing.deletes.position_files import SUFFIX
from icefield.writing.files import NewFiles, take_back

Ints = npt.NDArray[np.int64]

_BYTES_A_BLOB: Final = 320
"""Bytes of the footer for each blob, without the path."""

_FOOTER_BYTES: Final = MAX_PUFFIN_FOOTER_BYTES // 4
"""The size of the footer at which a file ends."""

_MAGIC_BYTES: Final = 4
"""The bytes before the first blob of a file."""

_POSITIONS_AT_ONCE: Final = 1 << 14
"""The most positions that are encoded together. Small vectors share a call, which saves its overhead; a large vector
is encoded alone, since its bytes are then copied as a whole."""


def write_deletion_vectors(
    context: DeleteContext,
    rows: Iterable[DeletedRows],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Note | None = None,
) -> list[DataFile]:
    """Write a deletion vector for each data file into new Puffin files and describe these; nothing is committed.

    A vector replaces every position delete of its data file: the positions must include the positions of the earlier
    vector and of the position delete files that apply to the data file. A Puffin file holds many vectors, and ends at
    the target size. ``task_id`` and ``attempt`` go into the files' names. ``note`` is called with the location of each
    file before it is begun.

    On an error every file of this call is aborted or deleted, and the error raised: ``UnsupportedFeature`` for a table
    of an earlier version than 3, ``InvalidArgument`` for invalid positions, ``StorageError`` and its subclasses for
    files that cannot be written.
    """
    if context.format_version < 3:
        raise UnsupportedFeature(
            f"a table of format version {context.format_version} has no deletion vectors; upgrade it to version 3"
        )
    vectors = by_path(rows)
    files = VectorFiles(context, task_id, attempt, note)
    try:
        for spec_id, partition in {(each.file.spec_id, each.file.partition) for each in vectors.values()}:
            context.folder_of(spec_id, partition)  # raises for an unknown spec
        for some in _together(vectors.values()):
            for each, data in zip(some, encode_vectors([one.positions for one in some]), strict=True):
                files.add(each.file.file_path, each.file.spec_id, each.file.partition, len(each.positions), data)
        files.close()
    except BaseException:
        files.abandon()
        raise
    return files.written


def _together(rows: Iterable[DeletedRows]) -> Iterator[list[DeletedRows]]:
    """Group data files into batches that are encoded together."""
    held: list[DeletedRows] = []
    count = 0
    for each in rows:
        if held and count + len(each.positions) > _POSITIONS_AT_ONCE:
            yield held
            held, count = [], 0
        held.append(each)
        count += len(each.positions)
    if held:
        yield held


def puffin_files(sizes: Ints, names: Ints, target_bytes: int) -> int:
    """The number of files of a target size that ``VectorFiles`` makes of vectors of the given sizes in bytes.

    ``names``: the lengths of the paths of their data files.
    """
    footers = np.cumsum(_BYTES_A_BLOB + 2 * names)
    ends = _MAGIC_BYTES + np.cumsum(sizes) + footers
    count = done = 0
    while done < len(ends):
        before, footer = (ends[done - 1] - _MAGIC_BYTES, footers[done - 1]) if done else (0, 0)
        last = min(
            int(np.searchsorted(ends, before + target_bytes)), int(np.searchsorted(footers, footer + _FOOTER_BYTES))
        )
        count, done = count + 1, last + 1
    return count


class VectorFiles:
    """Writes deletion vectors into one Puffin file after another. ``written`` holds the vectors of complete files."""

    def __init__(self, context: DeleteContext, task_id: int, attempt: int, note: Note | None = None) -> None:
        self._context = context
        self._new = NewFiles(context.io, context.locations, context.operation_id, task_id, attempt, note, SUFFIX)
        self._writer: PuffinWriter | None = None
        self._file: NewFile | None = None
        self._locations: list[str] = []
        self._held: list[tuple[DataFile, Blob]] = []
        self._footer = 0
        self.written: list[DataFile] = []

    def add(self, path: str, spec_id: int, partition: tuple[Any, ...], count: int, data: bytes) -> None:
        """Add the vector of a data file: an encoded bitmap of ``count`` positions."""
        if self._writer is None:
            _, location, self._file = self._new.begin("puffin")
            self._locations.append(location)
            self._writer = PuffinWriter(self._file.sink, {"created-by": writer_name()})
        blob = self._writer.add(
            BlobType.DELETION_VECTOR,
            data,
            fields=[POS.field_id],
            properties={REFERENCED_DATA_FILE: path, "cardinality": str(count)},
        )
        described = DataFile(
            file_path=self._locations[-1],
            file_format="puffin",
            content=DataFileContent.POSITION_DELETES,
            record_count=count,
            file_size_in_bytes=0,
            partition=partition,
            spec_id=spec_id,
            referenced_data_file=path,
        )
        self._held.append((described, blob))
        self._footer += _BYTES_A_BLOB + 2 * len(path.encode())
        if blob.offset + blob.length + self._footer >= self._context.target_file_bytes or self._footer >= _FOOTER_BYTES:
            self.close()

    def close(self) -> None:
        """Finish the current file, if there is one."""
        if self._writer is None or self._file is None:
            return
        try:
            size = self._writer.close()
        except FileExists:
            self._locations.pop()  # the existing file belongs to another writer with the same names
            raise
        size, key_metadata = self._file.stored(size)
        self._writer = self._file = None
        self.written += [
            replace(
                described,
                file_size_in_bytes=size,
                content_offset=blob.offset,
                content_size_in_bytes=blob.length,
                key_metadata=key_metadata,
            )
            for described, blob in self._held
        ]
        self._held, self._footer = [], 0

    def abandon(self) -> None:
        """Abort the open file and delete the finished files; none of them was committed."""
        with contextlib.suppress(IcefieldError, OSError, ValueError):
            if self._file is not None:
                self._file.sink.abort()
        take_back(self._context.io, self._locations)
