"""Attempts at the tasks of a job, as Spark reports them: whether an attempt lost, and whether one still runs."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

SECONDS_TO_KILL: Final = 5.0
"""After so long Spark has killed the Python worker of a task that is to end, or will not have to.

It looks every two seconds whether a task is to end, and gives the worker two more (``spark.python.task.killTimeout``).
"""

_AT_MOST: Final = 30.0
_ONE_REQUEST: Final = 0.5
"""Seconds in which the store may still carry out the last request of a killed worker."""


class Attempts:
    """The attempts at the tasks of the jobs that this thread starts while it is entered."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = getattr(session, "_sc", None)  # not there with Spark Connect
        self._tag = f"icefield-{uuid4()}"

    def __enter__(self) -> Attempts:
        if self._context is not None:
            self._context.addJobTag(self._tag)
        return self

    def __exit__(self, *_: object) -> None:
        if self._context is not None:
            self._context.removeJobTag(self._tag)

    def end(self) -> None:
        """Stop all attempts after a failure, and wait until they have ended.

        If Spark does not report them, wait for as long as that may take.
        """
        if self._context is not None:
            with suppress(Py4JError):
                self._context.cancelJobsWithTag(self._tag)
        if self.any_lost() is None:
            time.sleep(SECONDS_TO_KILL)

    def any_lost(self) -> bool | None:
        """Wait until no attempt runs, and return whether one of them lost; None if Spark does not report it.

        A task ends after its worker, or closes the connection to it. A sweep finds files published before that; an
        attempt that publishes later deletes its own files (``ending``).
        """
        if self._context is None:
            return None
        deadline = time.monotonic() + _AT_MOST
        try:
            stages = self._stages()
            while any(stage.numActiveTasks() for stage in stages) and time.monotonic() < deadline:
                time.sleep(0.05)
                stages = self._stages()
            lost = any(stage.numFailedTasks() or stage.numKilledTasks() or stage.attemptId() for stage in stages)
        except Py4JError:  # Spark's listeners are too far behind
            return None
        if lost:
            time.sleep(_ONE_REQUEST)
        return lost

    def rows_written(self) -> int:
        """How many rows the attempts have written to files, as far as Spark knows, including losing attempts."""
        try:
            return sum(int(stage.outputRecords()) for stage in self._stages()) if self._context is not None else 0
        except Py4JError:
            return 0

    def _stages(self) -> list[Any]:
        """Spark's statistics of the stages that have run, after Spark has processed all events so far."""
        spark = self._context._jsc.sc()
        spark.listenerBus().waitUntilEmpty()
        store, tracker = spark.statusStore(), self._context.statusTracker()
        jobs = [tracker.getJobInfo(number) for number in spark.statusTracker().getJobIdsForTag(self._tag)]
        numbers = {number for job in jobs if job is not None for number in job.stageIds}
        return [store.lastStageAttempt(number) for number in numbers if tracker.getStageInfo(number) is not None]
