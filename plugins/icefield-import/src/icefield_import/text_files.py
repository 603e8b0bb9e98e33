"""Files of CSV and of JSON lines, read in batches within bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
from icefield import FileIO
from icefield.errors import InvalidFile

from icefield_import.folders import COMPRESSIONS

BLOCK_BYTES: Final = 8 << 20
"""The bytes of text that are read at a time. The first block of CSV shows the types of its columns."""


class TextFormat(Protocol):
    """A format of text."""

    def schema(self, io: FileIO, location: str) -> pa.Schema:
        """The columns of a file. Raises ``InvalidFile``."""

    def read(self, io: FileIO, location: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file, with the columns of a schema. Raises ``InvalidFile`` for values of other types."""


class CsvFiles:
    """Files of CSV whose first line has the names of the columns. Quoted strings are never null."""

    def __init__(
        self, delimiter: str = ",", null_values: Sequence[str] = ("",), block_bytes: int = BLOCK_BYTES
    ) -> None:
        self._parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        self._read = pc.ReadOptions(block_size=block_bytes)
        self._null_values = list(null_values)

    def schema(self, io: FileIO, location: str) -> pa.Schema:
        """The columns of a file, by its first block."""
        with self._rows(io, location, None) as reader:
            for field in reader.schema:
                if pa.types.is_binary(field.type):
                    message = f"{location}: column '{field.name}' is no UTF-8: convert the file"
                    raise InvalidFile(message, location=location)
            return reader.schema

    def read(self, io: FileIO, location: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        with self._rows(io, location, schema) as reader:
            for batch in reader:
                yield _under(batch, schema)

    @contextmanager
    def _rows(self, io: FileIO, location: str, schema: pa.Schema | None) -> Iterator[pa.RecordBatchReader]:
        convert = pc.ConvertOptions(
            column_types=schema,
            null_values=self._null_values,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with _opened(io, location) as source, pc.open_csv(source, self._read, self._parse, convert) as reader:
            yield reader


class JsonFiles:
    """Files of JSON with an object on each line."""

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes

    def schema(self, io: FileIO, location: str) -> pa.Schema:
        """The columns of a file, by all its lines."""
        found: pa.Schema | None = None
        with _opened(io, location) as source:
            for block in self._blocks(source):
                seen = pj.read_json(pa.BufferReader(block), self._options(block)).schema
                found = seen if found is None else united([found, seen])
        return pa.schema([]) if found is None else found

    def read(self, io: FileIO, location: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        parse = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        with _opened(io, location) as source:
            for block in self._blocks(source):
                for batch in pj.read_json(pa.BufferReader(block), self._options(block), parse).to_batches():
                    yield _under(batch, schema)

    def _options(self, block: bytes) -> pj.ReadOptions:
        return pj.ReadOptions(block_size=len(block) + 1, use_threads=False)

    def _blocks(self, source: pa.NativeFile) -> Iterator[bytes]:
        """Whole lines of about the size of a block."""
        rest = b""
        while data := source.read(self._block_bytes):
            end = data.rfind(b"\n") + 1
            lines, rest = (rest + data[:end], data[end:]) if end else (b"", rest + data)
            if lines.strip():
                yield lines
        if rest.strip():
            yield rest


def united(schemas: list[pa.Schema]) -> pa.Schema:
    """One schema of several: columns by name, numbers as the wider type. Raises ``ArrowInvalid`` and its like."""
    return pa.unify_schemas(schemas, promote_options="permissive")


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """A type with strings in place of columns without any value, at any depth."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(without_nulls(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_nulls(field.type)) for field in kind])
    return kind


def _under(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of the schema; missing ones are null."""
    columns: Mapping[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    missing: Callable[[pa.Field], pa.Array] = lambda field: pa.nulls(batch.num_rows, field.type)  # noqa: E731
    arrays = [columns[field.name] if field.name in columns else missing(field) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def _opened(io: FileIO, location: str) -> Iterator[pa.NativeFile]:
    """The decompressed text of a file. Errors of Arrow are raised as ``InvalidFile``."""
    codec = COMPRESSIONS.get(location.rpartition(".")[2].lower())
    with io.open_input(location) as source:
        file = source.arrow_file()
        try:
            yield file if codec is None else pa.CompressedInputStream(file, codec)
        except (pa.ArrowException, OSError) as error:
            raise InvalidFile(
                f"{location}: {str(error).splitlines()[0]}; state the type of the column by types, such as "
                "types={'name': 'string'}",
                location=location,
            ) from error
