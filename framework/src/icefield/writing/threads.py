"""A thread pool that encodes files, keeps the first error and counts the bytes of pending jobs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Condition


class Threads:
    """Runs jobs in the order they come. After an error no further job begins."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="icefield-write")
        self._changed = Condition()
        self._in_flight = 0
        self._retained = 0
        self._error: BaseException | None = None

    @property
    def used(self) -> int:
        """The bytes of unfinished jobs, and the bytes that jobs retain (``retain``)."""
        return self._in_flight + self._retained

    def retain(self, size: int) -> None:
        """Count bytes that stay in memory after the calling job; a negative size releases bytes."""
        with self._changed:
            self._retained += size

    def submit(self, job: Callable[[], None], size: int) -> Future[None]:
        """Hand over a job that holds ``size`` bytes. Raises the error of an earlier job."""
        self.check()
        with self._changed:
            self._in_flight += size
        return self._pool.submit(self._run, job, size)

    def _run(self, job: Callable[[], None], size: int) -> None:
        try:
            if self._error is None:
                job()
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
        finally:
            with self._changed:
                self._in_flight -= size
                self._changed.notify_all()

    def wait_below(self, size: int) -> None:
        """Wait until at most ``size`` bytes are used, or no job is left. Raises the error of a job."""
        with self._changed:
            while self._in_flight and self.used > size and self._error is None:
                self._changed.wait()
        self.check()

    def check(self) -> None:
        """Raise the error of a job, if there is one."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Wait for every job. Raises the error of one."""
        self._pool.shutdown(wait=True)
        self.check()

    def cancel(self) -> None:
        """Start no further job, and wait for running ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)
