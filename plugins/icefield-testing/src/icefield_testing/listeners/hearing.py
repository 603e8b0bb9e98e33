"""Lets a listener hear events as a catalog does, and collects its errors, which a catalog only logs."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from icefield import Plugins
from icefield.storage import FileIO

_LOGGER: Final = "icefield.plugins.listeners"


class Hearing(logging.Handler):
    """A catalog's listeners: the plugin under test alone, with its properties. A context manager.

    ``printed`` is the output and the log records at any level, meanwhile. Without ``prints`` it is empty, and the root
    logger has no handler meanwhile, as in most programs.
    """

    def __init__(self, listener: Any, properties: Mapping[str, str], *, prints: bool = True) -> None:
        super().__init__(logging.NOTSET)
        self._prints = prints
        plugins = Plugins([listener])
        name = plugins.listing()[0].name
        given = {f"events.{name}.{key}": value for key, value in properties.items()}
        self._listeners = FileIO(plugins, given, catalog="kit").listeners
        self._failures: list[tuple[str, BaseException | None]] = []
        self._output = io.StringIO()
        self.warnings = 0
        """The number of log records so far that are warnings or errors."""

    @property
    def printed(self) -> str:
        """The output and the log so far."""
        return self._output.getvalue()

    def hear(self, events: Iterable[Any]) -> None:
        """Tell the listener of events, and raise its first error."""
        for event in events:
            self._listeners.tell(event)
            self.check(event)

    def check(self, event: Any) -> None:
        """Raise the first error of the listener."""
        if self._failures:
            said, error = self._failures[0]
            shown = f"{type(error).__name__}: {error}" if error is not None else said
            raise AssertionError(f"{shown}\nat the event {event!r}") from error

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a log record."""
        self.warnings += record.levelno >= logging.WARNING
        if record.name == _LOGGER:
            self._failures.append((record.getMessage(), record.exc_info[1] if record.exc_info else None))
        else:
            self._output.write(record.getMessage() + "\n")
        if record.exc_info:
            self._output.write(f"{record.exc_info[1]}\n")

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        root = logging.getLogger()
        if not self._prints:
            self._stack.callback(root.handlers.extend, list(root.handlers))
            root.handlers.clear()
            logging.getLogger(_LOGGER).addHandler(self)
            self._stack.callback(logging.getLogger(_LOGGER).removeHandler, self)
            return self
        self._stack.callback(root.setLevel, root.level)
        root.addHandler(self)
        root.setLevel(logging.DEBUG)
        self._stack.callback(root.removeHandler, self)
        self._stack.enter_context(contextlib.redirect_stdout(self._output))
        self._stack.enter_context(contextlib.redirect_stderr(self._output))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def state_of_the_process() -> dict[str, Any]:
    """The state that all code of the process shares: handlers, limits, the folder, the environment."""
    return {
        "the handlers of the root logger": list(logging.getLogger().handlers),
        "the level of Icefield's logger": logging.getLogger("icefield").level,
        "whether logging is disabled": logging.root.manager.disable,
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "the handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
        "the default time-out of sockets": socket.getdefaulttimeout(),
        "the working directory": os.getcwd(),
        "the environment": dict(os.environ),
        "the recursion limit": sys.getrecursionlimit(),
    }
