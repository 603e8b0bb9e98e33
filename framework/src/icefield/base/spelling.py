"""Suggestions for misspelt names: the known names that a user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

_LONGEST: Final = 200
_SHORT: Final = 5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name within one edit of ``name`` (two edits from five letters on, none for one letter), or None.

    A change of case is no edit. Of several names, the first with the fewest edits counts.
    """
    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    candidates = [other for other in known if isinstance(other, str) and other != name]
    for edits in range(1 + min(len(name) - 1, 1 if len(name) < _SHORT else 2)):
        for other in candidates:
            if within(name.lower(), other.lower(), edits):
                return other
    return None


def was_meant(name: str, known: Iterable[str]) -> str:
    """The question to put into an error about an unknown name: "; was 'x' meant?", or nothing."""
    found = nearest(name, known)
    return "" if found is None else f"; was '{found}' meant?"


def within(one: str, other: str, edits: int) -> bool:
    """Whether all but ``edits`` letters of the longer string are in the shorter one, in the same order.

    An edit leaves out, inserts or replaces a letter, or swaps it with the next; a letter that moved further counts as
    one edit, too.
    """
    longer = max(len(one), len(other))
    if longer - min(len(one), len(other)) > edits:
        return False
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) >= longer - edits
