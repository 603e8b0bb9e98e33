"""Whether the rows that a task got were all of them.

When what computes a task's rows raises, Spark closes the stream to the Python worker, and a function in ``mapInArrow``
or in a data source's writer sees its input end as though it were whole. Only behind the rows the two differ: after the
last batch Spark sends an end marker, or nothing. PySpark reads that marker when the function is through, so that it is
looked at here and left where it is.
"""

# See docs/decisions/0087.

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa


class InputCutOff(RuntimeError):
    """What computes the rows of a task failed, and Spark reports why: this error is for clean-up only."""


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
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and {"infile", "outfile"} <= frame.f_locals.keys():
            peek = getattr(frame.f_locals["infile"], "peek", None)
            return peek is not None and not peek(1)
        frame = frame.f_back  # type: ignore[assignment]
    return False
