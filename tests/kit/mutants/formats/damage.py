"""Formats that accept damage as contents, or report damage by another error than a reader must raise."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

import pyarrow as pa
from icefield.abc import FormatReader, InputFile, ManifestFormatReader, ReadRequest
from icefield.errors import InvalidFile
from icefield.metadata.metrics import Metrics

from mutants import Mutant, of
from mutants.formats.handed_on import Batches, Right, broken_reading


class TakesDamageForAnEmptyFile(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            return Nothing()


class Nothing(FormatReader):
    schema = pa.schema([])
    metadata: ClassVar[dict[str, bytes]] = {}

    def read(self, request: ReadRequest) -> Batches:
        return iter(())

    def metrics(self) -> Metrics:
        return Metrics(record_count=0)

    def close(self) -> None:
        pass


class RaisesItsOwnErrors(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile as error:
            raise ZeroDivisionError(str(error)) from None


class NamesNoFile(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            raise InvalidFile("the file is damaged") from None


class MakesUpRowsWhereTheFileEnds(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        try:
            yield from inner.read(request)
        except InvalidFile:
            yield pa.RecordBatch.from_arrays([pa.nulls(3, f.type) for f in request.columns], schema=request.columns)

    reader = broken_reading(_read)


class SaysNothingOfWhereDamageIs(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        try:
            yield from inner.read(request)
        except InvalidFile:
            raise InvalidFile("something is wrong") from None

    reader = broken_reading(_read)


class _Ends(Right):
    """Ends the process on damage."""

    def end(self) -> None:
        raise AssertionError("a subclass ends the process")

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            self.end()
            raise


class AbortsOnDamage(_Ends):
    """Aborts, as a library in Rust does that cannot allocate what a file claims."""

    def end(self) -> None:
        os.abort()


class ExitsOnDamage(_Ends):
    """Exits without an error."""

    def end(self) -> None:
        os._exit(0)


class CrashesWhileItReads(Right):
    """Crashes on damage that shows when rows are decoded."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        try:
            yield from inner.read(request)
        except InvalidFile:
            os.kill(os.getpid(), signal.SIGSEGV)

    reader = broken_reading(_read)


class Panic(BaseException):
    """A panic, as pyo3 raises it: no ``Exception``."""


class PanicsOnDamage(_Ends):
    """Lets a panic of its library out, which no handler of errors catches."""

    def end(self) -> None:
        raise Panic("called `Option::unwrap()` on a `None` value")


_ENDS = "test_a_library_does_not_end_the_process"
_CUT = "test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows"

MUTANTS: list[Mutant] = of(
    {
        TakesDamageForAnEmptyFile: ("test_damage_gets_one_typed_error", "no InvalidFile for b'': it is read"),
        RaisesItsOwnErrors: ("test_damage_gets_one_typed_error", "none of Icefield's: ZeroDivisionError"),
        NamesNoFile: ("test_damage_gets_one_typed_error", "does not name the file: InvalidFile: the file is damaged"),
        MakesUpRowsWhereTheFileEnds: (
            "test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows",
            "rows are made up where the file ends",
        ),
        SaysNothingOfWhereDamageIs: ("test_damage_to_nested_columns_gets_one_typed_error", "does not name the file"),
        AbortsOnDamage: (
            "test_a_library_does_not_end_the_process",
            "the library ended the process (SIGABRT) while",
        ),
        ExitsOnDamage: (
            "test_a_library_does_not_end_the_process",
            "the library ended the process (status 0) while",
        ),
        CrashesWhileItReads: (
            "test_a_library_does_not_end_the_process",
            "the library ended the process (SIGSEGV) while it read 1,336 bytes",
        ),
        PanicsOnDamage: ("test_damage_gets_one_typed_error", "none of Icefield's: Panic: called `Option::unwrap()`"),
    }
)
