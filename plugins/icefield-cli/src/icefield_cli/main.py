"""The console script ``icefield``: the handling of interrupts and streams, before anything else is imported.

An interrupt always ends the process with one line and status 130. While Icefield is being imported, and after the
command, it ends the process at once, since there is nothing to clean up. In between it raises ``KeyboardInterrupt``, so
that the command cleans up.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 1 for an error, 2 for wrong usage, 130 for an interrupt.

    Without ``arguments`` it reads the process's arguments, and prepares the streams and signals of the process.
    """
    if arguments is not None:
        return _run(arguments)
    signal.signal(signal.SIGINT, _end)
    sys.unraisablehook = _unraisable
    gc.set_threshold(20_000, 20, 20)  # imports make many objects and no garbage
    if not _has_output():
        print_error("the standard output is closed, and nothing was done")
        return 1
    status = _INTERRUPTED
    atexit.register(lambda: _end_threads(status))  # before all imports, so that it runs after the handlers of others
    try:
        try:
            command_line = import_module("icefield_cli.command_line")
            signal.signal(signal.SIGINT, signal.default_int_handler)
            status = command_line.run(None)
        finally:
            signal.signal(signal.SIGINT, _end)
    except KeyboardInterrupt:  # where the command was not looking
        print_error("interrupted")
    except SystemExit as ended:  # the help or wrong usage
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
    return status


def print_error(message: str) -> None:
    """Print a line on the standard error, and ignore a failure to write it."""
    with suppress(OSError, ValueError):
        print(f"icefield: {message}", file=sys.stderr, flush=True)


def _run(arguments: Sequence[str]) -> int:
    status: int = import_module("icefield_cli.command_line").run(arguments)
    return status


def _has_output() -> bool:
    """Return whether there is a standard output, and open the null device for every standard stream that is closed.

    Otherwise a file that is opened later would take the number of a closed stream, and receive its output.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    has_output = sys.stdout is not None
    if not has_output:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    return has_output


def _end(number: int, frame: Any) -> None:
    """Exit at once: there is nothing to clean up, and Python would print a traceback of the interrupted code."""
    print_error("interrupted")
    os._exit(_INTERRUPTED)


def _end_threads(status: int) -> None:
    """Exit at once if threads still work. Arrow aborts a process in which Python ends one of its threads."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def _unraisable(unraisable: Any) -> None:
    """Raise an interrupt again if it came in code that cannot raise, such as a destructor."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    while True:
        again = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident or 0, signal.SIGINT))
        again.daemon = True
        try:
            again.start()
            return
        except KeyboardInterrupt:  # it came while this was waiting for the timer, where nothing can be raised either
            continue


if __name__ == "__main__":
    sys.exit(main())
