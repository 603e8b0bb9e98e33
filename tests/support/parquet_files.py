"""Writing and reading Parquet files in memory through the plugin, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
from icefield.abc import ReadRequest, WrittenFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.scan import ColumnProjection
from icefield.schema import NameMapping, Schema, schema_to_arrow
from icefield.toolkit import BytesInput
from icefield_parquet.parquet_format import ParquetFormat


def write(
    schema: Schema, table: pa.Table, *, batch_rows: int | None = None, of_many: bool = False, **options: Any
) -> tuple[bytes, WrittenFile]:
    """Write a file, alone or as one ``of_many``, and return its bytes and its writer's result."""
    location = f"memory://parquet/{uuid4().hex}"
    sink, kind = MemoryFileSystem().open_output(location), ParquetFormat()
    writer = kind.writers(schema, **options)(sink) if of_many else kind.open_writer(sink, schema, **options)
    with writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write(batch)
        written = writer.close()
    return MemoryFileSystem().open_input(location).read(), written


def write_rows(schema: Schema, rows: list[Mapping[str, Any]], **options: Any) -> tuple[bytes, WrittenFile]:
    """As ``write``, of Python rows."""
    return write(schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)), **options)


def reader_of(data: bytes) -> Any:
    """A reader of a file's bytes."""
    return ParquetFormat().open_reader(BytesInput(data), "memory://parquet/file")


def read(data: bytes, **request: Any) -> pa.Table:
    """Read a file with the plugin, by default in the file's own schema."""
    with reader_of(data) as reader:
        columns = request.pop("columns", reader.schema)
        batches = list(reader.read(ReadRequest(columns, **request)))
    return pa.Table.from_batches(batches) if batches else columns.empty_table()


def read_as(
    schema: Schema, data: bytes, constants: Mapping[int, Any] | None = None, mapping: NameMapping | None = None
) -> pa.Table:
    """Read a file as a scan does, under a table's schema; a ``mapping`` gives the file's columns their ids."""
    with reader_of(data) as reader:
        held = reader.schema if mapping is None else mapping.apply(reader.schema)
        projection = ColumnProjection.resolve(schema, held, constants, location="memory://parquet/file")
        request = ReadRequest(projection.file_columns, positions=projection.positions)
        return pa.Table.from_batches([projection.apply(batch) for batch in reader.read(request)], projection.schema)
