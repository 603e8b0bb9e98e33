"""Competing writers of one table under the waits of the retry policy, in simulated time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import mean

import pytest
from icefield.commit.retry_policy import RetryPolicy

FIRST, AGAIN = 0.2, 0.1
"""Seconds of a first attempt, which writes a data file, and of one that is repeated."""

STEP = 0.005


@dataclass(slots=True)
class Writer:
    """A writer that commits all the time; ``base`` is the version that its attempt began with."""

    began: float = 0.0
    until: float = FIRST
    base: int | None = 0
    losses: int = 0
    commits: int = 0
    longest: float = 0.0


def race(writers: int, seed: int, seconds: float = 200.0, pause: float | None = None) -> list[Writer]:
    """Let writers commit. With ``pause`` the first writer never waits after a conflict, and pauses between commits."""
    rng, policy, version = random.Random(seed), RetryPolicy(num_retries=10_000), 0
    everyone = [Writer() for _ in range(writers)]
    for tick in range(int(seconds / STEP)):
        now = tick * STEP
        for writer in rng.sample(everyone, writers):
            steady = pause is not None and writer is everyone[0]
            if now < writer.until:
                continue
            if writer.base is None:  # a pause is over
                writer.base, writer.until = version, now + AGAIN * rng.uniform(0.8, 1.2)
            elif writer.base == version:
                version += 1
                writer.commits += 1
                writer.longest = max(writer.longest, now - writer.began)
                writer.began, writer.losses, writer.base = now, 0, version
                writer.until = now + (pause or 0) * steady + FIRST * rng.uniform(0.8, 1.2)
            else:
                writer.losses += 1
                wait = 0.0 if steady else policy.wait_seconds(writer.losses, rng.uniform, attempt_seconds=AGAIN)
                writer.base, writer.until = None, now + wait
    for writer in everyone:
        writer.longest = max(writer.longest, seconds - writer.began)
    return everyone


@pytest.mark.slow
@pytest.mark.spec("COMMIT-06")
def test_sixteen_writers_keep_the_rate_of_one_and_none_starves() -> None:
    (alone,) = race(1, 0)
    for seed in range(2):
        together = race(16, seed)
        assert sum(writer.commits for writer in together) > 0.6 * alone.commits
        assert min(writer.commits for writer in together) > 0.2 * mean(writer.commits for writer in together)
        assert max(writer.longest for writer in together) < 30


@pytest.mark.slow
@pytest.mark.spec("COMMIT-06")
def test_a_writer_is_not_passed_by_for_long_by_one_that_commits_steadily() -> None:
    for seed in range(2):
        steady, other = race(2, seed, pause=0.05)
        assert other.commits > 0.1 * steady.commits
        assert other.longest < 15
