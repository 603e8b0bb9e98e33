"""Rows of Arrow written as CSV, Parquet or JSON lines, batch by batch."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from icefield import Schema
from icefield.errors import InvalidArgument

from icefield_cli.output import plain
from icefield_cli.rows import rows_of

FORMS: Final = ("csv", "parquet", "jsonl")
"""The forms of files of rows."""


def write_rows(
    batches: pa.RecordBatchReader,
    schema: Schema | None,
    form: str,
    write: Callable[[Any], Any],
    count: Callable[[int], None],
) -> None:
    """Write rows in one of ``FORMS``. ``count`` is called with the number of rows of each batch that is written.

    ``write`` takes the bytes; nothing is closed. In CSV, nested values are JSON, and bytes are hexadecimal digits.
    ``schema`` tells UUIDs from other bytes.
    """
    if form == "jsonl":
        for batch in batches:
            lines = (json.dumps(plain(row), ensure_ascii=False) for row in rows_of([batch], schema))
            write("".join(f"{line}\n" for line in lines).encode())
            count(batch.num_rows)
        return
    is_csv = form == "csv"
    for field in () if is_csv else batches.schema:
        if pa.types.is_interval(field.type):
            raise InvalidArgument(f"column '{field.name}' is an interval, which Parquet lacks: cast it to a string")
    written = pa.schema([_column(each) for each in batches.schema]) if is_csv else batches.schema
    sink = _Sink(write)
    writer: AbstractContextManager[Any]
    writer = pyarrow.csv.CSVWriter(sink, written) if is_csv else pyarrow.parquet.ParquetWriter(sink, written)
    with writer as file:
        for batch in batches:
            file.write_batch(_as_csv(batch, written, schema) if is_csv else batch)
            count(batch.num_rows)


class _Sink(io.RawIOBase):
    """A file that hands on the bytes that are written to it."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._write(data)
        return len(data)


def _column(field: pa.Field) -> pa.Field:
    kind = field.type
    return field if _is_plain(kind) else pa.field(field.name, pa.string(), field.nullable)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of a type in CSV as people read them."""
    tests: Iterable[Callable[[pa.DataType], bool]] = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_temporal,
    )
    return any(test(kind) for test in tests) and not pa.types.is_duration(kind) and not pa.types.is_interval(kind)


def _as_csv(batch: pa.RecordBatch, written: pa.Schema, schema: Schema | None) -> pa.RecordBatch:
    columns = [
        column if _is_plain(column.type) else _strings(batch.select([name]), schema)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=written)


def _strings(column: pa.RecordBatch, schema: Schema | None) -> pa.Array:
    values = (next(iter(row.values())) for row in rows_of([column], schema))
    return pa.array([None if each is None else _string(plain(each)) for each in values], pa.string())


def _string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
