"""Writing and reading ORC files in memory, through the plugin and through pyorc, for tests."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyorc
from icefield.abc import ReadRequest, WrittenFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.scan import ColumnProjection
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import BytesInput
from icefield_orc.orc_format import OrcFormat


def write(
    schema: Schema, table: pa.Table, *, batch_rows: int | None = None, **options: Any
) -> tuple[bytes, WrittenFile]:
    """Write a file, and return its bytes and its writer's result."""
    location = f"memory://orc/{uuid4().hex}"
    with OrcFormat().open_writer(MemoryFileSystem().open_output(location), schema, **options) as writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write(batch)
        written = writer.close()
    return MemoryFileSystem().open_input(location).read(), written


def write_rows(schema: Schema, rows: list[Mapping[str, Any]], **options: Any) -> tuple[bytes, WrittenFile]:
    """As ``write``, of Python rows."""
    return write(schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)), **options)


def reader_of(data: bytes) -> Any:
    """A reader of a file's bytes."""
    return OrcFormat().open_reader(BytesInput(data), "memory://orc/file")


def read(data: bytes, **request: Any) -> pa.Table:
    """Read a file with the plugin, by default in the file's own schema."""
    with reader_of(data) as reader:
        columns = request.pop("columns", reader.schema)
        batches = list(reader.read(ReadRequest(columns, **request)))
    return pa.Table.from_batches(batches) if batches else columns.empty_table()


def read_as(schema: Schema, data: bytes) -> pa.Table:
    """Read a file as a scan does, under a table's schema."""
    with reader_of(data) as reader:
        projection = ColumnProjection.resolve(schema, reader.schema, None, location="memory://orc/file")
        request = ReadRequest(projection.file_columns, positions=projection.positions)
        return pa.Table.from_batches([projection.apply(batch) for batch in reader.read(request)], projection.schema)


def described(text: str, attributes: Mapping[int, Mapping[str, str]] | None = None) -> pyorc.TypeDescription:
    """An ORC type from its string, with attributes by the type's number in pre-order."""
    root = pyorc.TypeDescription.from_string(text)
    for number, node in enumerate(nodes(root)):
        node.set_attributes(dict((attributes or {}).get(number, {})))
    return root


def nodes(node: Any) -> Iterator[Any]:
    """Every type of a tree of pyorc's, in pre-order."""
    yield node
    if hasattr(node, "fields"):
        children = list(node.fields.values())
    elif hasattr(node, "key"):
        children = [node.key, node.value]
    elif hasattr(node, "type"):
        children = [node.type]
    else:
        children = list(getattr(node, "container_types", ()))
    for child in children:
        yield from nodes(child)


def peer_write(
    schema: pyorc.TypeDescription | str,
    rows: list[tuple[Any, ...]],
    *,
    metadata: Mapping[str, bytes] | None = None,
    **options: Any,
) -> bytes:
    """A file that pyorc writes."""
    out = io.BytesIO()
    with pyorc.Writer(out, schema, **options) as writer:
        writer.writerows(rows)
        writer.set_user_metadata(**dict(metadata or {}))
    return out.getvalue()


def peer(data: bytes) -> pyorc.Reader:
    """A file as pyorc reads it."""
    return pyorc.Reader(io.BytesIO(data))
