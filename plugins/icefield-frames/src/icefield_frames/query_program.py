"""The program of a process that runs one query: it gets its SQL and the rows of tables from its parent alone."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import duckdb  # at the start, while no query waits for it
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from icefield.errors import IcefieldError, InvalidArgument

from icefield_frames.duckdb_queries import QueryLimits, QueryTable, message_of, querying
from icefield_frames.query_messages import MEMORY_EXCEEDED, MOST_BYTES, Message, packed, pieces, receive, send, unpacked

if sys.platform != "win32":
    import resource

_MOST_FILTER: Final = 4 * 1024 * 1024
"""Bytes of a filter of one table."""

_OF_MEMORY: Final = ("Out of Memory Error", "MemoryError")
"""Texts of errors for refused memory. The classes of the errors do not state this."""

_BESIDE: Final = 128 * 1024 * 1024
"""Bytes beyond the memory of a query, for stacks of threads and what allocators hold free."""


class ParentProcess:
    """The process that started this one, by the standard streams. When it ends, this process does."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._received: SimpleQueue[Message] = SimpleQueue()
        self._lock = threading.Lock()
        self._left: deque[int] = deque()
        threading.Thread(target=self._listen, name="icefield-parent", daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                self._received.put(receive(self._incoming))
        except MemoryError:
            os._exit(MEMORY_EXCEEDED)
        finally:
            os._exit(1)

    def first(self, seconds: float) -> Message:
        """The first message, which comes without a question. Raises ``Empty`` if it does not come in time."""
        return self._received.get(timeout=seconds)

    def tell(self, head: dict[str, Any], body: bytes | pa.Buffer = b"") -> None:
        """Send a message that has no answer."""
        with self._lock:
            send(self._outgoing, head, body)

    def ask(self, head: dict[str, Any], body: bytes | pa.Buffer = b"") -> Message:
        """The answer to a question. DuckDB asks in several threads."""
        with self._lock:
            left = [self._left.popleft() for _ in range(len(self._left))]
            send(self._outgoing, {**head, "left": left}, body)
            return self._received.get()

    def leave(self, stream: int) -> None:
        """Note that rows of a stream are no longer needed. This is said with the next question."""
        self._left.append(stream)


class ParentDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """A table in the parent process, which reads it with the columns and the filter of DuckDB."""

    def __init__(self, parent: ParentProcess, number: int, schema: pa.Schema) -> None:
        self._parent = parent
        self._number = number
        # In C++ it is a data set of one file that does not exist.
        store, form = fs.LocalFileSystem(), ds.IpcFileFormat()
        super().__init__([form.make_fragment(os.devnull, store)], schema, form, store)

    def scanner(
        self, columns: list[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner of the rows, to be read once."""
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        rows = pa.RecordBatchReader.from_batches(schema, self._read(columns, filter))
        return ds.Scanner.from_batches(rows)

    def _read(self, columns: list[str] | None, row_filter: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        expression = b"" if row_filter is None else row_filter.__reduce__()[1][0]
        if len(expression) > _MOST_FILTER:
            raise ValueError(f"a filter of the query has more than {_MOST_FILTER:,} bytes")
        question = {"kind": "scan", "table": self._number, "columns": columns}
        answer, body = self._parent.ask(question, expression)
        stream = answer["stream"]
        try:
            while answer["kind"] == "batch":
                yield unpacked(body)
                answer, body = self._parent.ask({"kind": "next", "stream": stream})
        finally:
            self._parent.leave(stream)


def bound_memory(most: int) -> None:
    """Let this process use so many bytes more than it does now, and write no files.

    Linux refuses memory beyond them. Elsewhere the process ends once it used more. Windows bounds nothing.
    """
    if sys.platform == "win32":
        return
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    if sys.platform == "linux":
        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + most, used + most))
    else:
        threading.Thread(target=end_beyond, args=(most,), name="icefield-memory", daemon=True).start()


def end_beyond(most: int) -> None:
    """End this process once its peak of resident memory is so many bytes above that of now."""
    end = _peak() + most
    while _peak() <= end:
        time.sleep(0.02)
    os._exit(MEMORY_EXCEEDED)


def _peak() -> int:
    if sys.platform == "win32":
        return 0
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024


def answer(parent: ParentProcess, sql: str, limits: QueryLimits) -> None:
    """Send the result of a query to the parent, or the message of its error."""

    def table_of(name: tuple[str, ...]) -> QueryTable:
        found, schema = parent.ask({"kind": "table", "name": name})
        return QueryTable(ParentDataset(parent, found["table"], pa.ipc.read_schema(schema)), found["uuids"])

    try:
        with querying(sql, table_of, limits) as reader:
            parent.tell({"kind": "result"}, reader.schema.serialize())
            for piece in chain.from_iterable(map(pieces, reader)):
                body = packed(piece)
                if len(body) > MOST_BYTES:
                    raise InvalidArgument(f"a row of the result has more than {MOST_BYTES:,} bytes")
                parent.tell({"kind": "batch"}, body)
            parent.tell({"kind": "end"})
    except MemoryError:
        os._exit(MEMORY_EXCEEDED)
    except (IcefieldError, pa.ArrowException, OSError) as error:
        if any(name in str(error) for name in _OF_MEMORY):
            os._exit(MEMORY_EXCEEDED)
        message = str(error) if isinstance(error, IcefieldError) else f"DuckDB: {message_of(error)}"
        parent.tell({"kind": "error", "message": message})


def main() -> None:
    """Wait for a query, run it and end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for the parent
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    limits, seconds = QueryLimits(*json.loads(sys.argv[1])), float(sys.argv[2])
    parent = ParentProcess(sys.stdin.buffer, outgoing)
    duckdb.connect(":memory:").close()
    bound_memory(limits.memory + _BESIDE)
    with suppress(Empty):
        _, sql = parent.first(seconds)
        answer(parent, sql.to_pybytes().decode(), limits)
    os._exit(0)


if __name__ == "__main__":
    main()
