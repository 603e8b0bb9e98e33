"""How long to wait before something is tried again: waits that grow, with a random part taken off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Backoff"]

_MOST_GROWTHS: Final = 64
"""The number of growths after which a wait has reached any limit; 2 ** 1,024 would be no float."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of waits, in seconds: ``least`` first, each ``growth`` times the previous one, ``most`` at most.

    ``jitter`` is the random part of a wait, from 0 (none) to 1 (all of it), so that callers that failed together do not
    all return together.
    """

    least: float
    most: float
    growth: float = 2.0
    jitter: float = 0.5

    def longest(self, retry: int) -> float:
        """The wait before a retry, counted from 1, without anything taken off."""
        return min(self.least * self.growth ** min(retry - 1, _MOST_GROWTHS), self.most)

    def wait(self, retry: int) -> float:
        """The wait before a retry, counted from 1."""
        return self.longest(retry) * random.uniform(1 - self.jitter, 1)

    def waits(self, retries: int) -> Iterator[float]:
        """The waits before the given number of retries."""
        return (self.wait(retry) for retry in range(1, retries + 1))
