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

from icefield.abc import Note, OutputStream
from icefield.base.limits import MAX_PUFFIN_FOOTER_BYTES
from icefield.errors import FileExists, IcefieldError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.puffin import REFERENCED_DATA_FILE, Blob, BlobType, PuffinWriter, encode_vectors, writer_name
from icefield.types.reserved import POS
from icefield.writing.deletes.context import DeleteContext, DeletedRows, by_path
from icefield.writing.deletes.position_files import SUFFIX
from icefield.writing.files import NewFiles, file_prefix, take_back

Ints = npt.NDArray[np.int64]

_BYTES_A_BLOB: Final = 320
"""Of the footer for each blob, without the path."""

_FOOTER_BYTES: Final = MAX_PUFFIN_FOOTER_BYTES // 4
"""A file ends when its footer has so many."""

_MAGIC_BYTES: Final = 4
"""What a file begins with."""

_POSITIONS_AT_ONCE: Final = 1 << 14
"""Small vectors are encoded together, which spares the time that each call takes; large ones by themselves, since one
after the other their bytes are copied as a whole."""


def write_deletion_vectors(
    context: DeleteContext,
    rows: Iterable[DeletedRows],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Note | None = None,
) -> list[DataFile]:
    """Write a deletion vector for each data file into new Puffin files and describe these; nothing is committed.

    A vector replaces every position delete of its data file: the positions must hold those of the vector and of the
    position delete files that apply to the data file so far. A Puffin file holds many vectors, and ends at the target
    size. ``task_id`` and ``attempt`` go into the files' names. ``note`` is called with the location of each file
    before it is begun.

    On an error every file of this call is aborted or deleted, and the error raised: ``UnsupportedFeature`` for a table
    of an earlier version than 3, ``InvalidArgument`` for positions that are none, ``StorageError`` and its kind for
    files that cannot be written.
    """
    if context.format_version < 3:
        raise UnsupportedFeature(
            f"a table of format version {context.format_version} has no deletion vectors; upgrade it to version 3"
        )
    vectors = by_path(rows)
    new = NewFiles(
        context.io, context.locations, file_prefix(task_id, attempt, context.operation_id), note, suffix=SUFFIX
    )
    files = VectorFiles(context, new)
    try:
        for spec_id, partition in {(each.file.spec_id, each.file.partition) for each in vectors.values()}:
            context.folder_of(spec_id, partition)  # which raises for a spec that is not there
        for some in _together(vectors.values()):
            for each, data in zip(some, encode_vectors([one.positions for one in some]), strict=True):
                files.add(each.file.file_path, each.file.spec_id, each.file.partition, len(each.positions), data)
        files.close()
    except BaseException:
        files.abandon()
        raise
    return files.written


def _together(rows: Iterable[DeletedRows]) -> Iterator[list[DeletedRows]]:
    """Rows of several data files, as many as are encoded at once."""
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
    """How many files of a target size ``VectorFiles`` makes of vectors of so many bytes.

    ``names``: the lengths of the names of their data files.
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
    """Puffin files of deletion vectors, one after another. ``written`` are the vectors, once their file is complete."""

    def __init__(self, context: DeleteContext, new: NewFiles) -> None:
        self._context = context
        self._new = new
        self._writer: PuffinWriter | None = None
        self._sink: OutputStream | None = None
        self._locations: list[str] = []
        self._held: list[tuple[DataFile, Blob]] = []
        self._footer = 0
        self.written: list[DataFile] = []

    def add(self, path: str, spec_id: int, partition: tuple[Any, ...], count: int, data: bytes) -> None:
        """Add the vector of a data file: an encoded bitmap of so many positions."""
        if self._writer is None:
            _, location, self._sink = self._new.begin("puffin")
            self._locations.append(location)
            self._writer = PuffinWriter(self._sink, {"created-by": writer_name()})
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
        if self._writer is None:
            return
        try:
            size = self._writer.close()
        except FileExists:
            self._locations.pop()  # what is there is of somebody else, who was given the same names
            raise
        self._writer = self._sink = None
        self.written += [
            replace(described, file_size_in_bytes=size, content_offset=blob.offset, content_size_in_bytes=blob.length)
            for described, blob in self._held
        ]
        self._held, self._footer = [], 0

    def abandon(self) -> None:
        """Abort what is open and delete what is finished; nothing of it was committed."""
        with contextlib.suppress(IcefieldError, OSError, ValueError):
            if self._sink is not None:
                self._sink.abort()
        take_back(self._context.io, self._locations)
