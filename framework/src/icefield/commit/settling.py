"""The one retry loop: ``settle`` runs every change of a table, of several tables and of a view.

The loop prepares a change on the current version and publishes it. After a conflict it tells the listeners, waits,
renews the change and tries again. After a lost reply it checks whether the change is visible.
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
    """A change for the retry loop ``settle``. ``T`` is the type of its result."""

    name: str
    """The display name of the changed tables or view."""

    repeats = True
    """Whether retryable failures are retried: not for a creation."""

    uncounted = 0
    """The number of lost attempts that do not count as retries."""

    policy: RetryPolicy
    """The policy for conflicts."""

    checks: RetryPolicy
    """The policy for status checks after a lost reply."""

    @abstractmethod
    def prepare(self) -> T | Conflict | None:
        """Build the change on the current version. Returns None, or a result when there is nothing to change."""

    @abstractmethod
    def publish(self) -> T | Conflict:
        """Make it visible, in one atomic step."""

    @abstractmethod
    def found(self) -> T | None:
        """Check whether the last published change is visible; return its result, or None.

        None does not prove that the change is invisible.
        """

    @abstractmethod
    def tell(self, attempt: int, conflict: Conflict) -> None:
        """Tell listeners of a conflict."""

    @abstractmethod
    def renew(self) -> T | None:
        """Load the current version for the next attempt; return a result if it contains an earlier attempt."""

    @abstractmethod
    def lost(self, attempts: int, seconds: float) -> CommitFailed:
        """The error for conflicts that retries did not settle."""

    def failed(self, error: Exception) -> Exception:
        """The error to raise for an error of ``publish`` when the change is not found.

        An Icefield error proves that nothing happened. Any other exception leaves the outcome unknown.
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
        """Called when the last attempt did not become visible."""


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """The result of a visible change, with the number of attempts and the duration."""

    result: T
    attempts: int
    seconds: float


def settle(change: Change[T], sleep: Callable[[float], None] = time.sleep) -> Settled[T]:
    """Try a change until it is visible or has failed.

    Raises ``CommitFailed`` when retries did not settle a conflict, ``CommitStateUnknown`` when the outcome is unknown,
    and the errors of the change's methods.
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
        last = change.policy.gives_up(attempt - change.uncounted, time.monotonic() - began)
        if not last:
            sleep(change.policy.wait_seconds(attempt, attempt_seconds=shortest))
        found = change.renew()
        if found is not None:
            return Settled(found, attempt, time.monotonic() - began)
        if last:
            raise change.lost(attempt, time.monotonic() - began)
    raise AssertionError("unreachable")


def _published(change: Change[T], sleep: Callable[[float], None]) -> T | Conflict:
    """Publish a change and turn its failures into a conflict, a result or an error."""
    try:
        outcome = change.publish()
    except CommitStateUnknown as error:
        # A visible commit that may not survive a loss of power is not acknowledged.
        found = None if error.visible else _looked_for(change, sleep)
        if found is None:
            raise
        _log.warning("the reply to a commit of '%s' was lost, but it is there: %s", change.name, error)
        return found
    except Exception as error:
        if isinstance(error, IcefieldError) and error.retryable and change.repeats:
            change.rejected()
            return Conflict()
        # By contract nothing became visible. Check anyway: a plugin that breaks the contract must not lose the commit.
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
    """Check several times: the store may be down, or the request still in transit."""
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
    except Exception:  # a failed check proves nothing
        return None
