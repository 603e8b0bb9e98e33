"""Messages between a server and the process of a query: a line of JSON, and bytes behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

import pyarrow as pa

Message = tuple[dict[str, Any], pa.Buffer]

MOST_BYTES: Final = 32 * 1024 * 1024
"""The maximum size of a message from the process of a query."""

MEMORY_EXCEEDED: Final = 75
"""The exit status of a process that used more memory than its query may."""

_MOST_LINE: Final = 4 * 1024 * 1024
_MOST_PIECE: Final = 4 * 1024 * 1024
"""Bytes of rows that are sent together."""


def send(stream: IO[bytes], head: dict[str, Any], body: bytes | pa.Buffer = b"") -> None:
    """Send a message."""
    stream.write(json.dumps({**head, "size": len(body)}).encode() + b"\n")
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes], most: int | None = None) -> Message:
    """The next message. Raises ``EOFError`` at the end, and ``ValueError`` for a message that is too large."""
    line = stream.readline(_MOST_LINE)
    if not line:
        raise EOFError
    head = json.loads(line)
    size = head["size"]
    if most is not None and not 0 <= size <= most:
        raise ValueError(f"a message of {size} bytes")
    body = stream.read(size)
    if len(body) < size:
        raise EOFError
    return head, pa.py_buffer(body)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch in parts that are small, or of one row."""
    if batch.num_rows > 1 and batch.nbytes > _MOST_PIECE:
        half = batch.num_rows // 2
        yield from pieces(batch.slice(0, half))
        yield from pieces(batch.slice(half))
    else:
        yield batch


def packed(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as a stream of its own, with its schema and its dictionaries."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpacked(body: pa.Buffer) -> pa.RecordBatch:
    """The batch of a message."""
    with pa.ipc.open_stream(body) as reader:
        return reader.read_next_batch()
