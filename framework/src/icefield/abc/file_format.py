"""The contract of a file format: Arrow record batches in and out, by field id.

A format only reads the columns of a file. Schema evolution is done once for all formats, in the kernel
(``icefield.scan.columns.projection``): missing, renamed, promoted and reordered columns, defaults and partition values.

Field ids travel as Arrow field metadata under the key ``PARQUET:field_id``
(``icefield.types.arrow.types.FIELD_ID_KEY``), at every level: struct fields, list elements, map keys and values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield.abc.file_system import InputFile, OutputStream
    from icefield.expressions import BooleanExpression
    from icefield.metadata.metrics import Metrics
    from icefield.schema import Schema


class FormatAbility(Enum):
    """An optional ability that a format declares and the kit verifies."""

    SPLITS = "splits"
    """A byte range of a file can be read alone (``ReadRequest.split``)."""

    FILTERS = "filters"
    """``ReadRequest.row_filter`` skips parts of a file that cannot match."""

    DICTIONARIES = "dictionaries"
    """``ReadRequest.dictionaries`` returns columns dictionary-encoded."""

    ENCRYPTS = "encrypts"
    """The format encrypts files itself, with the key of their stream (``InputFile.key``, ``OutputStream.key``).

    Files of other formats are encrypted as a whole: they are read and written through streams of plain bytes.
    """

    ENCODED_MAPS = "encoded-maps"
    """``ReadRequest.columns`` may have ``pa.binary()`` for a map of integers to integers or bytes: its encoding.

    A writer of the format takes these bytes in place of such a map.
    """

    SKIPS = "skips"
    """``ReadRequest.skipped_rows`` skips parts of a file in which all rows are deleted."""


@dataclass(frozen=True, slots=True)
class Split:
    """A byte range of a file. A format reads the blocks, row groups or stripes that *start* inside it."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request to a reader.

    ``columns``: a part of ``FormatReader.schema`` (same names, types and nesting, fewer fields; top-level fields in any
    order). All fields have ids, from the file or from a name mapping. A shredded variant is a group with ``metadata``
    and ``typed_value``. It may be requested unshredded, as Arrow's struct of ``metadata`` and ``value``
    (``icefield.toolkit.VARIANT_ARROW``); the reader then reassembles it.
    ``row_filter``: a bound expression on ids in ``columns``. A hint: all matching rows are returned, others may be.
    ``split``: the part of the file to read; None is the whole file.
    ``batch_rows``: the maximum number of rows in a batch.
    ``positions``: when true each batch has one more column, last: ``_pos`` (int64, not null), the row's position in the
    *file*, from 0; skipped rows count.
    ``dictionaries``: ids of top-level string or binary columns to return as Arrow dictionaries with int32 indices over
    the type in ``columns``. Used only with formats that declare ``DICTIONARIES``.
    ``skipped_rows``: a numpy array of int64, ascending: positions in the file of rows that are deleted. A hint: the
    reader may return them. Used only with formats that declare ``SKIPS``.
    """

    columns: pa.Schema
    row_filter: BooleanExpression | None = None
    split: Split | None = None
    batch_rows: int = 131_072
    positions: bool = False
    dictionaries: frozenset[int] = frozenset()
    skipped_rows: Any = field(default=None, compare=False)


class FormatReader(ABC):
    """An open file. Closed by ``close`` or by leaving its ``with`` block, which closes the input as well."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The file's own schema in Arrow, with ids where the file has them. Never guesses an id."""

    @property
    @abstractmethod
    def metadata(self) -> Mapping[str, bytes]:
        """The file's own key-value metadata."""

    @abstractmethod
    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Yield the requested columns, in the order and with exactly the types of ``request.columns``.

        Columns of ``request.dictionaries`` are dictionary-encoded. Rows come in file order. Raises ``InvalidFile`` with
        the location when the file is damaged.
        """

    @abstractmethod
    def metrics(self) -> Metrics:
        """Counts, sizes and untruncated bounds by field id, as the file's footer states them; empty without any.

        Used for files that were written elsewhere.
        """

    @property
    def record_count(self) -> int | None:
        """The number of rows in the file, or None if opening it does not show the number.

        A file is refused before it is read if this number differs from its manifest entry.
        """
        return None

    @property
    def split_offsets(self) -> list[int] | None:
        """The ascending offsets at which the file may be split, or None."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Release the input."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TypedReader(FormatReader):
    """A reader of a format with storage types that the Arrow types hide, such as ``INT96`` timestamps."""

    @property
    @abstractmethod
    def stored_types(self) -> Sequence[str]:
        """The format's own storage type of each leaf of ``schema``, in order, for engines with their own readers."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The result of a closed writer: size in bytes, metrics by field id (untruncated bounds), sorted split offsets."""

    size: int
    metrics: Metrics
    split_offsets: list[int] | None = None


class FormatWriter(ABC):
    """Writes one file. Only ``close`` publishes it; leaving the ``with`` block by an exception aborts it."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. The batch has exactly the Arrow form of the schema the writer was opened with."""

    @property
    @abstractmethod
    def estimated_size(self) -> int:
        """The approximate size of the file if it were closed now, for rolling to the next one; never decreasing."""

    @property
    def buffered_bytes(self) -> int:
        """The bytes in the writer's buffer, as rows or encoded, until a block, row group or stripe is full.

        A write with many open files counts them against its memory limit. When memory runs short, it flushes a
        ``FlushingWriter`` and closes the file of any other. 0 by default: a writer with almost no buffer.
        """
        return 0

    @abstractmethod
    def close(self) -> WrittenFile:
        """Finish the file, close the stream and return its ``WrittenFile``."""

    @abstractmethod
    def abort(self) -> None:
        """Abort the stream and leave no file. After ``close`` or ``abort`` it does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()


class FlushingWriter(FormatWriter):
    """A writer that can end a block, row group or stripe early."""

    @abstractmethod
    def flush(self) -> None:
        """End the block, row group or stripe here, so that ``buffered_bytes`` is 0. Called when memory runs short."""


class FileFormat(ABC):
    """A file format. Stateless; built without arguments; picklable."""

    contract: ClassVar[int] = 2
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    name: ClassVar[str]
    """The spelling in a manifest, lower case."""

    extension: ClassVar[str]
    """The suffix of a file name, without the dot."""

    magic: ClassVar[bytes] = b""
    """The magic bytes at the start of every file of the format; empty if it has none.

    They identify the format of a file without a known suffix.
    """

    @property
    def abilities(self) -> frozenset[FormatAbility]:
        """The declared abilities, usually a class attribute: ``abilities = frozenset({...})``.

        Instances may differ, for example by the installed libraries. Read it from an instance, not from the class.
        """
        return frozenset()

    @abstractmethod
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        """Open a file. ``location`` is for messages; ``size`` saves a request for the size, if it is known.

        Raises ``InvalidFile`` with location and reason if the file is not a complete file of this format.
        """

    @abstractmethod
    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        """Begin a file of ``schema``.

        ``properties`` are table properties (``write.<format>.*``) plus any of the format's own; unknown ones are
        ignored. Metrics may leave out the columns for which ``write.metadata.metrics.*`` asks for none
        (``icefield.toolkit.MetricsConfig``). ``metadata`` goes into the file as key-value metadata.

        Raises ``UnsupportedFeature`` for a type that the format cannot hold.
        """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class FormatOfManyFiles(FileFormat):
    """A format whose files of one write share setup, such as the choice of encodings."""

    @abstractmethod
    def writers(
        self, schema: Schema, *, properties: Mapping[str, str] | None = None
    ) -> Callable[[OutputStream], FormatWriter]:
        """A factory of writers for the files of one write; see ``open_writer``. Several threads may call it at once."""
