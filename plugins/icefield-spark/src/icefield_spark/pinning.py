"""Frames that are read more than once, and must give the same rows each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame

from icefield_spark.failures import as_raised
from icefield_spark.jvm import is_connected


@contextmanager
def pinned(frame: DataFrame) -> Iterator[DataFrame | None]:
    """A frame of the current rows of another frame, while the context lasts; None if Spark cannot keep them.

    It is computed once, and kept by the executors, in memory and on their disks: a local checkpoint. When an executor
    is lost with its part, reads of the frame fail. ``persist`` would be no guarantee: Spark recomputes lost parts, and
    forgets a plan when any view of it is dropped. Spark Connect has no checkpoint before 4.0.
    """
    with as_raised():
        try:
            held = frame.localCheckpoint(eager=True)
        except NotImplementedError:
            held = None
    try:
        yield held
    finally:
        if held is not None and not is_connected(frame.sparkSession):
            with suppress(Exception):  # a context that has ended has let go of it
                held._jdf.queryExecution().analyzed().rdd().unpersist(False)
