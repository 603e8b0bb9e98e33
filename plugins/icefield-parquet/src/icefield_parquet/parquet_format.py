"""The file format ``parquet``, over pyarrow's Parquet reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from icefield import lazy_names
from icefield.abc import FormatAbility, FormatOfManyFiles, FormatReader, FormatWriter
from icefield.toolkit import MetricsConfig

from icefield_parquet.reading.reader import ParquetReader

if TYPE_CHECKING:
    from icefield.abc import InputFile, OutputStream
    from icefield.schema import Schema

    from icefield_parquet.writing.encoding import EncodingChoice as EncodingChoice
    from icefield_parquet.writing.layout import layout_of as layout_of
    from icefield_parquet.writing.writer import ParquetWriter as ParquetWriter

# Readers need no writer.
_writing, _ = lazy_names(__name__)


class ParquetFormat(FormatOfManyFiles):
    """Parquet files, read and written by field id.

    A split selects row groups, and a filter prunes them. ``icefield_parquet.writing.options`` documents the table
    properties of a writer.
    """

    name: ClassVar[str] = "parquet"
    extension: ClassVar[str] = "parquet"
    magic: ClassVar[bytes] = b"PAR1"
    abilities = frozenset(
        {
            FormatAbility.SPLITS,
            FormatAbility.FILTERS,
            FormatAbility.DICTIONARIES,
            FormatAbility.ENCRYPTS,
            FormatAbility.SKIPS,
        }
    )

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        """Open a Parquet file; the footer is read at once.

        Raises ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for a file that is encrypted in another way
        than with its key alone.
        """
        return ParquetReader(source, location)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        """Begin a Parquet file. ``properties`` are the table's ``write.parquet.*``.

        Raises ``InvalidArgument`` for a property that cannot be used, ``UnsupportedFeature`` for a type that
        cannot be written.
        """
        return _opener(schema, properties or {}, metadata=metadata or {})(sink)

    def writers(
        self, schema: Schema, *, properties: Mapping[str, str] | None = None
    ) -> Callable[[OutputStream], FormatWriter]:
        """Return the opener of the files of one write. All files share a layout, and the choice of encodings."""
        return _opener(schema, properties or {}, metadata={}, choice=_writing("EncodingChoice")())


def _opener(schema: Schema, properties: Mapping[str, str], **more: Any) -> Callable[[OutputStream], FormatWriter]:
    """The writers of files of a schema, without metrics of the columns for which the properties ask for none."""
    omitted = MetricsConfig.from_properties(properties, schema).omitted(schema)
    layout = _writing("layout_of")(schema)
    return partial(_writing("ParquetWriter"), layout=layout, properties=properties, omitted=omitted, **more)
