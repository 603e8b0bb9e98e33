"""Which of the files that a table's metadata names may be deleted, where somebody else has written that metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

Judge = Callable[[Sequence[str]], Sequence[str]]
"""Those of some locations whose files may be deleted."""

_JUDGE: Final[ContextVar[Judge | None]] = ContextVar("icefield_deletions", default=None)


@contextmanager
def deleting_only(judge: Judge) -> Iterator[None]:
    """Within the block, in this thread, of the files that metadata names only those are deleted that ``judge`` gives.

    Files that the block itself wrote, and that nothing names, are not asked about.
    """
    token = _JUDGE.set(judge)
    try:
        yield
    finally:
        _JUDGE.reset(token)


def to_be_deleted(locations: Sequence[str]) -> Sequence[str]:
    """Those of the files that metadata names that may be deleted here: all, unless ``deleting_only`` says fewer."""
    judge = _JUDGE.get()
    return locations if judge is None else judge(locations)
