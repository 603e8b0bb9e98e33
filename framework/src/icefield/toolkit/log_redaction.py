"""Redact credentials from logs: the DEBUG messages of a library about a plugin's own requests are dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_own: ContextVar[bool] = ContextVar("icefield_own_request", default=False)
_watched: dict[tuple[str, ...], int] = {}
"""The number of all loggers when those of the packages were last looked for."""


def _may_be_shown(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG or not _own.get()


@contextmanager
def without_debug_log(*packages: str) -> Iterator[None]:
    """A context in which these packages log no DEBUG message: such messages hold headers, answers and tokens.

    Messages about requests of others stay, in other threads and tasks too. Levels above DEBUG are kept.
    """
    known = logging.root.manager.loggerDict
    if _watched.get(packages) != len(known):  # each request comes here, and loggers are seldom made
        names = list(known)
        for name in names:
            if name.partition(".")[0] in packages:
                logging.getLogger(name).addFilter(_may_be_shown)  # adds a filter once
        _watched[packages] = len(names)
    token = _own.set(True)
    try:
        yield
    finally:
        _own.reset(token)
