"""Names that are all but spelt like a known one: what a user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

_LONGEST: Final = 200
_SHORT: Final = 5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` differs from by a slip (one edit; two from five letters on), or None.

    Letters of the other case are no edit. Of several names the one with the fewest edits counts, then the first.
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
    """Whether all but so many letters of the longer string are in the other too, in the same order.

    So many letters left out, put in, replaced or swapped with the next make one string of the other then; a letter that
    has moved further counts as one as well.
    """
    longer = max(len(one), len(other))
    if longer - min(len(one), len(other)) > edits:
        return False
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) >= longer - edits
