"""The record: a table of the catalog with a row for each operation that ``tend`` has carried out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import inf
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from icefield.errors import CommitStateUnknown, InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield.expressions import EqualTo, as_expression

from icefield_maintenance.tend.past import MEMORY_DAYS, RecordedPast, TendedOperation, time_of

if TYPE_CHECKING:
    from icefield import Catalog, Table

_PROPERTIES: Final = {"commit.retry.num-retries": "20"}
"""The properties of the record: several processes append to it."""

_DAY_MS: Final = 86_400_000

_GATHERING_SECONDS: Final = 10.0
"""The least time from one commit of a process to the next."""

_SHORT_SECONDS: Final = 10.0
"""The time for which a table waits until the record has been read again."""

SCHEMA: Final = pa.schema(
    [
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("uuid", pa.string()),
        pa.field("planned_requests", pa.int64()),
        pa.field("planned_bytes", pa.int64()),
        pa.field("planned_rewrite", pa.int64()),
        pa.field("measured_requests", pa.int64()),
        pa.field("measured_bytes", pa.int64()),
        pa.field("rewritten_bytes", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("owner", pa.string()),
        pa.field("message", pa.string()),
    ]
)
"""The columns of the record.

The requests and bytes, planned and measured, are the cost by which a scan of the whole table falls. ``planned_rewrite``
and ``rewritten_bytes`` are the bytes that the operation rewrites.
"""

_READ: Final = (
    "at",
    "table",
    "operation",
    "reason",
    "outcome",
    "uuid",
    "measured_requests",
    "measured_bytes",
    "rewritten_bytes",
    "seconds",
)


class TendRecord:
    """The record of a catalog, in the table ``name``; without a name, the memory of this process.

    ``past`` has every operation at once. A thread writes the table and reads it again if others have written, so a
    store that hangs holds up nothing else. It commits at most every ten seconds. If the process ends before, the
    operations since the last commit count as never done. Erasures and searches for orphans among them are repeated, and
    their bytes are missing in the budget of the day.
    """

    def __init__(self, catalog: Catalog, name: str | None, clock: Callable[[], int]) -> None:
        self.name, self.past = name, RecordedPast()
        self._catalog, self._clock = catalog, clock
        self._waiting: list[TendedOperation] = []
        self._seen: int | None = None
        self._thread: Thread | None = None
        self._begun = -inf
        self._hurry = Event()
        self._fault: Exception | None = None
        self._lock = Lock()

    def add(self, operation: TendedOperation) -> None:
        """Add an operation. Raises the error of the last write."""
        with self._lock:
            self.past.note(operation, self._clock())
            if self.name is None:
                return
            self._waiting.append(operation)
            if self._fault is not None:
                raise self._fault
            self._begin()

    def read(self, seconds: float) -> bool:
        """Read the record, and write the buffered operations; return whether this took at most ``seconds``.

        Raises errors of reads and commits. The operations still wait then.
        """
        if self.name is not None:
            with self._lock:
                self._begin()
        return self.flush(seconds)

    def refresh(self) -> None:
        """Read the record if it was read long ago. A store that hangs is waited for once, and for a short time."""
        if self.name is not None and time.monotonic() >= self._begun + _GATHERING_SECONDS:
            self.read(_SHORT_SECONDS)

    def flush(self, seconds: float) -> bool:
        """Write the operations that wait; as ``read`` otherwise."""
        while thread := self._at_work():
            self._hurry.set()
            thread.join(max(0.0, self._begun + seconds - time.monotonic()))
            if thread.is_alive():
                return False
            if self._fault is not None:
                raise self._fault
        return True

    def _at_work(self) -> Thread | None:
        with self._lock:
            if self._waiting:
                self._begin()
            return self._thread

    def _begin(self) -> None:
        if self._thread is None:
            self._fault = None
            self._hurry.clear()
            pause = max(0.0, self._begun + _GATHERING_SECONDS - time.monotonic())
            self._begun = time.monotonic() + pause
            thread = Thread(target=self._exchange, args=(pause,), name="icefield-record", daemon=True)
            thread.start()  # it ends under the lock, which the caller holds
            self._thread = thread

    def _exchange(self, pause: float) -> None:
        """Write the operations that wait after a pause, and read the record if others have changed it."""
        if self._hurry.wait(pause):
            self._begun = time.monotonic()
        with self._lock:
            rows, self._waiting = self._waiting, []
        fault: Exception | None = None
        fresh: RecordedPast | None = None
        try:
            table = self._written(rows)
            snapshot = None if table is None else table.current_snapshot()
            before = None if snapshot is None else snapshot.parent_snapshot_id if rows else snapshot.snapshot_id
            rows = []
            if table is not None and snapshot is not None and before != self._seen:
                fresh = self._past_in(table)
            self._seen = None if snapshot is None else snapshot.snapshot_id
        except CommitStateUnknown as error:
            fault, rows = error, []
        except Exception as error:
            fault = error
        with self._lock:
            self._thread, self._fault = None, fault
            self._waiting = rows + self._waiting
            if fresh is not None:
                for each in self._waiting:
                    fresh.note(each, self._clock())
                self.past = fresh
            if self._waiting and fault is None:  # they were added during the write
                self._begin()

    def _written(self, rows: list[TendedOperation]) -> Table | None:
        """The newest version of the table, with further rows; None if it is missing, and there are none."""
        assert self.name is not None
        try:
            table = self._catalog.load_table(self.name)
        except (NoSuchTable, NoSuchNamespace):
            if not rows:
                return None
            self._catalog.create_namespace_if_not_exists(tuple(self.name.split("."))[:-1])
            table = self._catalog.create_table_if_not_exists(self.name, SCHEMA, properties=_PROPERTIES)
        if rows:
            table.append(pa.Table.from_pylist([asdict(each) for each in rows], schema=SCHEMA))
        return table

    def _past_in(self, table: Table) -> RecordedPast:
        past, now_ms = RecordedPast(), self._clock()
        for each in recorded_operations(table, now_ms):
            past.note(each, now_ms)
        return past


def recorded_operations(
    record: Table, now_ms: int, *, days: int = MEMORY_DAYS, of: str | None = None
) -> Iterator[TendedOperation]:
    """The operations of so many days, and erasures and searches for orphans of any age, in the order of time.

    ``of`` limits them to a table, and gives all of their columns. Raises ``InvalidArgument`` for another table.
    """
    names = _READ if of is None else SCHEMA.names
    if missing := [each for each in names if each not in record.schema().column_names]:
        name = ".".join(record.name())
        raise InvalidArgument(f"table {name:.100} is no record of maintenance: it has no column {missing[0]}")
    since = time_of(now_ms - days * _DAY_MS).isoformat()
    wanted = as_expression(f"at >= '{since}' or operation in ('erase', 'remove_orphan_files')")
    found = record.scan(wanted if of is None else wanted & EqualTo("table", of), selected_fields=tuple(names))
    for batch in found.to_arrow().sort_by("at").to_batches():
        for row in batch.to_pylist():
            yield TendedOperation(**{name: value for name, value in row.items() if value is not None})
