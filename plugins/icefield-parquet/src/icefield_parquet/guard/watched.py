"""A far file whose column chunks are looked at as they pass to the library.

A near file's page headers are read before the pages; a far one would be asked for each of them. pyarrow fetches whole
column chunks, so their pages are looked at in memory, and no byte of a chunk is given that is refused.

Reproducers: those of ``inflation`` and ``repeated_entries``. This guard may go with these two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from icefield.abc import InputFile
from icefield.toolkit import BytesInput

from icefield_parquet.guard.inflation import Claim, check_inflation
from icefield_parquet.guard.repeated_entries import Texts, fewer_rows, row_bytes


class Watched(InputFile):
    """A far file whose chunks are looked at.

    ``failure`` is what is wrong; from then on, no byte is given. ``fewer`` is how many rows may be asked for at once
    where fewer are than were expected; then no byte is given either, until ``begin_again``.
    """

    def __init__(self, source: InputFile) -> None:
        self.failure: str | None = None
        self.fewer: int | None = None
        self._source = source
        self._claims: list[Claim] = []
        self._texts: list[Texts] = []
        self._columns: dict[int, int] = {}
        self._rows = 0
        self._row_bytes: dict[int, int] = {}
        self._kept: dict[tuple[int, int], bytes] = {}

    def expect(self, claims: Sequence[Claim], texts: Sequence[tuple[int, Texts]], rows: int) -> None:
        """The column chunks that will be asked for in place of those before, and how many rows of them at once.

        ``texts`` are those of columns, each with its number.
        """
        self.failure = self.fewer = None
        self._claims = sorted(claims, key=_start)
        self._texts = sorted((found for _, found in texts), key=_start)
        self._columns = {found.start: column for column, found in texts}
        self._rows = rows
        self._row_bytes = {}
        self._kept = {}

    def begin_again(self) -> None:
        """Give bytes again, after ``fewer`` was taken note of. What was fetched is not fetched again."""
        if self.fewer is not None:
            self._rows, self.fewer = self.fewer, None

    @property
    def size(self) -> int:
        return self._source.size

    def read_at(self, offset: int, length: int) -> bytes:
        if self._refuses():
            # An exception would be kept by the library together with all that its traceback holds.
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
                    self.failure = str(error)
        for texts in self._texts[bisect_left(self._texts, start, key=_start) :]:
            if texts.start >= end or self.failure is not None:
                break
            self._measure(BytesInput(data), start, texts)

    def _measure(self, data: BytesInput, start: int, texts: Texts) -> None:
        """Add what a row of a column takes; where all rows take too much together, fewer are to be asked for."""
        if texts.end > start + data.size:
            return
        column = self._columns[texts.start]
        found = row_bytes(data, replace(texts, start=texts.start - start, end=texts.end - start))
        self._row_bytes[column] = max(found, self._row_bytes.get(column, 0))
        self.fewer = fewer_rows(sum(self._row_bytes.values()), self._rows) or self.fewer

    @property
    def closed(self) -> bool:
        return self._source.closed

    def close(self) -> None:
        """Do nothing: the file is closed by whoever opened it."""


def _start(chunk: Claim | Texts) -> int:
    return chunk.start
