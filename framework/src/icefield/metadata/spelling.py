"""Names that are all but spelt like a known one: what a user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Whether so many letters left out, put in, replaced or swapped with the next make one string of another."""
    if abs(len(one) - len(other)) > edits:
        return False
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    if not one or not other:
        return len(one) + len(other) <= edits
    if not edits:
        return False
    swapped = one[:2] == other[1::-1] and len(one) > 1
    return (
        within(one[1:], other[1:], edits - 1)
        or within(one[1:], other, edits - 1)
        or within(one, other[1:], edits - 1)
        or (swapped and within(one[2:], other[2:], edits - 1))
    )
