"""The one retry loop: every change of a table, of several tables and of a view goes through ``settle``.

A change is prepared on what is current and published. Where another commit came first, listeners are told, the loop
waits, the change is renewed and tried again. Where a reply was lost, the loop looks for the change.
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from icefield.abc import Conflict
from icefield.commit.retry_policy import RetryPolicy
from icefield.errors import CommitFailed, CommitStateUnknown, IcefieldError

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Change(ABC, Generic[T]):
    """A change on its way to be visible, as ``settle`` asks for it. ``T`` is what a change that is made gives."""

    name: str
    """What is changed, as people write it."""

    repeats = True
    """Whether a failure that may pass is tried again: not for a creation."""

    @property
    @abstractmethod
    def policy(self) -> RetryPolicy:
        """When a conflict is tried again."""

    @property
    @abstractmethod
    def checks(self) -> RetryPolicy:
        """For how long the change is looked for after a lost reply."""

    @abstractmethod
    def prepare(self) -> T | Conflict | None:
        """Build the change on what is current. None when it is ready; what there is when nothing is to be changed."""

    @abstractmethod
    def publish(self) -> T | Conflict:
        """Make it visible, in one atomic step."""

    @abstractmethod
    def found(self) -> T | None:
        """Look for what was published last: what shows that it is there, or None, which proves nothing."""

    @abstractmethod
    def tell(self, attempt: int, conflict: Conflict) -> None:
        """Tell listeners of a conflict."""

    @abstractmethod
    def renew(self) -> T | None:
        """Load what is current, for the next attempt; what is there when that shows that an attempt was made."""

    @abstractmethod
    def lost(self, attempts: int, seconds: float) -> CommitFailed:
        """The error for conflicts that retries did not settle."""

    def failed(self, error: Exception) -> Exception:
        """The error to raise for one of ``publish``, which says that nothing happened, where the change is not found.

        An exception that is none of Icefield's says nothing about it.
        """
        if isinstance(error, IcefieldError):
            return error
        unknown = CommitStateUnknown(
            f"committing '{self.name}' ended in {type(error).__name__}, and whether the change was made cannot be "
            "known; no file was deleted: load it again and look for the change"
        )
        unknown.__cause__ = error
        return unknown

    def rejected(self) -> None:
        """Called when nothing of the last attempt is visible."""


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """A change that is visible, after so many attempts and seconds."""

    result: T
    attempts: int
    seconds: float


def settle(change: Change[T], sleep: Callable[[float], None] = time.sleep) -> Settled[T]:
    """Try a change until it is visible, or cannot be.

    Raises ``CommitFailed`` when retries did not settle a conflict, ``CommitStateUnknown`` when nobody can know what
    happened, and what the methods of the change raise.
    """
    began = time.monotonic()
    shortest = math.inf  # the first attempt may have opened connections and loaded code
    for attempt in count(1):
        start = time.monotonic()
        outcome = change.prepare()
        if outcome is None:
            outcome = _published(change, sleep)
        shortest = min(shortest, time.monotonic() - start)
        if not isinstance(outcome, Conflict):
            return Settled(outcome, attempt, time.monotonic() - began)
        change.tell(attempt, outcome)
        last = change.policy.gives_up(attempt, time.monotonic() - began)
        if not last:
            sleep(change.policy.wait_seconds(attempt, attempt_seconds=shortest))
        found = change.renew()
        if found is not None:
            return Settled(found, attempt, time.monotonic() - began)
        if last:
            raise change.lost(attempt, time.monotonic() - began)
    raise AssertionError("unreachable")


def _published(change: Change[T], sleep: Callable[[float], None]) -> T | Conflict:
    """The one call that makes a change visible, with its failures sorted."""
    try:
        outcome = change.publish()
    except CommitStateUnknown as error:
        # What is visible and may be gone after a loss of power is not acknowledged, though it can be found.
        found = None if error.visible else _looked_for(change, sleep)
        if found is None:
            raise
        _log.warning("the reply to a commit of '%s' was lost, but it is there: %s", change.name, error)
        return found
    except Exception as error:
        if isinstance(error, IcefieldError) and error.retryable and change.repeats:
            change.rejected()
            return Conflict()
        # The contract says that nothing became visible. A plugin that is wrong about it must not cost the commit.
        found = _found(change)
        if found is not None:
            _log.warning("'%s' is committed, though the commit ended in %s", change.name, type(error).__name__)
            return found
        raised = change.failed(error)
        if raised is error:
            raise
        raise raised from error
    if isinstance(outcome, Conflict):
        change.rejected()
    return outcome


def _looked_for(change: Change[T], sleep: Callable[[float], None]) -> T | None:
    """Look more than once: the store may be down, and the request still on its way."""
    began = time.monotonic()
    for attempt in count(1):
        found = _found(change)
        if found is not None or change.checks.gives_up(attempt, time.monotonic() - began):
            return found
        sleep(change.checks.wait_seconds(attempt, lambda _, longest: longest))
    raise AssertionError("unreachable")


def _found(change: Change[T]) -> T | None:
    try:
        return change.found()
    except Exception:  # who cannot look does not know
        return None
