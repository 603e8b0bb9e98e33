"""Checks whether a task received all of its rows.

When the computation of a task's rows fails, Spark closes the stream to the Python worker. A function in ``mapInArrow``
or in a data source's writer then sees its input end as though it were complete. The two cases differ only after the
last batch: Spark sends an end marker for a complete input, and nothing otherwise. PySpark reads that marker after the
function returns, so this module peeks at it without consuming it.

An attempt that loses to another attempt may have all its rows by then. Spark closes its stream, and the attempt
continues unawares.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from icefield import FileIO
from icefield.errors import IcefieldError

_SPECULATION = "spark.speculation"


class InputCutOff(RuntimeError):
    """The computation of a task's rows failed.

    Spark reports the reason: this error only makes the writer clean up.
    """


def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a task. Raises ``InputCutOff`` at their end when more should have come."""
    yield from batches
    if _is_cut_off():
        raise InputCutOff("the input of the task was cut off: what computes its rows failed, or the task was cancelled")


def _is_cut_off() -> bool:
    """Whether nothing follows the rows. Waits for Spark to send something, or to close the stream.

    ``pyspark.worker.main(infile, outfile)`` reads the stream in this very thread, further up; outside of a Spark task
    there is no such function.
    """
    peek = getattr(_stream(), "peek", None)
    return peek is not None and not peek(1)


def _stream() -> Any:
    """The stream from Spark to the worker, or None outside of a task."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and {"infile", "outfile"} <= frame.f_locals.keys():
            return frame.f_locals["infile"]
        frame = frame.f_back
    return None


def is_contested(task: Any) -> bool:
    """Whether a task was tried before, or may run twice at the same time: files of losing attempts are then swept."""
    return task is not None and (task.attemptNumber() > 0 or task.getLocalProperty(_SPECULATION) == "true")


def take_back_if_lost(io: FileIO, locations: Sequence[str]) -> None:
    """If Spark has closed an attempt's stream, delete its files and raise ``InputCutOff``: no commit will take them."""
    if is_hung_up(_stream()):
        with suppress(IcefieldError, OSError):
            io.delete_many(list(locations))
        raise InputCutOff("Spark has hung up on the task: it was cancelled, or another attempt was through before")


def is_hung_up(stream: Any) -> bool:
    """Whether the sender has closed a stream; unread bytes may remain."""
    if not hasattr(stream, "fileno") or not hasattr(select, "poll"):  # outside of a task, or on Windows
        return False
    poll = select.poll()
    closed = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    poll.register(stream.fileno(), closed)
    return any(event & closed for _, event in poll.poll(0))
