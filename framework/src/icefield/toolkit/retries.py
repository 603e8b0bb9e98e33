"""Retries of a request, with growing, random waits, and for a bounded time.

The plugins for object stores share this module. Their clients make a request once, and only ``persist`` retries it, so
that the response to a retry never hides a lost response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from icefield.toolkit.backoff import Backoff
from icefield.toolkit.options import whole_number

__all__ = ["RetryLimits", "persist", "together"]

T = TypeVar("T")


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
