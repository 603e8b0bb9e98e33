"""A guard for the deletion of files that a table's metadata names, if another party has written the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

Judge = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns the given locations without the files that must not be deleted."""

_JUDGE: Final[ContextVar[Judge | None]] = ContextVar("icefield_deletions", default=None)


@contextmanager
def deleting_only(judge: Judge) -> Iterator[None]:
    """Within the block, in this thread, delete a file that metadata names only if ``judge`` returns its location.

    ``judge`` is not asked about files that the block itself wrote and that no metadata names.
    """
    token = _JUDGE.set(judge)
    try:
        yield
    finally:
        _JUDGE.reset(token)


def to_be_deleted(locations: Sequence[str]) -> Sequence[str]:
    """The deletable ones of some files that metadata names: all, unless ``deleting_only`` limits them."""
    judge = _JUDGE.get()
    return locations if judge is None else judge(locations)
