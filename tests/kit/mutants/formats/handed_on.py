"""Wrappers around a right file format; each broken format changes one thing in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from icefield import Plugins
from icefield.abc import (
    FormatAbility,
    FormatReader,
    FormatWriter,
    InputFile,
    ManifestFormat,
    ManifestFormatReader,
    OutputStream,
    ReadRequest,
    WrittenFile,
)
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema

Batches = Iterator[pa.RecordBatch]


class Reader(ManifestFormatReader):
    """A right reader, handed on."""

    def __init__(self, inner: FormatReader) -> None:
        self.inner = inner

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return self.inner.metadata

    def read(self, request: ReadRequest) -> Batches:
        return self.inner.read(request)

    def metrics(self) -> Metrics:
        return self.inner.metrics()

    def close(self) -> None:
        self.inner.close()


class Writer(FormatWriter):
    """A right writer, handed on."""

    def __init__(self, inner: FormatWriter) -> None:
        self.inner = inner

    def write(self, batch: pa.RecordBatch) -> None:
        self.inner.write(batch)

    @property
    def estimated_size(self) -> int:
        return self.inner.estimated_size

    def close(self) -> WrittenFile:
        return self.inner.close()

    def abort(self) -> None:
        self.inner.abort()


class Right(ManifestFormat):
    """The format ``avro`` through another class: the right format that each broken one changes in one respect."""

    name: ClassVar[str] = "avro"
    extension: ClassVar[str] = "avro"
    abilities = frozenset({FormatAbility.SPLITS})
    reader: ClassVar[type[Reader]] = Reader
    writer: ClassVar[type[Writer]] = Writer

    @property
    def inner(self) -> ManifestFormat:
        found = Plugins.installed().file_format("avro")
        assert isinstance(found, ManifestFormat)
        return found

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        return self.reader(self.inner.open_reader(source, location, size=size))

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        return self.writer(self.inner.open_writer(sink, schema, **options))


def broken_reading(change: Callable[[FormatReader, ReadRequest], Batches]) -> type[Reader]:
    """Return a reader class with another ``read``."""
    return type("BrokenReader", (Reader,), {"read": lambda self, request: change(self.inner, request)})


def broken_metrics(change: Callable[[Metrics], Metrics]) -> type[Writer]:
    """A writer that states other metrics."""

    def close(self: Writer) -> WrittenFile:
        written = self.inner.close()
        return replace(written, metrics=change(written.metrics))

    return type("BrokenWriter", (Writer,), {"close": close})
