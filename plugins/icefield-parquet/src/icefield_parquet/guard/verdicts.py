"""A cache of checked footers, so that a file that is opened again is not checked again.

A file is opened once for each split, for its metrics and for its rows. The digest of a footer identifies it,
and only passed checks are kept. This module may go with the checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

_KEPT = 256


@dataclass(slots=True)
class FooterVerdict:
    """The passed checks of a footer: the columns with sound chunks, and whether all statistics are sound."""

    columns: set[int] = field(default_factory=set)
    statistics: bool = False


def verdict_of(footer: bytes, size: int) -> FooterVerdict:
    """The verdict on a file of ``size`` bytes with this footer.

    Callers add passed checks to it, and all threads of the process share it.
    """
    return _verdict(sha256(footer).digest(), size)


@lru_cache(maxsize=_KEPT)
def _verdict(digest: bytes, size: int) -> FooterVerdict:
    return FooterVerdict()
