"""Errors of Icefield on their way through Spark, which brings them from a worker to the driver as a string."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pyarrow as pa
from icefield import errors
from icefield.errors import IcefieldError
from pyspark.errors import PySparkException

# The last line of a traceback, or a line that Spark prefixes with its own words. Errors of Icefield are one line.
_LAST_LINE = re.compile(r"^(?:.*thrown from the Python worker: )?icefield\.errors\.(\w+): (.+)$", re.MULTILINE)
_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def cause_alone() -> Iterator[None]:
    """A context for work in Spark's Python workers: errors of Icefield reach the driver without a stack trace.

    The message of such an error states the problem and its remedy; a stack trace through this package adds nothing.
    Spark looks at the environment when it writes an error, and ends the worker then.
    """
    try:
        yield
    except IcefieldError:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise


def with_cause_alone(
    task: Callable[[Any, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[[Any, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow`` that runs within ``cause_alone``."""

    @wraps(task)
    def run(self: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with cause_alone():
            yield from task(self, batches)

    return run


@contextmanager
def as_raised() -> Iterator[None]:
    """A context for jobs on the driver: an error of Icefield in a task is raised again as itself."""
    try:
        yield
    except PySparkException as failure:
        error = original(failure)
        if error is None:
            raise
        raise error from failure


def original(failure: PySparkException) -> IcefieldError | None:
    """The error that a task raised, if it was one of Icefield's; only its type and message arrive, not its data."""
    found = _LAST_LINE.findall(str(failure))
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, IcefieldError) else None


def original_in(failure: Exception) -> IcefieldError | None:
    """The error of a call from Spark into the driver, if it is a cause of Spark's error."""
    if isinstance(failure, PySparkException) and (error := original(failure)) is not None:
        return error
    if "[MERGE_CARDINALITY_VIOLATION]" in str(failure):
        return errors.InvalidArgument(
            "several rows of the source match one row of the table, so that it is not clear what becomes of it: MERGE "
            "takes one"
        )
    cause = getattr(failure, "_origin", None) or getattr(failure, "java_exception", None)
    while cause is not None:
        found = _LAST_LINE.search(str(cause.toString()))
        if found is not None:
            kind = getattr(errors, found[1], None)
            if isinstance(kind, type) and issubclass(kind, IcefieldError):
                return kind(str(cause.getMessage()))
        cause = cause.getCause()
    return None
