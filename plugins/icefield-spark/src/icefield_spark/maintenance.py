"""Maintenance on executors: one task per work item of the kernel; planning and commits stay on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from icefield.abc import Attempt, Work, WorkRunner
from icefield.errors import IcefieldError
from pyspark import AccumulatorParam, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icefield_spark.attempts import Attempts
from icefield_spark.ending import whole
from icefield_spark.executors import dumps, shared
from icefield_spark.failures import original, with_cause_alone
from icefield_spark.workers import begin_task

if TYPE_CHECKING:  # a worker that runs other things needs neither
    from icefield import Table
    from icefield_maintenance import MaintenanceTable

T = TypeVar("T")
R = TypeVar("R")
Done = Callable[[], None]

_RESULT: Final = "item long, attempt int, result binary"
_SPECULATION: Final = "spark.speculation"


class SparkRunner(WorkRunner):
    """Does the work of maintenance in the tasks of a Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def slots(self) -> int:
        """The number of tasks that Spark runs at once, as far as Spark reports it."""
        return int(getattr(getattr(self._session, "_sc", None), "defaultParallelism", 1))

    def attempts(
        self,
        work: Work[T, R],
        items: Iterable[T],
        note: Callable[[str], None] = lambda _: None,
        *,
        keep_going: bool = False,
        done: Done | None = None,
    ) -> list[R | Exception]:
        """See ``WorkRunner.attempts``: one job with a task for each item. When it fails, no file of it stays."""
        sent = [dumps(item) for item in items]
        if not sent:
            return []
        traces, attempts = work.traces, Attempts(self._session)
        try:
            with attempts:
                rows = self._collected(dumps(work), sent, keep_going, done)
        except BaseException as failure:
            if traces is not None:
                attempts.end()
                traces.sweep()
            error = original(failure) if isinstance(failure, PySparkException) else None
            if error is None:
                raise
            raise error from failure
        found = dict[int, Any]()
        for row in rows:
            found[row.item] = pickle.loads(row.result)
        results: list[R | Exception] = [found[place] for place in range(len(sent))]
        kept = [path for each in results if not isinstance(each, Exception) for path in work.files(each)]
        if traces is not None and self._is_contested(attempts, rows):
            traces.sweep(kept)
        for path in kept:
            note(path)
        return results

    def _collected(self, work: bytes, sent: list[bytes], keep_going: bool, done: Done | None) -> list[Any]:
        """The rows of the job. Progress is known task by task, or at the end where Spark has no accumulators."""
        context = getattr(self._session, "_sc", None)  # not there with Spark Connect
        progress = None if context is None or done is None else context.accumulator(0, ItemCounter(done))
        task = WorkTask(work, shared(self._session, sent), keep_going, progress)
        try:
            rows: list[Any] = self._session.range(0, len(sent), 1, len(sent)).mapInArrow(task, _RESULT).collect()
        finally:
            if progress is not None:
                progress.accum_param.forget()  # PySpark keeps every accumulator
        if progress is None and done is not None:
            for _ in sent:
                done()
        return rows

    def _is_contested(self, attempts: Attempts, rows: list[Any]) -> bool:
        """Whether attempts have lost, or, if Spark does not say, may have lost."""
        found = attempts.any_lost()
        if found is not None:
            return found
        return any(row.attempt for row in rows) or str(self._session.conf.get(_SPECULATION, "false")).lower() == "true"


def maintenance_of(session: SparkSession, table: Table) -> MaintenanceTable:
    """The maintenance of a table, with its work done by Spark."""
    return table.maintenance.on(SparkRunner(session))


class WorkTask:
    """The function for ``mapInArrow``: the number of an item in, its result out."""

    def __init__(self, work: bytes, items: Any, keep_going: bool, progress: Any) -> None:
        self._work = work
        self._items = items
        self._keep_going = keep_going
        self._progress = progress

    @with_cause_alone
    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        task = TaskContext.get()
        work: Work[Any, Any] = pickle.loads(self._work)
        items = getattr(self._items, "value", self._items)
        for batch in whole(numbers):
            for number in batch.column(0).to_pylist():
                attempt = Attempt(number + 1, 0 if task is None else task.taskAttemptId(), threads=1)
                try:
                    result = work.do(pickle.loads(items[number]), attempt)
                except (IcefieldError, OSError) as error:
                    if not self._keep_going:
                        raise
                    result = error
                if self._progress is not None:
                    self._progress.add(1)
                columns = {
                    "item": pa.array([number], pa.int64()),
                    "attempt": pa.array([0 if task is None else task.attemptNumber()], pa.int32()),
                    "result": pa.array([pickle.dumps(result)], pa.binary()),
                }
                yield pa.RecordBatch.from_pydict(columns)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


class ItemCounter(AccumulatorParam[int]):
    """Counts items, and on the driver calls a function for each finished item. Its pickled copies lack the function."""

    def __init__(self, done: Done | None = None) -> None:
        self._done = done

    def forget(self) -> None:
        """Make no further calls."""
        self._done = None

    def zero(self, value: int) -> int:
        return 0

    def addInPlace(self, value1: int, value2: int) -> int:  # noqa: N802 -- Spark's name
        if self._done is not None:
            for _ in range(value2):
                self._done()
        return value1 + value2

    def __reduce__(self) -> tuple[Any, ...]:
        return ItemCounter, ()
