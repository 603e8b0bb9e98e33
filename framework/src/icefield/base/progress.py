"""The setting of ``icefield.progress``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PROGRESS = ContextVar[bool | Callable[[Any], object] | None]("icefield_progress", default=None)
"""The argument of the innermost ``icefield.progress`` block: whether to show bars, or the function for events."""


@contextmanager
def progress(shown: bool | Callable[[Any], object] = True) -> Iterator[None]:
    """Show the progress of long calls in a block, or hide it, or call a function with each event of its calls.

    Outside of a block, ``icefield-progress`` shows bars in terminals and notebooks. The events are those of
    ``icefield_events``, such as ``OperationProgress``, in this thread. An error of the function is only logged.
    """
    token = PROGRESS.set(shown)
    try:
        yield
    finally:
        PROGRESS.reset(token)
