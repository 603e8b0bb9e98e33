"""Deletion vectors read as they are stored, to be copied into another Puffin file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from icefield.abc import InputFile
from icefield.errors import InvalidMetadata
from icefield.manifest import DataFile
from icefield.puffin import decode_vector, read_range
from icefield.storage import FileIO
from icefield.toolkit import read_ahead

_AHEAD_BYTES: Final = 64 << 20


class VectorCopies:
    """Reads the blobs of vectors, several Puffin files at once."""

    def __init__(self, io: FileIO) -> None:
        self._io = io

    def read(self, vectors: Sequence[DataFile]) -> Iterator[tuple[DataFile, tuple[bytes, int]]]:
        """Each vector with its blob and how many positions are in it, in their order.

        Raises ``InvalidFile`` for a blob that is damaged.
        """
        files = [list(members) for _, members in groupby(vectors, attrgetter("file_path"))]
        workers = self._io.workers()
        return read_ahead(files, self._copies, workers, size_of=lambda copy: len(copy[1][0]), max_bytes=_AHEAD_BYTES)

    def _copies(self, vectors: Sequence[DataFile]) -> Iterator[tuple[DataFile, tuple[bytes, int]]]:
        location = vectors[0].file_path
        source = self._io.open_input(location, vectors[0].key_metadata)
        try:
            for vector in vectors:
                yield vector, _blob(source, vector)
        finally:
            source.close()


def _blob(source: InputFile, vector: DataFile) -> tuple[bytes, int]:
    offset, length, location = vector.content_offset, vector.content_size_in_bytes, vector.file_path
    if offset is None or length is None or offset < 0 or length < 0:
        raise InvalidMetadata(f"{location}: its manifest does not state where a deletion vector is", location=location)
    blob = read_range(source, offset, length, location)
    # Decoding the blob checks it: a damaged vector is not copied.
    positions = decode_vector(blob, location, cardinality=vector.record_count if vector.record_count >= 0 else None)
    return blob, len(positions)
