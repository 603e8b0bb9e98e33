"""The past of maintenance: the parts of the record that plans, pauses and budgets depend on."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from icefield.metadata import LONG_MAX

from icefield_maintenance.tend.costs import ScanCost
from icefield_maintenance.tend.planning import Decision, Done
from icefield_maintenance.tend.policy import TendBudget

if TYPE_CHECKING:
    from icefield import Table

Outcome = Literal["done", "lost", "failed", "overdue", "planned", "postponed", "held"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
MEMORY_DAYS: Final = 7
"""The age of the oldest rows that are read. Erasures and searches for orphans are read at any age."""

_LEAST_PART: Final = 0.1
"""The least share of a day's budget that a part of an operation is made for."""

_LONGEST_PAUSE: Final = 24
"""The longest pause after losses, in hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TendedOperation:
    """An operation that was carried out, or is not carried out now; the record holds the former.

    ``outcome``: ``done``; ``lost`` to other writers; ``failed``, as ``message`` says; ``overdue``, as it took longer
    than a table may; ``planned`` in a dry run; ``postponed``, as ``message`` says; ``held`` by another process. ``at``
    is the time of its beginning. ``uuid`` is the table's, if the operation was carried out.
    """

    at: dt.datetime
    table: str
    operation: str
    outcome: Outcome
    uuid: str = ""
    reason: str = ""
    planned_requests: int = 0
    planned_bytes: int = 0
    planned_rewrite: int = 0
    measured_requests: int = 0
    measured_bytes: int = 0
    rewritten_bytes: int = 0
    seconds: float = 0.0
    owner: str = ""
    message: str = ""

    @property
    def was_in_vain(self) -> bool:
        """Whether bytes were rewritten, and a scan costs no less than before. Statistics are for plans, not scans."""
        if self.operation.startswith("compute_") or not self.rewritten_bytes:
            return False
        return ScanCost(self.measured_requests, self.measured_bytes).weight <= 0


@dataclass(slots=True)
class _Past:
    """The past of an operation on one table: losses since its last success, the last attempt, and when it was done."""

    losses: int = 0
    last_ms: int = 0
    done_ms: int | None = None


class RecordedPast:
    """A summary of operations.

    It has for each operation of a table its losses and times, finished erasures, the last day, and the bytes and
    seconds of each table on each day of a week.
    """

    def __init__(self) -> None:
        self._pasts: dict[tuple[str, str], _Past] = {}
        self._erasures: dict[tuple[str, str], set[str]] = {}
        self._spent: list[tuple[int, int, float]] = []
        self._used: dict[tuple[str, int], tuple[int, float]] = {}
        self._last_day = 0
        self._lock = Lock()

    def spent(self, now_ms: int) -> tuple[int, float]:
        """The rewritten bytes, and the hours, of the 24 hours before a time."""
        with self._lock:
            self._spent = [each for each in self._spent if each[0] > now_ms - _DAY_MS]
            return sum(each[1] for each in self._spent), sum(each[2] for each in self._spent) / 3600

    def used(self, table: str) -> tuple[int, float]:
        """The rewritten bytes, and the hours, of a table in the last seven days with operations."""
        with self._lock:
            days = [self._used.get((table, self._last_day - ago), (0, 0.0)) for ago in range(MEMORY_DAYS)]
            return sum(each[0] for each in days), sum(each[1] for each in days) / 3600

    def done(self, table: str, uuid: str | None) -> Done:
        """The last search for orphans in a table, and its finished erasures.

        Erasures of an earlier table with the same name, or of this one with an earlier name, do not count.
        """
        with self._lock:
            past = self._pasts.get((table, "remove_orphan_files"), _Past())
            return Done(orphans_ms=past.done_ms, erasures=frozenset(self._erasures.get((table, uuid or ""), ())))

    def pause_ms(self, table: str, operation: str, now_ms: int) -> int:
        """The rest of the pause after losses and rewrites in vain: an hour, doubled by each further one."""
        past = self._pasts.get((table, operation), _Past())
        # An urgent erasure does not pause, so its losses may be many.
        pause = min(2 ** (min(past.losses, 6) - 1), _LONGEST_PAUSE) * _HOUR_MS if past.losses else 0
        return max(0, past.last_ms + pause - now_ms)

    def note(self, operation: TendedOperation, now_ms: int) -> None:
        """Take an operation into account at a time. One that begins a day later has the time of a wrong clock."""
        with self._lock:
            if operation.operation == "erase" and operation.outcome == "done":
                self._erasures.setdefault((operation.table, operation.uuid), set()).add(operation.reason)
            if ms_of(operation.at) <= now_ms + _DAY_MS:
                self._note(operation, now_ms)

    def _note(self, operation: TendedOperation, now_ms: int) -> None:
        at = ms_of(operation.at)
        past = self._pasts.setdefault((operation.table, operation.operation), _Past())
        past.last_ms = max(past.last_ms, at)
        if operation.outcome == "done":
            past.done_ms = past.last_ms
            past.losses = past.losses + 1 if operation.was_in_vain else 0
        else:
            past.losses += 1
        if at > now_ms - _DAY_MS:
            self._spent.append((at, operation.rewritten_bytes, operation.seconds))
        day = at // _DAY_MS
        if day > self._last_day:
            self._last_day = day
            self._used = {each: used for each, used in self._used.items() if each[1] > day - MEMORY_DAYS}
        nbytes, seconds = self._used.get((operation.table, day), (0, 0.0))
        self._used[operation.table, day] = nbytes + operation.rewritten_bytes, seconds + operation.seconds


def reason_to_wait(decision: Decision, table: str, past: RecordedPast, budget: TendBudget, now_ms: int) -> str:
    """The reason for which an operation waits, apart from its bytes; empty if it can be carried out now."""
    if decision.is_urgent:
        return ""
    pause = past.pause_ms(table, decision.operation, now_ms)
    if pause:
        return f"it lost, failed or gained nothing before: the next attempt is in {pause // 60_000 + 1} minutes"
    if not budget.is_open(now_ms):
        return f"no window is open: {', '.join(budget.windows)} UTC"
    _, hours = past.spent(now_ms)
    if budget.hours_per_day is not None and hours >= budget.hours_per_day:
        return f"the budget of {budget.hours_per_day} hours per day is spent"
    return ""


def bytes_left(past: RecordedPast, budget: TendBudget, now_ms: int, reserved: int = 0) -> int:
    """The bytes that the budget of the day has left; ``reserved`` are those of operations that are under way."""
    spent, _ = past.spent(now_ms)
    return LONG_MAX if budget.bytes_per_day is None else max(0, budget.bytes_per_day - spent - reserved)


def within(decision: Decision, table: Table, budget: TendBudget, left: int) -> tuple[Decision, str]:
    """The decision, or a part of it that rewrites at most ``left`` bytes; and the reason for which it waits.

    The reason is empty if it need not wait. A part is at least worth a tenth of a day's budget, since small parts
    rewrite the same rows again and again. An operation that fits no day's budget has a fault.
    """
    day = budget.bytes_per_day
    if decision.is_urgent or day is None or decision.rewritten_bytes <= left:
        return decision, ""
    if decision.part is not None and left >= day * _LEAST_PART:
        part = decision.part(table, left)
        if part is not None:
            return part, ""
    needed = f"it rewrites {decision.rewritten_bytes:,} bytes"
    if 0 < day < decision.rewritten_bytes and (decision.part is None or decision.part(table, day) is None):
        fault = f"{needed} at once, and the whole budget of a day is {day:,}: it can never be done. Raise bytes-per-day"
        return replace(decision, fault=fault), fault
    return decision, f"the budget has {left:,} bytes left today, and {needed}"


def ms_of(at: dt.datetime) -> int:
    """A datetime in ms since 1970 UTC."""
    return (at - _EPOCH) // dt.timedelta(milliseconds=1)


def time_of(at_ms: int) -> dt.datetime:
    """A time in ms since 1970 UTC as a datetime."""
    return _EPOCH + dt.timedelta(milliseconds=at_ms)
