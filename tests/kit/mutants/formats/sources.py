"""Formats that hide an error of the storage, or keep an input open that they cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa
from icefield.abc import InputFile, ManifestFormatReader, ReadRequest
from icefield.errors import InvalidFile, StorageError
from json_lines import JsonLinesReader

from mutants import Mutant, of
from mutants.formats import by_rows
from mutants.formats.handed_on import Batches, Reader, Right


class _Kept(InputFile):
    """A file that is not closed while ``keeps`` is true."""

    keeps = True

    def __init__(self, source: InputFile) -> None:
        self.source = source

    @property
    def size(self) -> int:
        return self.source.size

    def read_at(self, offset: int, length: int) -> bytes:
        return self.source.read_at(offset, length)

    def arrow_file(self) -> pa.NativeFile:
        return self.source.arrow_file()

    @property
    def is_remote(self) -> bool:
        return self.source.is_remote

    def close(self) -> None:
        if not self.keeps:
            self.source.close()

    @property
    def closed(self) -> bool:
        return self.source.closed


class ForgetsInput(Right):
    """Keeps the input open where ``open_reader`` fails."""

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        kept = _Kept(source)
        reader = super().open_reader(kept, location, size=size)
        kept.keeps = False
        return reader


class ForgetsInputInAnOutage(Right):
    """Closes the input of a damaged file alone."""

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        kept = _Kept(source)
        try:
            reader = super().open_reader(kept, location, size=size)
        except InvalidFile:
            source.close()
            raise
        kept.keeps = False
        return reader


@contextmanager
def _renaming() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise InvalidFile(f"memory://unreachable/file is damaged: {error}", location="memory://unreachable") from error


class _Reads(Right):
    """Reads by the class ``reader``, and opens under ``guard``."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        yield

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        with self.guard():
            return super().open_reader(source, location, size=size)


class StorageErrorRenamed(_Reads):
    """Takes a store that fails for a damaged file."""

    guard = staticmethod(_renaming)  # type: ignore[assignment]

    class reader(Reader):
        def read(self, request: ReadRequest) -> Batches:
            with _renaming():
                yield from self.inner.read(request)


class StorageErrorRenamedWhileItReads(by_rows.Right):
    """Takes a store that fails in the middle for a damaged file."""

    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            with _renaming():
                yield from super().read(request)


class StorageErrorIsTheEnd(by_rows.Right):
    """Takes a store that fails for the end of the file."""

    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            with suppress(StorageError):
                yield from super().read(request)


class StorageErrorIsForever(by_rows.Right):
    """Raises the right class, which does not say that trying again may help."""

    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            try:
                yield from super().read(request)
            except StorageError as error:
                raise StorageError(str(error), location="memory://unreachable/file") from error


class LetsErrorsOfArrowOut(by_rows.Right):
    """Raises Arrow's error for a store that fails."""

    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            try:
                yield from super().read(request)
            except StorageError as error:
                raise pa.ArrowInvalid(str(error)) from error


class KeepsTheInputOfAFailedRead(by_rows.Right):
    """Closes the input of a reader that has read everything."""

    class reader(JsonLinesReader):
        whole = False

        def read(self, request: ReadRequest) -> Batches:
            yield from super().read(request)
            self.whole = True

        def close(self) -> None:
            if self.whole:
                super().close()


_FAILS = "test_a_source_that_fails_stays_a_storage_error"
_CLOSED = "test_an_input_that_cannot_be_opened_is_closed"

MUTANTS: list[Mutant] = of(
    {
        ForgetsInput: (_CLOSED, "the input of no byte stays open after InvalidFile"),
        ForgetsInputInAnOutage: (_CLOSED, "the input stays open when the storage fails: StorageError"),
        StorageErrorRenamed: (_FAILS, "an error of the storage was renamed: InvalidFile"),
        StorageErrorRenamedWhileItReads: (_FAILS, "an error of the storage was renamed: InvalidFile"),
        StorageErrorIsTheEnd: (_FAILS, "of 3,000 rows and no error: read"),
        StorageErrorIsForever: (_FAILS, "the error of the storage lost that it is retryable"),
        LetsErrorsOfArrowOut: (_FAILS, "an error of the storage was renamed: ArrowInvalid"),
        KeepsTheInputOfAFailedRead: (_FAILS, "the input stays open: StorageError"),
    }
)
