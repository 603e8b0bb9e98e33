"""The format ``avro``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from icefield import lazy_names
from icefield.abc import (
    FormatAbility,
    FormatWriter,
    InputFile,
    ManifestFormat,
    ManifestFormatReader,
    ManifestReadRequest,
    OutputStream,
)
from icefield.schema import Schema

from icefield_avro.container import Container
from icefield_avro.reader import AvroReader, read_apart, read_together

if TYPE_CHECKING:
    from icefield_avro.appending import append_blocks as append_blocks
    from icefield_avro.writer import AvroWriter as AvroWriter

# Readers need no writer.
_writing, _ = lazy_names(__name__)


class AvroFormat(ManifestFormat):
    """Avro object container files: data files, delete files, manifests and manifest lists."""

    name: ClassVar[str] = "avro"
    extension: ClassVar[str] = "avro"
    magic: ClassVar[bytes] = b"Obj\x01"
    abilities = frozenset({FormatAbility.SPLITS, FormatAbility.ENCODED_MAPS})

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        """Open a file. Raises ``InvalidFile``, or ``UnsupportedFeature`` for a codec or schema that is not read.

        The input is closed when the file cannot be opened.
        """
        try:
            return AvroReader(Container(source, location, size))
        except BaseException:
            source.close()
            raise

    def read_together(
        self, readers: Sequence[ManifestFormatReader], request: ManifestReadRequest
    ) -> list[list[pa.RecordBatch]]:
        """The rows of several files, decoded in one go where they have one schema."""
        ours = [reader for reader in readers if isinstance(reader, AvroReader)]
        together = read_together(ours, request) if len(ours) == len(readers) else None
        return read_apart(readers, request) if together is None else together

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        """Begin a file. See ``AvroWriter`` for the properties."""
        writer: FormatWriter = _writing("AvroWriter")(sink, schema, properties or {}, metadata or {})
        return writer

    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        """The blocks of ``old`` under a new header, then a block of ``batch``; None when schema or codec differ."""
        blocks: bytes | None = _writing("append_blocks")(old, schema, batch, metadata)
        return blocks
