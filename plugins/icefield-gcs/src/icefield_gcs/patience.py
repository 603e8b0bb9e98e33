"""Trying again: with growing, random waits, and for a bounded time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How often an operation is tried again, with which waits, and for how long altogether, in seconds."""

    retries: int
    min_wait: float
    max_wait: float
    total: float


async def persist(
    patience: Patience, attempt: Callable[[], Awaitable[T]], is_passing: Callable[[Exception], bool]
) -> T:
    """What ``attempt`` returns, tried again after errors that may pass.

    A request without an answer may have been carried out. An error that comes after one, and would by itself say that
    nothing was done, does not: the first, doubtful, error is raised then. ``FileExistsError`` and
    ``FileNotFoundError`` say what is there, whoever did it, and pass through.
    """
    doubtful: Exception | None = None
    try:
        async with asyncio.timeout(patience.total):
            for turn in range(patience.retries + 1):
                if turn:
                    wait = min(patience.min_wait * 2 ** (turn - 1), patience.max_wait)
                    await asyncio.sleep(random.uniform(wait / 2, wait))
                try:
                    return await attempt()
                except (FileExistsError, FileNotFoundError):
                    raise
                except Exception as error:
                    if not is_passing(error):
                        raise (doubtful or error) from None
                    doubtful = error
    except TimeoutError:
        if doubtful is None:
            raise TimeoutError(f"no answer within {patience.total:g} s") from None
    assert doubtful is not None
    raise doubtful
