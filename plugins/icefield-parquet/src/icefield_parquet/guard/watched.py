"""A remote file with checks of the column chunks on their way to pyarrow.

A local file's page headers are read before the pages; for a remote file each header would cost a request. pyarrow
fetches whole column chunks, so the pages are checked in memory, and pyarrow gets no byte of a rejected chunk.

``inflation`` and ``repeated_entries`` have the reproducers. This guard may go with these two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from icefield.abc import InputFile
from icefield.toolkit import BytesInput

from icefield_parquet.guard.expansion import TooMany
from icefield_parquet.guard.inflation import Claim, check_inflation
from icefield_parquet.guard.repeated_entries import Measure, StringChunk, fewer_rows, row_bytes


class Watched(InputFile):
    """A remote file with checked column chunks.

    ``failure`` is the error of a rejected chunk; after it, reads return no bytes. ``fewer`` is a smaller batch size,
    set when the expected rows take too much memory; reads return no bytes until ``begin_again``.
    """

    def __init__(self, source: InputFile, measure: Measure) -> None:
        self.failure: ValueError | TooMany | None = None
        self.fewer: int | None = None
        self._source = source
        self._read_strings = measure
        self._claims: list[Claim] = []
        self._strings: list[StringChunk] = []
        self._columns: dict[int, int] = {}
        self._rows = 0
        self._row_bytes: dict[int, int] = {}
        self._kept: dict[tuple[int, int], bytes] = {}

    def expect(self, claims: Sequence[Claim], strings: Sequence[tuple[int, StringChunk]], rows: int) -> None:
        """Set the column chunks of the next reads, in place of earlier ones, and the rows of a batch.

        ``strings`` are string chunks, each with the number of its column.
        """
        self.failure = self.fewer = None
        self._claims = sorted(claims, key=_start)
        self._strings = sorted((found for _, found in strings), key=_start)
        self._columns = {found.start: column for column, found in strings}
        self._rows = rows
        self._row_bytes = {}
        self._kept = {}

    def begin_again(self) -> None:
        """Return bytes again, with ``fewer`` as the batch size. Chunks fetched before are not fetched again."""
        if self.fewer is not None:
            self._rows, self.fewer = self.fewer, None

    @property
    def size(self) -> int:
        return self._source.size

    def read_at(self, offset: int, length: int) -> bytes:
        if self._refuses():
            # pyarrow would keep an exception, and with it all objects of its traceback.
            return b""
        data = self._kept.pop((offset, length), None)
        if data is None:
            data = self._source.read_at(offset, length)
        self._look_at(data, offset)
        if not self._refuses():
            return data
        if self.fewer is not None:
            self._kept[offset, length] = data
        return b""

    def _refuses(self) -> bool:
        return self.failure is not None or self.fewer is not None

    def _look_at(self, data: bytes, start: int) -> None:
        end = start + len(data)
        for claim in self._claims[bisect_left(self._claims, start, key=_start) :]:
            if claim.start >= end:
                break
            if claim.end <= end and self.failure is None:
                moved = replace(claim, start=claim.start - start, end=claim.end - start)
                try:
                    check_inflation(BytesInput(data), moved)
                except ValueError as error:
                    self.failure = ValueError(str(error))
        for strings in self._strings[bisect_left(self._strings, start, key=_start) :]:
            if strings.start >= end or self.failure is not None:
                break
            self._measure(BytesInput(data), start, strings)

    def _measure(self, data: BytesInput, start: int, strings: StringChunk) -> None:
        """Add the bytes of a column's row, and set ``fewer`` where the rows of a batch take too much together."""
        if strings.end > start + data.size:
            return
        column = self._columns[strings.start]
        moved = replace(strings, start=strings.start - start, end=strings.end - start)
        try:
            found = row_bytes(data, moved, lambda _, __: self._read_strings(_FilePart(data, start, self.size), strings))
        except TooMany as error:
            self.failure = TooMany(str(error))
            return
        self._row_bytes[column] = max(found, self._row_bytes.get(column, 0))
        self.fewer = fewer_rows(sum(self._row_bytes.values()), self._rows) or self.fewer

    @property
    def closed(self) -> bool:
        return self._source.closed

    def close(self) -> None:
        """Do nothing: the opener of the file closes it."""


class _FilePart(InputFile):
    """A file with only one part in memory."""

    def __init__(self, data: InputFile, start: int, size: int) -> None:
        self._data = data
        self._start = start
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def read_at(self, offset: int, length: int) -> bytes:
        return self._data.read_at(offset - self._start, length)

    @property
    def closed(self) -> bool:
        return self._data.closed

    def close(self) -> None:
        """Do nothing: the owner of the part closes it."""


def _start(chunk: Claim | StringChunk) -> int:
    return chunk.start
