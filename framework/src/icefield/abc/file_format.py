"""The contract of a file format: Arrow record batches in and out, by field id.

A format reads what a file holds and nothing more. What is missing, renamed, promoted, reordered or filled from a
default or a partition value is settled once, in the kernel (``icefield.scan.column_projection``), for every format.

Field ids travel as Arrow field metadata under the key ``PARQUET:field_id``
(``icefield.types.arrow.types.FIELD_ID_KEY``), at every level: struct fields, list elements, map keys and values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import TracebackType
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
    """``ReadRequest.dictionaries`` has columns come with each distinct value once."""

    SKIPS = "skips"
    """``ReadRequest.skipped_rows`` spares reading parts of a file that hold none but such rows."""


@dataclass(frozen=True, slots=True)
class Split:
    """A byte range of a file. A format reads the blocks, row groups or stripes that *start* inside it."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a reader is asked for.

    ``columns``: a part of ``FormatReader.schema`` (same names, types and nesting, fewer fields; top-level fields in
    any order) whose fields carry ids, from the file or from a name mapping. A variant that the file holds shredded, a
    group with ``metadata`` and ``typed_value``, may be asked for whole: as the struct of ``metadata`` and ``value``
    that variants are in Arrow (``icefield.toolkit.VARIANT_ARROW``). The reader puts it together then.
    ``row_filter``: a bound expression on ids in ``columns``. A hint: rows that match must come, others may.
    ``split``: the part of the file to read; None is the whole file.
    ``batch_rows``: the most rows in one batch.
    ``positions``: when true each batch has one more column, last: ``_pos`` (int64, not null), the row's position
    in the *file*, from 0, whatever was skipped.
    ``dictionaries``: ids of columns of strings or bytes, top-level ones, that come as Arrow dictionaries with int32
    indices over the type in ``columns``. Asked only of formats that declare ``DICTIONARIES``.
    ``skipped_rows``: a numpy array of int64, ascending: positions in the file of rows that are deleted. A hint: they
    may come or not. Asked only of formats that declare ``SKIPS``.
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
        """Yield the asked-for columns, in the order and with exactly the types of ``request.columns``, those of
        ``request.dictionaries`` dictionary-encoded.

        Rows come in file order. Raises ``InvalidFile`` with the location when the file is damaged.
        """

    @abstractmethod
    def metrics(self) -> Metrics:
        """Counts, sizes and untruncated bounds by field id, as the file's footer states them; empty without any.

        Used for files that were written elsewhere.
        """

    @property
    def record_count(self) -> int | None:
        """How many rows the whole file holds, where opening it stated; None where only reading would.

        A table's file with another count than its manifest says is refused before anything is read.
        """
        return None

    @property
    def split_offsets(self) -> list[int] | None:
        """Where the file may be split, ascending, or None."""
        return None

    @property
    def stored_types(self) -> Sequence[str]:
        """How each leaf of ``schema`` is stored, in the format's own words, in their order; empty where none differ.

        Engines with readers of their own ask, for what the Arrow type does not show: a timestamp in ``INT96``.
        """
        return ()

    @abstractmethod
    def close(self) -> None:
        """Release the input."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a writer states on close: bytes, metrics by field id (bounds untruncated), ascending split offsets."""

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
        """Bytes that the file would have if closed now, for rolling to the next; rough, never decreasing."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes of memory that wait in the writer, as rows or encoded, until a block, row group or stripe is full.

        A write with many open files counts them against its bound. 0 by default: a writer that holds next to nothing.
        """
        return 0

    def flush(self) -> None:  # noqa: B027 -- optional
        """End the block, row group or stripe here, so that ``buffered_bytes`` is 0, if the format can.

        Asked for when memory runs short. Does nothing by default; a file that still holds bytes then is closed.
        """

    @abstractmethod
    def close(self) -> WrittenFile:
        """Finish the file, close the stream and return what was written."""

    @abstractmethod
    def abort(self) -> None:
        """Abort the stream: nothing stays. After ``close`` or ``abort`` it does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()


class FileFormat(ABC):
    """A file format. Stateless; built without arguments; picklable."""

    contract: ClassVar[int] = 2
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    name: ClassVar[str]
    """The spelling in a manifest, lower case."""

    extension: ClassVar[str]
    """The suffix of a file name, without the dot."""

    magic: ClassVar[bytes] = b""
    """The bytes that every file of the format begins with; empty where there are none.

    A file without a known suffix is of the format whose bytes it begins with.
    """

    @property
    def abilities(self) -> frozenset[FormatAbility]:
        """What is declared: as a rule an attribute of the class, ``abilities = frozenset({...})``.

        It is a property where instances differ, such as by what is installed. Ask an instance, not a class.
        """
        return frozenset()

    @abstractmethod
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        """Open a file. ``location`` is for messages; ``size`` spares a stat where it is known.

        Raises ``InvalidFile`` with location and reason for what is not a whole file of this format.
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
        """Begin a file of ``schema``. ``properties`` are table properties (``write.parquet.*``) plus any of the
        format's own; unknown ones are ignored. ``metadata`` goes into the file as key-value metadata.

        Raises ``UnsupportedFeature`` for a type that the format cannot hold.
        """

    def writers(
        self, schema: Schema, *, properties: Mapping[str, str] | None = None
    ) -> Callable[[OutputStream], FormatWriter]:
        """What begins the files of one write, as ``open_writer`` does; threads may call it at the same time.

        By default each file is begun by itself. A format may override it that would find out the same for each of
        many files whose rows are alike.
        """
        return partial(self.open_writer, schema=schema, properties=properties)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
