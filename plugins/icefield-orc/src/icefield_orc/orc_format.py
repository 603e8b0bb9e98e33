"""The file format ``orc``, over pyarrow's ORC reader and writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from icefield.abc import FileFormat, FormatAbility, FormatReader, FormatWriter

from icefield_orc.reader import OrcReader
from icefield_orc.writer import OrcWriter

if TYPE_CHECKING:
    from icefield.abc import InputFile, OutputStream
    from icefield.schema import Schema


class OrcFormat(FileFormat):
    """ORC files, read and written by field id.

    A split selects stripes, and a filter prunes them. ``icefield_orc.options`` documents the table properties of a
    writer, ``icefield_orc.storage`` the attributes that it writes.
    """

    name: ClassVar[str] = "orc"
    extension: ClassVar[str] = "orc"
    magic: ClassVar[bytes] = b"ORC"
    abilities = frozenset({FormatAbility.SPLITS, FormatAbility.FILTERS, FormatAbility.SKIPS})

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        """Open an ORC file; its tail is read at once.

        Raises ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for a type that no table can have.
        """
        return OrcReader(source, location, size)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        """Begin an ORC file. ``properties`` are the table's ``write.orc.*``.

        Raises ``InvalidArgument`` for a property that cannot be used, ``UnsupportedFeature`` for a type that
        cannot be written.
        """
        return OrcWriter(sink, schema, properties or {}, metadata or {})
