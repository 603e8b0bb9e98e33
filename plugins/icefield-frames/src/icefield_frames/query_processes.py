"""Queries that somebody else wrote, each in a process of its own, which is ended at the limits of the query."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import astuple
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from icefield.errors import IcefieldError, InvalidArgument

from icefield_frames.duckdb_queries import QueryLimits, QueryTable
from icefield_frames.duckdb_relations import query_table
from icefield_frames.libraries import library
from icefield_frames.query_messages import MEMORY_EXCEEDED, MOST_BYTES, Message, packed, pieces, receive, send, unpacked

ScanOf: TypeAlias = Callable[[tuple[str, ...]], Any]

_KEPT_VARIABLES: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")
"""The environment of a process: what finds libraries, and what texts and times depend on."""

_IDLE_SECONDS: Final = 300.0
"""The time for which a process waits for a query."""

_MOST_LEFT: Final = 64
"""The number of ended queries that may still read a table, as storage may not answer. Beyond it no query starts.

Each has a thread, which cannot be ended; its process is ended.
"""


class QueriesBusy(IcefieldError):
    """Raised when as many queries run as may run at the same time."""

    retryable = True


class QueryProcesses:
    """Processes that run queries within limits, and some at the same time.

    The process of a query has no credentials, and opens no file and no connection. This process authorizes and reads
    the tables, and sends the columns and rows that DuckDB asks for. After the first query, one further process waits
    for the next one. ``limits.memory`` does not count what the process had at its start.
    """

    def __init__(self, limits: QueryLimits, at_once: int) -> None:
        self.limits = limits
        self._queries = threading.BoundedSemaphore(at_once)
        self._reads = threading.BoundedSemaphore(at_once + _MOST_LEFT)
        self._lock = threading.Lock()
        self._waiting: tuple[subprocess.Popen[bytes], float] | None = None

    def __del__(self) -> None:
        """End the process that waits: Python keeps a child that is not ended, and with it the open stream to it."""
        if waiting := getattr(self, "_waiting", None):
            _end(waiting[0])

    @contextmanager
    def querying(self, sql: str, scan_of: ScanOf, gone: Future[None] | None = None) -> Iterator[pa.RecordBatchReader]:
        """The result of a query, batch by batch, as long as the context lasts.

        ``scan_of`` gives the scan of a table by its name, in another thread. The query ends when ``gone`` is done:
        nobody waits for it then.

        Raises ``InvalidArgument`` for other statements than one query, for errors of DuckDB, and for a query beyond its
        limits, ``QueriesBusy``, ``MissingPlugin`` if DuckDB is not installed, and the errors of ``scan_of``.
        """
        library("duckdb", "sql", own="icefield_frames.duckdb_queries")
        end = time.monotonic() + self.limits.seconds
        _take(self._queries)
        try:
            query = self._begun(sql, scan_of, end)
            if gone is not None:
                gone.add_done_callback(lambda _: query.stop())
            try:
                yield pa.RecordBatchReader.from_batches(query.schema(), query.batches())
            finally:
                query.stop()
        finally:
            self._queries.release()

    def _begun(self, sql: str, scan_of: ScanOf, end: float) -> _Query:
        _take(self._reads)
        try:
            query = _Query(self._process(), scan_of, self.limits, end)
            threading.Thread(target=self._serve, args=(query, sql), name="icefield-query", daemon=True).start()
        except BaseException:
            self._reads.release()
            raise
        return query

    def _serve(self, query: _Query, sql: str) -> None:
        """Answer the process of a query to its end: for a table that is read slowly, this is after its time."""
        try:
            query.serve(sql)
        finally:
            self._reads.release()
        with self._lock:
            if self._waiting is None:
                self._waiting = self._started()

    def _process(self) -> subprocess.Popen[bytes]:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            process, until = waiting
            if process.poll() is None and time.monotonic() < until:
                return process
            _end(process)
        return self._started()[0]

    def _started(self) -> tuple[subprocess.Popen[bytes], float]:
        """A new process, and the time until which it surely waits."""
        given = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        limits = json.dumps(astuple(self.limits))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "icefield_frames.query_program", limits, str(_IDLE_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**given, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return process, time.monotonic() + _IDLE_SECONDS - 30


def _take(slots: threading.Semaphore) -> None:
    """Take a slot, or raise ``QueriesBusy`` if none is free within a second."""
    if not slots.acquire(timeout=1):
        raise QueriesBusy("other queries are running; send yours again later")


class _Query:
    """A query that runs. One thread answers its process, and another one takes the result."""

    def __init__(self, process: subprocess.Popen[bytes], scan_of: ScanOf, limits: QueryLimits, end: float) -> None:
        self._process = process
        self._scan_of = scan_of
        self._limits = limits
        self._end = end
        self._found: SimpleQueue[pa.Schema | pa.RecordBatch | BaseException | None] = SimpleQueue()
        self._room = threading.Semaphore(2)  # what nobody has taken yet
        self._is_stopped = False
        self._tables: list[QueryTable] = []
        self._streams: dict[int, Generator[pa.RecordBatch]] = {}
        self._numbers = count()

    # -- the side of the result -----------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The columns of the result. Raises the error of the query."""
        return self._next()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the result. Raises the error of the query."""
        while (batch := self._next()) is not None:
            yield batch

    def stop(self) -> None:
        """End the process. The thread that answers it ends after its current read."""
        self._is_stopped = True
        self._process.kill()
        self._room.release()
        self._found.put(InvalidArgument("the query was stopped"))

    def _next(self) -> Any:
        try:
            found = self._found.get(timeout=max(0.0, self._end - time.monotonic()))
        except Empty:
            raise InvalidArgument(f"the query was stopped after {self._limits.seconds:g} s") from None
        self._room.release()
        if isinstance(found, BaseException):
            raise found
        return found

    # -- the side of the process ----------------------------------------------------------------------------------

    def serve(self, sql: str) -> None:
        """Send the query to the process, and answer its questions until it ends."""
        try:
            head, body = self._exchanged(({}, sql.encode()))
            while not self._is_stopped and head["kind"] != "end":
                head, body = self._exchanged(self._answer(head, body))
            self._found.put(None)
        except BaseException as error:
            self._found.put(error)
        finally:
            for stream in self._streams.values():
                stream.close()
            _end(self._process)

    def _exchanged(self, message: tuple[dict[str, Any], bytes | pa.Buffer] | None) -> Message:
        """Send a message, if there is one, and return the next one of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            if message is not None:
                send(self._process.stdin, *message)
            return receive(self._process.stdout, MOST_BYTES)
        except (EOFError, OSError, ValueError) as error:
            _end(self._process)
            if self._is_stopped:
                raise InvalidArgument("the query was stopped") from error
            memory = f"{self._limits.memory / 1_000_000:,.0f} MB"
            if self._process.returncode == MEMORY_EXCEEDED:
                raise InvalidArgument(f"the query was stopped: it needs more memory than {memory}") from error
            raise InvalidArgument(
                f"the query ended its process: it needs more memory than {memory}, or is nested too deeply"
            ) from error

    def _answer(self, head: dict[str, Any], body: pa.Buffer) -> tuple[dict[str, Any], bytes | pa.Buffer] | None:
        """The answer to a message of the process, if it is a question."""
        for left in head.get("left", ()):
            if stream := self._streams.pop(left, None):
                stream.close()
        match head["kind"]:
            case "table":
                table = query_table(self._scan_of(tuple(map(str, head["name"]))))
                self._tables.append(table)
                return {"table": len(self._tables) - 1, "uuids": table.uuids}, table.dataset.schema.serialize()
            case "scan":
                row_filter = pc.Expression._deserialize(body) if body.size else None
                scanner = self._tables[head["table"]].dataset.scanner(columns=head["columns"], filter=row_filter)
                number = next(self._numbers)
                self._streams[number] = _pieces(scanner)
                return self._batch(number)
            case "next":
                return self._batch(head["stream"])
            case "error":
                raise InvalidArgument(str(head["message"]))
            case "result":
                self._give(pa.ipc.read_schema(body))
            case "batch":
                self._give(_valid(unpacked(body)))
        return None

    def _batch(self, number: int) -> tuple[dict[str, Any], bytes | pa.Buffer]:
        batch = next(self._streams[number], None)
        kind, body = ("end", b"") if batch is None else ("batch", packed(batch))
        return {"kind": kind, "stream": number}, body

    def _give(self, found: pa.Schema | pa.RecordBatch) -> None:
        self._room.acquire()
        self._found.put(found)


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of the process, which may hold anything. Raises ``InvalidArgument``."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidArgument(f"the result has a value that Arrow does not hold: {error}") from error
    return batch


def _pieces(scanner: ds.Scanner) -> Generator[pa.RecordBatch]:
    with scanner.to_reader() as reader:
        for batch in reader:
            yield from pieces(batch)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and wait for its end."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            stream.close()  # type: ignore[union-attr]
    process.wait()
