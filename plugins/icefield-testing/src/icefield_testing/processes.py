"""Another process with the same plugin: it reveals code that works only between threads."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import IO, Any, Final, Self

import pytest

FORKS: Final = hasattr(os, "fork")
"""Whether this system can fork, which the checks with other processes need."""


def needs_fork() -> None:
    """Skip the check where processes cannot be forked."""
    if not FORKS:
        pytest.skip("this system cannot fork, so nothing is tried with other processes")


class AnotherProcess:
    """A forked process that makes calls on request, one after another.

    It is forked once, when no lock is held, and has the state of this process at that time. A context manager.
    """

    def __init__(self, serve: Callable[..., Any]) -> None:
        self._serve = serve

    def __enter__(self) -> Self:
        needs_fork()
        self._stacks = tempfile.TemporaryFile()
        self._here, there = Pipe()
        self._process = _forked(lambda: _serve(self._serve, self._here, there, self._stacks))
        there.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._here.close()  # the other ends when it reads that
        ended = False
        try:
            # After an error it may hang, and the watchdog would not let this process wait for it.
            ended = _status(self._process, 5.0 if kind is None else 0.0) is not None
        finally:
            if not ended:
                _kill(self._process)
            self._stacks.close()

    def ask(self, *args: Any) -> None:
        """Let the other process make a call."""
        self._here.send(args)

    def answers_within(self, seconds: float) -> bool:
        """Whether the reply to the last call came, or comes within this time."""
        return self._here.poll(seconds)

    def answer(self, seconds: float) -> Any:
        """The result of the last call; fails with the other process's stacks if the call does not end in time."""
        if not self.answers_within(seconds):
            raise AssertionError(f"another process did not end its call within {seconds:g} s\n{self._dumped()}")
        try:
            made, value = self._here.recv()
        except EOFError:
            raise AssertionError(f"another process died: {_status(self._process, 5.0)}") from None
        if not made:
            raise AssertionError(f"in another process: {value}")
        return value

    def _dumped(self) -> str:
        os.kill(self._process, signal.SIGUSR1)
        time.sleep(0.2)
        self._stacks.seek(0)
        return self._stacks.read().decode(errors="replace")


def ended(action: Callable[[], Any], seconds: float) -> int:
    """Run only an action in a forked process; return 0, its exit status, or minus the number of the signal that ended
    it.

    An exception ends the process with status 1. A process that does not end in time is killed, and the check fails with
    its stacks.
    """
    needs_fork()
    with tempfile.TemporaryFile() as dump:

        def act() -> None:
            faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
            action()

        process = _forked(act)
        status = _status(process, seconds)
        if status is None:
            os.kill(process, signal.SIGUSR1)
            time.sleep(0.2)
            _kill(process)
            dump.seek(0)
            found = dump.read().decode(errors="replace")
            raise AssertionError(f"another process did not end within {seconds:g} s\n{found}")
        return status


def ran(script: str, given: bytes, seconds: float) -> tuple[int, str]:
    """Run a script in a fresh interpreter with bytes as its input; return its exit status and its standard error.

    It can import the same modules as this process.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, "-P", script]
    limits = _write_no_core if FORKS else None
    try:
        done = subprocess.run(
            command, input=given, env=environment, timeout=seconds, capture_output=True, preexec_fn=limits
        )
    except subprocess.TimeoutExpired:
        raise AssertionError(f"another process did not end within {seconds:g} s") from None
    return done.returncode, done.stderr.decode(errors="replace")


def _forked(action: Callable[[], Any]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the other threads of a check only wait
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        # A handler of the parent's may wait: to print stacks into a full pipe, or for the threads of a JVM.
        for number in (signal.SIGALRM, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            signal.signal(number, signal.SIG_DFL)
        _write_no_core()
        action()
        status = 0
    finally:
        os._exit(status)  # whatever happened: nothing of pytest's may run here


def _write_no_core() -> None:
    """Let no abort of this process write its memory to disk: a copy of a large process takes minutes and gigabytes."""
    import resource  # noqa: PLC0415 - only where processes can be forked

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _serve(serve: Callable[..., Any], parents: Connection, mine: Connection, dump: IO[bytes]) -> None:
    parents.close()
    faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
    while True:
        try:
            args = mine.recv()
        except EOFError:
            return
        try:
            answer = True, serve(*args)
            pickle.dumps(answer)
        except BaseException:
            answer = False, traceback.format_exc()
        mine.send(answer)


def _status(process: int, seconds: float) -> int | None:
    """The exit status of a process; None if it still runs after a number of seconds."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
