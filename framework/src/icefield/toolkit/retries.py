"""Retries with growing, random waits, and of a request for a bounded time.

The plugins for object stores share ``persist``. Their clients make a request once, and only ``persist`` retries it, so
that the response to a retry never hides a lost response.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from icefield.toolkit.options import whole_number

T = TypeVar("T")

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
        """The longest wait before a retry; retries count from 1."""
        return min(self.least * self.growth ** min(retry - 1, _MOST_GROWTHS), self.most)

    def wait(self, retry: int) -> float:
        """The wait before a retry, counted from 1."""
        return self.longest(retry) * random.uniform(1 - self.jitter, 1)

    def waits(self, retries: int) -> Iterator[float]:
        """The waits before the given number of retries."""
        return (self.wait(retry) for retry in range(1, retries + 1))


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How often an operation is tried again, with which waits, and for how long altogether, in seconds."""

    retries: int
    min_wait: float
    max_wait: float
    total: float

    @classmethod
    def of(cls, properties: Mapping[str, str], prefix: str) -> RetryLimits:
        """Read ``<prefix>retry.num-retries``, ``.min-wait-ms``, ``.max-wait-ms`` and ``.total-timeout-ms``.

        Raises ``InvalidArgument`` for a value that cannot be used.
        """
        return cls(
            retries=whole_number(properties, f"{prefix}retry.num-retries", 6, 0),
            min_wait=whole_number(properties, f"{prefix}retry.min-wait-ms", 100, 1) / 1_000,
            max_wait=whole_number(properties, f"{prefix}retry.max-wait-ms", 5_000, 1) / 1_000,
            total=whole_number(properties, f"{prefix}retry.total-timeout-ms", 30_000, 1) / 1_000,
        )


async def persist(
    limits: RetryLimits, attempt: Callable[[], Awaitable[T]], is_transient: Callable[[Exception], bool]
) -> T:
    """The result of ``attempt``, which is retried after transient errors.

    A request without a response may have been carried out. So a later error that would otherwise mean "nothing was
    done" is not raised: the transient error before it is. ``FileExistsError`` and ``FileNotFoundError`` pass through,
    since they describe the present state, no matter which request caused it.
    """
    uncertain: Exception | None = None
    backoff = Backoff(limits.min_wait, limits.max_wait)
    try:
        async with asyncio.timeout(limits.total):
            for retry in range(limits.retries + 1):
                if retry:
                    await asyncio.sleep(backoff.wait(retry))
                try:
                    return await attempt()
                except (FileExistsError, FileNotFoundError):
                    raise
                except Exception as error:
                    if not is_transient(error):
                        raise (uncertain or error) from None
                    uncertain = error
    except TimeoutError:
        if uncertain is None:
            raise TimeoutError(f"no answer within {limits.total:g} s") from None
    assert uncertain is not None
    raise uncertain


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results; the first error cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in coroutines]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
