"""Checks of the input of a reader: an error of the storage stays one, and an input that is not opened is closed."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FileFormat, InputFile, ReadRequest
from icefield.errors import StorageError
from icefield.toolkit import BytesInput

from icefield_testing.format_data import flat_table
from icefield_testing.formats.base import FormatChecks

_LOCATION: Final = "memory://unreachable/file"
_ROWS: Final = 3_000
_MOST_TRIALS: Final = 12


class SourceChecks(FormatChecks):
    """Checks of the ``InputFile`` that a reader reads."""

    @pytest.mark.parametrize("is_remote", [False, True], ids=["near", "remote"])
    def test_a_source_that_fails_stays_a_storage_error(self, file_format: FileFormat, is_remote: bool) -> None:
        """If this fails, an error of the storage is taken for damage or for the end of the file, so nobody tries again:
        let ``StorageError`` through as it is."""
        schema, table = flat_table(_ROWS)
        location, _ = self.write(file_format, schema, table, batch_rows=500, properties=self.small_blocks)
        data = MemoryFileSystem().open_input(location).read()
        counted = _Source(data, is_remote)
        assert self._rows(file_format, counted) == _ROWS
        for number in range(0, counted.reads, max(1, counted.reads // _MOST_TRIALS)):
            source = _Source(data, is_remote, failing=number)
            rows, error = self._tried(file_format, source)
            if error is None:
                assert source.reads <= number, f"{rows:,} of {_ROWS:,} rows and no error: read {number + 1} failed"
                continue
            story = f"{error!r} for a store that did not answer read {number + 1} of {counted.reads}"
            assert isinstance(error, StorageError), f"an error of the storage was renamed: {story}"
            assert error.retryable, f"the error of the storage lost that it is retryable: {story}"
            assert source.closed, f"the input stays open: {story}"

    def test_an_input_that_cannot_be_opened_is_closed(self, file_format: FileFormat) -> None:
        """If this fails, ``open_reader`` raises and keeps the input open, and each damaged file costs a connection:
        close the input in an ``except`` block."""
        location, _ = self.write(file_format, *flat_table(300))
        whole = MemoryFileSystem().open_input(location).read()
        files = {"no byte": b"", "another kind": b"not a file of any format", "half a file": whole[: len(whole) // 2]}
        for name, data in files.items():
            source = BytesInput(data)
            _, error = self._tried(file_format, source)
            assert error is None or source.closed, f"the input of {name} stays open after {error!r}"
        unreachable = _Source(whole, False, failing=0)
        _, error = self._tried(file_format, unreachable)
        assert unreachable.closed, f"the input stays open when the storage fails: {error!r}"

    # -- helpers

    def _tried(self, file_format: FileFormat, source: InputFile) -> tuple[int, Exception | None]:
        try:
            return self._rows(file_format, source), None
        except Exception as error:
            return 0, error

    def _rows(self, file_format: FileFormat, source: InputFile) -> int:
        with file_format.open_reader(source, _LOCATION) as reader:
            return sum(batch.num_rows for batch in reader.read(ReadRequest(reader.schema)))


class _Source(BytesInput):
    """Bytes whose storage fails at one read and after it."""

    def __init__(self, data: bytes, is_remote: bool, failing: int | None = None) -> None:
        super().__init__(data)
        self._is_remote, self._failing = is_remote, failing
        self.reads = 0

    @property
    def is_remote(self) -> bool:
        return self._is_remote

    def read_at(self, offset: int, length: int) -> bytes:
        self.reads += 1
        if self._failing is not None and self.reads > self._failing:
            raise StorageError("the store did not answer", retryable=True, location=_LOCATION)
        return super().read_at(offset, length)

    def arrow_file(self) -> pa.NativeFile:
        return InputFile.arrow_file(self)
