"""Truncated, changed or lying files give one typed error with the location, or rows, in bounded time."""

from __future__ import annotations

import pickle
import random
import signal
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FileFormat

from icefield_testing.format_data import NESTED, NESTED_ROWS, flat_table, table_of
from icefield_testing.formats import apart
from icefield_testing.formats.apart import DAMAGED
from icefield_testing.formats.base import SOAK, FormatChecks, plain
from icefield_testing.processes import FORKS, ended, ran

_PATIENCE_SECONDS: Final = 20.0
_MOST_SECONDS: Final = 200.0
_MAX_ALLOCATED: Final = 1 << 30
_SHOWN_BYTES: Final = 64
_LIES: Final = [struct.pack("<i", -1), struct.pack("<i", 2**31 - 1), struct.pack("<q", 2**62), b"\xff" * 8, b"\0" * 8]


@dataclass(frozen=True)
class Outcome:
    """The outcome of reading a file: its rows, or an error."""

    rows: int | None
    numbers: list[int] | None
    """The values of the column ``n``."""
    error: str | None
    seconds: float
    allocated: int
    known: bool = False
    """Whether the error is one of Icefield's."""
    refused: bool = False
    """Whether the error is ``InvalidFile``."""
    location: Any = None


class DamageChecks(FormatChecks):
    """Checks of bad input."""

    def test_damage_gets_one_typed_error(self, file_format: FileFormat) -> None:
        """If this fails, an exception of the format's library escapes: make it an InvalidFile with the location."""
        schema, table = flat_table(2_000)
        whole = self._bytes(file_format, schema, table)
        rng = random.Random(11)
        files = []
        for trial in range(2_000 if SOAK else 150):
            changed = bytearray(whole)
            if trial % 3 == 0:
                del changed[rng.randrange(len(changed)) :]
            elif trial % 3 == 1:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            else:
                start = rng.randrange(len(changed))
                changed[start : start + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(0, 40))
            files.append(bytes(changed))
        self.read_damaged(file_format, files)
        bad = (b"", b"\0", b"PAR1", b"not a file of any format", whole[: len(whole) // 2])
        for data, outcome in zip(bad, self.read_damaged(file_format, bad), strict=True):
            assert outcome.refused, f"no InvalidFile for {data[:40]!r}: {outcome.error or 'it is read'}"

    def test_a_library_does_not_end_the_process(self, file_format: FileFormat) -> None:
        """If this fails, the format's library ends the process on damage, by an abort or a crash, and every other table
        of the job with it: store a checksum of the parts, and compare it before the library sees them."""
        schema, table = flat_table(500)
        whole = self._bytes(file_format, schema, table)
        rng = random.Random(23)
        files = [whole[: len(whole) * piece // 20] for piece in range(20)]
        files += [*_flipped(whole, rng, 20)]
        files += [whole[:at] + b"\xff" * 16 + whole[at + 16 :] for at in range(0, len(whole), max(1, len(whole) // 20))]
        self.outcomes(file_format, files)

    @pytest.mark.parametrize("shape", NESTED)
    def test_damage_to_nested_columns_gets_one_typed_error(self, file_format: FileFormat, shape: str) -> None:
        """If this fails, an offset or a length inside the file is believed before it is checked."""
        schema, table = table_of(NESTED[shape], NESTED_ROWS[shape] * 5, required=False)
        whole = self._bytes(file_format, schema, table)
        self.read_damaged(file_format, [*_flipped(whole, random.Random(shape), 400 if SOAK else 40)])

    def test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows(self, file_format: FileFormat) -> None:
        """If this fails, rows are made up where the file ends, or a cut is not noticed."""
        schema, table = flat_table(1_500)
        whole = self._bytes(file_format, schema, table, batch_rows=100)
        expected = plain(table.column("n"))
        step = max(1, len(whole) // (2_000 if SOAK else 100))
        ends = [*range(0, len(whole), step), *range(len(whole) - 12, len(whole))]
        for outcome in self.read_damaged(file_format, [whole[:end] for end in ends]):
            if outcome.error is None:
                assert outcome.numbers == expected[: outcome.rows]
                assert outcome.rows is not None
                assert outcome.rows < len(expected), "a file that was cut off has all of its rows"

    def test_lengths_that_lie_are_not_believed(self, file_format: FileFormat) -> None:
        """If this fails, memory is reserved, or time spent, by what a damaged file says of its size."""
        schema, table = flat_table(300)
        whole = self._bytes(file_format, schema, table)
        rng = random.Random(5)
        ends = range(len(whole) - 16, len(whole) - 4)
        starts = [*range(0, 40, 3), *ends, *(rng.randrange(len(whole)) for _ in range(400 if SOAK else 25))]
        files = [whole[:start] + lie + whole[start + len(lie) :] for start in starts for lie in _LIES]
        self.read_damaged(file_format, [data[: len(whole)] for data in files])

    @pytest.mark.parametrize(
        "magic", [b"PAR1", b"Obj\x01", b"ORC", b"ARROW1\0\0", b"PFA1", b"\x1f\x8b\x08\0", b"PK\x03\x04"]
    )
    def test_a_file_of_another_kind_is_refused(self, file_format: FileFormat, magic: bytes) -> None:
        """If this fails, the first and the last bytes are all that is looked at, or not looked at."""
        files = (magic, magic + magic, magic + b"\0" * 200 + magic, magic + b"\xff" * 200, magic * 100)
        for data, outcome in zip(files, self.read_damaged(file_format, files), strict=True):
            assert outcome.refused, f"no InvalidFile for {data[:40]!r}: {outcome.error or 'it is read'}"
            assert outcome.location == DAMAGED, f"the error does not carry the location: {outcome.error}"

    def test_bytes_after_the_end_are_an_error_or_make_no_difference(self, file_format: FileFormat) -> None:
        """If this fails, what follows a whole file is taken for rows of it."""
        schema, table = flat_table(100)
        whole = self._bytes(file_format, schema, table)
        for outcome in self.read_damaged(file_format, [whole + more for more in (b"\0", b"x" * 1_000, whole)]):
            if outcome.error is None:
                assert (outcome.numbers or [])[:100] == plain(table.column("n"))
                assert outcome.rows in (100, 200)

    # -- helpers

    def read_damaged(self, file_format: FileFormat, files: Sequence[bytes]) -> list[Outcome]:
        """Read possibly damaged files.

        Each gives rows, or an error of Icefield's that names the file, in bounded time and memory.
        """
        found = self.outcomes(file_format, files)
        for outcome in found:
            assert outcome.seconds < _PATIENCE_SECONDS, "a damaged file takes too long"
            assert outcome.allocated < _MAX_ALLOCATED
            if outcome.error is not None:
                assert outcome.known, f"an error that is none of Icefield's: {outcome.error}"
                assert DAMAGED in outcome.error, f"the error does not name the file: {outcome.error}"
        return found

    def outcomes(self, file_format: FileFormat, files: Iterable[bytes]) -> list[Outcome]:
        """Read files in another process, which a library may end."""
        given = [*files]
        with tempfile.TemporaryDirectory(prefix="icefield-kit-") as folder:
            place = Path(folder, "outcomes")
            place.touch()
            if FORKS and self.survives_fork:
                status, errors = ended(lambda: _read_each(file_format, given, place), _MOST_SECONDS), ""
            else:
                status, errors = ran(apart.__file__, pickle.dumps((file_format, given, str(place))), _MOST_SECONDS)
            found = [*_outcomes(place)]
        if len(found) < len(given):
            how = signal.Signals(-status).name if status < 0 else f"status {status}"
            raise AssertionError(
                f"the library ended the process ({how}) while it read {_kept(given[len(found)])}{errors}"
            )
        return found

    def _bytes(self, file_format: FileFormat, schema: Any, table: pa.Table, *, batch_rows: int = 500) -> bytes:
        location, _ = self.write(file_format, schema, table, batch_rows=batch_rows, properties=self.small_blocks)
        return MemoryFileSystem().open_input(location).read()


def _read_each(file_format: FileFormat, files: Sequence[bytes], place: Path) -> None:
    with place.open("wb") as results:
        apart.read_each(file_format, files, results)


def _outcomes(place: Path) -> Iterator[Outcome]:
    with place.open("rb") as results:
        while True:
            try:
                yield Outcome(**pickle.load(results))
            except (EOFError, pickle.UnpicklingError):
                return


def _kept(data: bytes) -> str:
    """A description of the bytes, and a file that keeps them."""
    with tempfile.NamedTemporaryFile(prefix="icefield-kit-damaged-", delete=False) as file:
        file.write(data)
    begin = data[:_SHOWN_BYTES].hex(" ")
    return f"{len(data):,} bytes, which are kept in {file.name} and begin with {begin}"


def _flipped(whole: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(data)
