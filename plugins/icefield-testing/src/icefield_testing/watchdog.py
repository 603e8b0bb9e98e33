"""A watchdog over checks: a check that hangs fails with the stacks of all threads, and the run continues."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import pytest

_REPEAT_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 30.0
_SECONDS_TO_END: Final = 10.0


class Hung(BaseException):
    """Raised in the main thread by a check that does not end; no handler for errors may catch it."""


@contextmanager
def watched(seconds: float, what: str) -> Iterator[None]:
    """Fail with the stacks of all threads if the block takes longer.

    A signal ends any wait of the main thread in Python. If that is not possible (a library that waits and ignores
    signals, another thread than the main one, a system without this signal), the process ends after a grace period,
    with the stacks on stderr: a run that fails is better than a run that hangs.
    """
    ended = threading.Event()
    threading.Thread(target=_end_process_unless, args=(ended, seconds, what), daemon=True).start()
    try:
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
            with _interrupted_after(seconds, what):
                yield
        else:
            yield
    finally:
        ended.set()


def stacks() -> str:
    """The current stack of every thread of this process, the innermost call first."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


@contextmanager
def _interrupted_after(seconds: float, what: str) -> Iterator[None]:
    found: list[str] = []
    armed = True

    def bark(*_: Any) -> None:
        if not found:
            found.append(stacks())
        if armed:
            raise Hung(what)

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, bark)
    # The signal is repeated, since leaving a block (such as a pool of hanging threads) may also wait.
    outer, _ = signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT_SECONDS)
    try:
        yield
    except Hung:
        armed = False
        _end_with_the_run()
        raise _failure(seconds, what, found[0]) from None
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:  # of a check that runs this one, or of a plugin of pytest's
            left = max(0.001, outer - (time.monotonic() - began))
            signal.setitimer(signal.ITIMER_REAL, left, _REPEAT_SECONDS)


def _failure(seconds: float, what: str, found: str) -> BaseException:
    return pytest.fail.Exception(
        f"{what} did not end within {seconds:g} s (`check_seconds`): look below for the lock or the reply that each "
        f"thread waits for\n{found}",
        pytrace=False,
    )


def _end_process_unless(ended: threading.Event, seconds: float, what: str) -> None:
    if not ended.wait(seconds + _GRACE_SECONDS):
        print(f"{what} did not end within {seconds:g} s, and nothing ends it", file=sys.__stderr__, flush=True)
        _abort()


def _abort() -> NoReturn:
    """End this process; its stacks go to the output that pytest or another user of faulthandler has set."""
    if not faulthandler.is_enabled():
        faulthandler.enable()
    os.abort()


_ends_with_the_run = False


def _end_with_the_run() -> None:
    """Make sure that hanging threads do not keep the interpreter from ending."""
    global _ends_with_the_run
    if _ends_with_the_run:
        return
    _ends_with_the_run = True
    process = os.getpid()

    def end() -> None:
        main = threading.main_thread()
        while main.is_alive() and not _waits_for_threads(main):
            time.sleep(_REPEAT_SECONDS)
        time.sleep(_SECONDS_TO_END)  # others may end orderly; who hung waits for ever
        if os.getpid() == process:
            os._exit(1)  # a check has failed

    threading.Thread(target=end, name="icefield-kit-end", daemon=True).start()


def _waits_for_threads(main: threading.Thread) -> bool:
    """Whether the main thread has finished and waits for other threads, as of a pool: it still counts as alive."""
    collects = gc.isenabled()
    gc.disable()  # a collection within the next call waits for a lock that the call holds (python/cpython#106883)
    try:
        frame = sys._current_frames().get(main.ident or 0)
    finally:
        if collects:
            gc.enable()
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame is not None and frame.f_code is threading._shutdown.__code__  # type: ignore[attr-defined]
