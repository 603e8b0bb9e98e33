"""Changes of a table that are interrupted at every step: the old rows or the new ones, and no file left behind.

Only an interrupt inside the publishing step may leave files, because its outcome is unknown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from linecache import getline
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from icefield.abc import OutputStream
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.commit import TableHandle
from icefield.errors import CommitStateUnknown
from tables import Around, handle_of, ids, new_table, orphans, rows, state_of, strategy_of

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
OLD = [1, 2, 3, 11, 12]
PASSED_OVER = ("with ", "try:")
CONSTANT = re.compile(r"\s*[\w.]+ = (True|False|None)\b")
VARYING = 20
"""Lines by which two runs of one change may differ."""


def append(table: Table) -> None:
    table.append(rows([21, 22]))


def append_batches(table: Table) -> None:
    table.append(batch for number in (21, 22) for batch in rows([number]).to_batches())


def overwrite(table: Table) -> None:
    table.overwrite(rows([22]), "id = 2 or id > 10")


def delete(table: Table) -> None:
    table.delete("id = 2 or id = 11")


def upsert(table: Table) -> None:
    table.upsert(rows([2, 30], value=7.0), ["id"])


def mark(table: Table) -> None:
    table.update("id = 2 or id = 11", {"value": 5.0})


def mark_again(table: Table) -> None:
    merge = table.merge(rows([1, 12, 50], value=5.0), "id")
    merge.when_matched_delete("id = 1").when_matched_update_all().when_not_matched_insert_all().commit()


def replace_partitions(table: Table) -> None:
    table.dynamic_partition_overwrite(rows([40]))


def transact(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"changed": "yes"})
        transaction.append(rows([21]))
        transaction.delete("id = 2")
        transaction.append(rows([22]))


CHANGES = [append, append_batches, overwrite, delete, upsert, mark, mark_again, replace_partitions, transact]
ERRORS = [KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit]


class Watched:
    """A table whose strategy records whether the publishing step has begun."""

    def __init__(self, change: Any) -> None:
        modes = {f"write.{each}.mode": "merge-on-read" for each in ("update", "merge")}
        marking = {"format-version": "3" if change is mark_again else "2", **modes}
        partition_spec = ["kind"] if change is replace_partitions else None
        self.table = new_table(partition_spec, properties=marking if change in (mark, mark_again) else {})
        self.table.append(rows([1, 2, 3]))
        self.table.append(rows([11, 12], "b"))
        self.begun = False
        inner = strategy_of(self.table)
        assert inner is not None
        handle = TableHandle(handle_of(self.table).name, self.table.io, Around(inner, before=self._begin))
        self.holder = Table(handle, state_of(self.table))

    def _begin(self, attempt: int) -> None:
        self.begun = True

    def check(self, before: list[int]) -> str:
        """Old or new, whole, without files that nothing refers to."""
        self.table.refresh()
        found = ids(self.table)
        is_new = self.table.current_snapshot() != self.snapshot
        assert is_new or found == before
        if is_new:
            assert self.begun
            assert found == self.expected
        elif not self.begun:
            assert orphans(self.table) == set()
        return "new" if is_new else "unknown" if self.begun else "old"

    snapshot: Any = None
    expected: Any = None


def run(
    change: Callable[[Table], None], interrupting: Callable[[int], Any], error: type[BaseException], step: int
) -> str:
    """The result of a change interrupted at a step: "old", "new" or "unknown"; "over" when it had fewer steps."""
    made = Watched(change)
    made.expected = EXPECTED[change]
    made.snapshot = made.table.current_snapshot()
    with interrupting(step) as fired:
        try:
            change(made.holder)
        except (error, CommitStateUnknown):
            assert fired()
            made.begun = made.begun or fired() == "_publish"
        else:
            if not fired():
                return "over"
    return made.check(OLD)


def expected_of(change: Callable[[Table], None]) -> list[int]:
    made = Watched(change)
    change(made.holder)
    return ids(made.table.refresh())


EXPECTED = {change: expected_of(change) for change in CHANGES}


@contextmanager
def at_call(step: int, error: type[BaseException], *, after: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make the step-th request to the store fail in any thread, before or after it takes effect."""
    count = 0
    hit = False

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count, hit
            count += 1
            is_it = count == step
            hit = hit or is_it
            if is_it and not after:
                raise error
            result = function(*arguments, **options)
            if is_it:
                if isinstance(result, OutputStream):
                    result.abort()  # whoever is interrupted here has not begun a file
                raise error
            return result

        return call

    sink = type(MemoryFileSystem().open_output("memory://interrupts/none"))
    with monkeypatch.context() as patching:
        for name in ("open_input", "put", "open_output", "stat", "rename"):
            patching.setattr(MemoryFileSystem, name, wrapped(getattr(MemoryFileSystem, name)))
        for name in ("write", "close"):
            patching.setattr(sink, name, wrapped(getattr(sink, name)))
        yield lambda: hit


class Lines:
    """Counts the lines of the kernel's writing and committing code in the main thread, and fails at one of them.

    The line of a ``with``, which runs again at the end of the block, and the first line of an ``__exit__`` are not
    counted. An interrupt there comes after the block and before its cleanup, and no Python code can close that gap. A
    line that is only ``try:`` is not counted either: Python does not check for interrupts at it, and CPython 3.11
    leaves it out of the line ranges of the surrounding blocks. Nor is the line below an assignment of a constant:
    Python checks for interrupts when a function begins or returns, and at jumps back. Nor is a line of a ``__del__``,
    or of what it calls: Python prints an exception there, and goes on.
    """

    PARTS = tuple(f"{os.sep}icefield{os.sep}{part}" for part in ("transaction", "writing", "commit", "catalog"))

    def __init__(self, step: int = 0, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.step, self.error = step, error
        self.count = 0
        self.hit: str | None = None

    def __enter__(self) -> Callable[[], str | None]:
        sys.settrace(self._call)
        return lambda: self.hit

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not any(part in frame.f_code.co_filename for part in self.PARTS) or in_finalizer(frame):
            return None
        return self._enter_exit if frame.f_code.co_name == "__exit__" else self._line

    def _enter_exit(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        before, line = (getline(frame.f_code.co_filename, frame.f_lineno - back) for back in (1, 0))
        if event == "line" and not line.lstrip().startswith(PASSED_OVER) and not CONSTANT.match(before):
            self.count += 1
            if self.count == self.step:
                self.hit = frame.f_code.co_name
                sys.settrace(None)
                raise self.error
        return self._line


def in_finalizer(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_interrupt_at_any_request_leaves_no_file(change, after, monkeypatch):
    outcomes = set()
    for step in range(1, 400):
        error = ERRORS[step % len(ERRORS)]
        found = run(
            change, lambda at, error=error: at_call(at, error, after=after, monkeypatch=monkeypatch), error, step
        )
        if found == "over":
            break
        outcomes.add(found)
    else:
        pytest.fail("the change never came to its end")
    assert "old" in outcomes


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_interrupt_at_any_line_leaves_no_file(change):
    lines = Lines()
    run(change, lambda _: lines, KeyboardInterrupt, 0)
    total = lines.count
    steps = range(1, total + 1) if SOAK else sorted({*range(1, total, total // 24), *range(total - 4, total + 1)})
    outcomes = {step: run(change, lambda at: Lines(at), KeyboardInterrupt, step) for step in steps}
    # The timing of other threads changes the number of lines by a few, so the change may end before the last steps.
    early = [step for step, found in outcomes.items() if found == "over" and step < total - VARYING]
    assert not early
    assert {"old", "new"} <= {*outcomes.values()} <= {"old", "new", "unknown", "over"}


def append_twice(table: Table, batches: Any) -> None:
    with table.transaction() as transaction:
        transaction.append(rows([7]))
        transaction.append(batches)


@pytest.mark.parametrize("error", ERRORS)
def test_rows_that_fail_to_come_leave_no_file(error):
    table = new_table("kind", **{"write.target-file-size-bytes": "1"})

    def given() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            yield from rows([number]).to_batches()
        raise error

    def given_in_arrow() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(rows([1]).schema, given())

    for make in (given, given_in_arrow) if error is not GeneratorExit else (given,):
        with pytest.raises(error):
            table.append(make())
        with pytest.raises(error):
            table.overwrite(make())
        with pytest.raises(error):
            table.dynamic_partition_overwrite(make())
        with pytest.raises(error):
            append_twice(table, make())
    assert orphans(table) == set()
    assert ids(table) == []
