"""The retries of a commit, and of status checks after a lost reply."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from icefield.metadata.properties import (
    COMMIT_RETRY_MAX_WAIT_MS,
    COMMIT_RETRY_MIN_WAIT_MS,
    COMMIT_RETRY_NUM_RETRIES,
    COMMIT_RETRY_TOTAL_TIMEOUT_MS,
    COMMIT_STATUS_CHECK_MAX_WAIT_MS,
    COMMIT_STATUS_CHECK_MIN_WAIT_MS,
    COMMIT_STATUS_CHECK_NUM_RETRIES,
    COMMIT_STATUS_CHECK_TOTAL_TIMEOUT_MS,
    get_int,
)

_DOUBLINGS = 5

_OFTEN = 8
"""The number of conflicts after which the back-off shrinks."""

_LEAST = 4
"""The lower bound of a shrinking back-off, in multiples of the first interval."""

_LONGEST_WAIT_MS = 600_000
"""The longest pause that a table's properties can state: their writer must not stop a process for years."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of retries and their back-off in milliseconds, for commits or for status checks after a lost reply."""

    num_retries: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000
    total_timeout_ms: int = 1_800_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """The policy for commits, from the table properties ``commit.retry.*``."""
        return cls(
            num_retries=get_int(properties, COMMIT_RETRY_NUM_RETRIES),
            min_wait_ms=get_int(properties, COMMIT_RETRY_MIN_WAIT_MS),
            max_wait_ms=get_int(properties, COMMIT_RETRY_MAX_WAIT_MS),
            total_timeout_ms=get_int(properties, COMMIT_RETRY_TOTAL_TIMEOUT_MS),
        )

    @classmethod
    def of_status_checks(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """The policy for status checks after a lost reply, from the table properties ``commit.status-check.*``."""
        return cls(
            num_retries=get_int(properties, COMMIT_STATUS_CHECK_NUM_RETRIES),
            min_wait_ms=get_int(properties, COMMIT_STATUS_CHECK_MIN_WAIT_MS),
            max_wait_ms=get_int(properties, COMMIT_STATUS_CHECK_MAX_WAIT_MS),
            total_timeout_ms=get_int(properties, COMMIT_STATUS_CHECK_TOTAL_TIMEOUT_MS),
        )

    def wait_seconds(
        self,
        attempt: int,
        draw: Callable[[float, float], float] = random.uniform,
        *,
        attempt_seconds: float = 0.0,
    ) -> float:
        """How long to pause after failed attempt ``attempt`` (from 1): exponential, with full jitter.

        Full jitter spreads the losers of a conflict over the whole interval; otherwise they would conflict again. The
        interval doubles five times: 32 times the duration of an attempt keeps some dozens of writers apart. After eight
        conflicts it shrinks to a half, a third, and so on: a writer that lost several times uses a shorter back-off, so
        that the others do not starve it. It never falls below four times the first interval, because a crowd of such
        writers would keep the processors busy with failing attempts. ``attempt_seconds`` is the measured duration of an
        attempt. Intervals that are shorter than an attempt do not spread the attempts. Measured in
        ``benchmarks/bench_contention.py``; see docs/internals/commit.md.
        """
        scale = max(self.min_wait_ms, attempt_seconds * 500) if self.min_wait_ms else 0
        longest = scale * 2 ** min(attempt - 1, _DOUBLINGS)
        if attempt > _OFTEN:
            longest = max(scale * _LEAST, longest / (1 + attempt - _OFTEN))
        return draw(0, min(self.max_wait_ms, _LONGEST_WAIT_MS, longest)) / 1000

    def gives_up(self, attempt: int, elapsed_seconds: float) -> bool:
        """Whether failed attempt ``attempt``, of those that count, was the last."""
        return attempt > self.num_retries or elapsed_seconds * 1000 >= self.total_timeout_ms
