"""Formats that accept damage as contents, or report damage by another error than a reader must raise."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from icefield.abc import FormatReader, InputFile, ManifestFormatReader, ReadRequest
from icefield.errors import InvalidFile
from icefield.metadata.metrics import Metrics

from broken_file_formats.handed_on import Batches, Right, broken_reading


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
