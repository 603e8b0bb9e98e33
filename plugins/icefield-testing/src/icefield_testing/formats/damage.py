"""Truncated, changed or lying files give one typed error with the location, or rows, in bounded time."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FileFormat
from icefield.errors import IcefieldError, InvalidFile
from icefield.toolkit import BytesInput

from icefield_testing.format_data import NESTED, NESTED_ROWS, flat_table, table_of
from icefield_testing.formats.base import SOAK, FormatChecks, plain

_DAMAGED: Final = "memory://damaged/file"
_PATIENCE_SECONDS: Final = 20.0
_MAX_ALLOCATED: Final = 1 << 30
_LIES: Final = [struct.pack("<i", -1), struct.pack("<i", 2**31 - 1), struct.pack("<q", 2**62), b"\xff" * 8, b"\0" * 8]


class DamageChecks(FormatChecks):
    """Checks of bad input."""

    def test_damage_gets_one_typed_error(self, file_format: FileFormat) -> None:
        """If this fails, an exception of the format's library escapes: make it an InvalidFile with the location."""
        schema, table = flat_table(2_000)
        whole = self._bytes(file_format, schema, table)
        rng = random.Random(11)
        for trial in range(2_000 if SOAK else 150):
            data = bytearray(whole)
            if trial % 3 == 0:
                del data[rng.randrange(len(data)) :]
            elif trial % 3 == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                start = rng.randrange(len(data))
                data[start : start + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(0, 40))
            self.read_damaged(file_format, bytes(data))
        for bad in (b"", b"\0", b"PAR1", b"not a file of any format", whole[: len(whole) // 2]):
            with pytest.raises(InvalidFile) as caught:
                self.read_strictly(file_format, bad)
            assert "memory://damaged" in str(caught.value)

    @pytest.mark.parametrize("shape", NESTED)
    def test_damage_to_nested_columns_gets_one_typed_error(self, file_format: FileFormat, shape: str) -> None:
        """If this fails, an offset or a length inside the file is believed before it is checked."""
        schema, table = table_of(NESTED[shape], NESTED_ROWS[shape] * 5, required=False)
        whole = self._bytes(file_format, schema, table)
        for data in _flipped(whole, random.Random(shape), 400 if SOAK else 40):
            self.read_damaged(file_format, data)

    def test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows(self, file_format: FileFormat) -> None:
        """If this fails, rows are made up where the file ends, or a cut is not noticed."""
        schema, table = flat_table(1_500)
        whole = self._bytes(file_format, schema, table, batch_rows=100)
        expected = plain(table.column("n"))
        step = max(1, len(whole) // (2_000 if SOAK else 100))
        for end in [*range(0, len(whole), step), *range(len(whole) - 12, len(whole))]:
            got = self.read_damaged(file_format, whole[:end])
            if got is not None:
                assert plain(got.column("n")) == expected[: got.num_rows]
                assert got.num_rows < len(expected), "a file that was cut off has all of its rows"

    def test_lengths_that_lie_are_not_believed(self, file_format: FileFormat) -> None:
        """If this fails, memory is reserved, or time spent, by what a damaged file says of its size."""
        schema, table = flat_table(300)
        whole = self._bytes(file_format, schema, table)
        rng = random.Random(5)
        ends = range(len(whole) - 16, len(whole) - 4)
        starts = [*range(0, 40, 3), *ends, *(rng.randrange(len(whole)) for _ in range(400 if SOAK else 25))]
        for start in starts:
            for lie in _LIES:
                data = whole[:start] + lie + whole[start + len(lie) :]
                self.read_damaged(file_format, data[: len(whole)])

    @pytest.mark.parametrize(
        "magic", [b"PAR1", b"Obj\x01", b"ORC", b"ARROW1\0\0", b"PFA1", b"\x1f\x8b\x08\0", b"PK\x03\x04"]
    )
    def test_a_file_of_another_kind_is_refused(self, file_format: FileFormat, magic: bytes) -> None:
        """If this fails, the first and the last bytes are all that is looked at, or not looked at."""
        for data in (magic, magic + magic, magic + b"\0" * 200 + magic, magic + b"\xff" * 200, magic * 100):
            with pytest.raises(InvalidFile) as caught:
                self.read_strictly(file_format, data)
            assert caught.value.data["location"] == _DAMAGED

    def test_bytes_after_the_end_are_an_error_or_make_no_difference(self, file_format: FileFormat) -> None:
        """If this fails, what follows a whole file is taken for rows of it."""
        schema, table = flat_table(100)
        whole = self._bytes(file_format, schema, table)
        for more in (b"\0", b"x" * 1_000, whole):
            got = self.read_damaged(file_format, whole + more)
            if got is not None:
                assert plain(got.column("n"))[:100] == plain(table.column("n"))
                assert got.num_rows in (100, 200)

    # -- helpers

    def read_damaged(self, file_format: FileFormat, data: bytes) -> pa.Table | None:
        """Read a possibly damaged file.

        It gives rows, or an error of Icefield's that names the file, in bounded time and memory.
        """
        began, before = time.monotonic(), pa.total_allocated_bytes()
        found: pa.Table | IcefieldError
        try:
            found = self.read_strictly(file_format, data)
        except IcefieldError as error:
            found = error
        assert time.monotonic() - began < _PATIENCE_SECONDS, "a damaged file takes too long"
        assert pa.total_allocated_bytes() - before < _MAX_ALLOCATED
        if isinstance(found, pa.Table):
            return found
        assert _DAMAGED in str(found), f"the error does not name the file: {found!r}"
        return None

    def read_strictly(self, file_format: FileFormat, data: bytes) -> pa.Table:
        """Read bytes as a file, and access every value."""
        with file_format.open_reader(BytesInput(data), _DAMAGED, size=len(data)) as reader:
            got = self._read(reader)
        try:
            got.validate(full=True)
        except pa.ArrowInvalid as error:
            # The original bytes of a damaged string are unknown, but its offsets must be valid.
            if "Invalid UTF8" not in str(error):
                raise
        return got

    def _bytes(self, file_format: FileFormat, schema: Any, table: pa.Table, *, batch_rows: int = 500) -> bytes:
        location, _ = self.write(file_format, schema, table, batch_rows=batch_rows, properties=self.small_blocks)
        return MemoryFileSystem().open_input(location).read()


def _flipped(whole: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(data)
