"""Files of CSV and of JSON lines, read in batches within bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import time
from decimal import Decimal
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
from icefield import FileIO
from icefield.errors import InvalidArgument, InvalidFile

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
        if len(delimiter) != 1:
            raise InvalidArgument(f"the delimiter of CSV is one character, not {delimiter!r}")
        self._parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        self._read = pc.ReadOptions(block_size=block_bytes)
        self._null_values = list(null_values)

    def schema(self, io: FileIO, location: str) -> pa.Schema:
        """The columns of a file, by its first block. Integers that no double equals are strings."""
        with self._rows(io, location, None) as reader:
            found: pa.Schema = reader.schema
        for field in found:
            if pa.types.is_binary(field.type):
                message = f"{location}: column '{field.name}' is no UTF-8: convert the file"
                raise InvalidFile(message, location=location)
        texts = pa.schema([field.with_type(pa.string()) for field in found if pa.types.is_floating(field.type)])
        if not len(texts):
            return found
        with self._rows(io, location, texts) as reader:
            first = next(iter(reader))
        exact = [field.name for field in texts if any(map(_is_long_integer, first[field.name].to_pylist()))]
        return pa.schema([texts.field(field.name) if field.name in exact else field for field in found])

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
    """Files of JSON with an object on each line. Strings that look like times are strings.

    ``stated``: top-level columns whose values are cast from their text, also if the file has numbers or objects there.
    """

    def __init__(self, stated: Collection[str] = (), block_bytes: int = BLOCK_BYTES) -> None:
        self._stated = frozenset(stated)
        self._block_bytes = block_bytes

    def schema(self, io: FileIO, location: str) -> pa.Schema:
        """The columns of a file, by all its lines."""
        found: pa.Schema | None = None
        with _opened(io, location) as source:
            for block in self._blocks(source):
                others, texts = self._divided(block)
                seen = pj.read_json(pa.BufferReader(others), self._options(others)).schema
                fields = [field.with_type(with_strings(field.type, pa.types.is_timestamp)) for field in seen]
                seen = pa.schema([*fields, *(pa.field(name, pa.string()) for name in texts)])
                found = seen if found is None else united([found, seen])
        return pa.schema([]) if found is None else found

    def read(self, io: FileIO, location: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        explicit = pa.schema([field for field in schema if field.name not in self._stated])
        parse = pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="error")
        with _opened(io, location) as source:
            for block in self._blocks(source):
                others, texts = self._divided(block)
                rows = pj.read_json(pa.BufferReader(others), self._options(others), parse)
                for name, values in texts.items():
                    rows = rows.append_column(name, _cast(values, schema.field(name).type))
                for batch in rows.to_batches():
                    yield _under(batch, schema)

    def _divided(self, block: bytes) -> tuple[bytes, dict[str, list[str | None]]]:
        """The lines without the stated columns, and the text of these columns."""
        if not self._stated:
            return block, {}
        objects = [_object(line) for line in block.split(b"\n") if line.strip()]
        names = sorted(self._stated & {name for each in objects for name in each})
        texts = {name: [_text(each.pop(name, None)) for each in objects] for name in names}
        return "\n".join(json.dumps(each, default=float) for each in objects).encode(), texts

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


def with_strings(kind: pa.DataType, is_replaced: Callable[[pa.DataType], bool]) -> pa.DataType:
    """A type with strings in place of some types, at any depth."""
    if is_replaced(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(with_strings(kind.value_type, is_replaced))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_strings(field.type, is_replaced)) for field in kind])
    return kind


def _is_long_integer(text: str | None) -> bool:
    """Whether a text is an integer that no double equals."""
    digits = "" if text is None else text.strip().lstrip("+-")
    return len(digits) > 15 and digits.isdecimal() and int(digits) != int(float(digits))


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises ``ValueError``."""
    found = json.loads(line, parse_float=Decimal)
    if not isinstance(found, dict):
        raise ValueError("JSON parse error: Column() is no object")
    return found


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return str(value) if is_number else json.dumps(value, default=float)


def _cast(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_time(kind):  # Arrow casts no string to it
        return pa.array([None if text is None else time.fromisoformat(text) for text in texts], kind)
    return pa.array(texts, pa.string()).cast(kind)


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
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            message = str(error).splitlines()[0]
            remedy = "state the type of the column by types, such as types={'name': 'string'}"
            if "Column()" in message:  # Arrow's name of a whole line
                remedy = "JSON lines have an object on each line"
            raise InvalidFile(f"{location}: {message}; {remedy}", location=location) from error
