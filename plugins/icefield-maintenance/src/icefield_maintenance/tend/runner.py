"""Maintenance by a policy: tables are planned, ranked by their gain for each rewritten byte, and maintained."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from icefield.abc import ServedCatalog, WorkRunner
from icefield.errors import CommitFailed, NoSuchTable

from icefield_maintenance.tend.lease import LeasedTable, LeaseHeld, TableLease, new_owner
from icefield_maintenance.tend.measuring import measured
from icefield_maintenance.tend.past import Outcome, TendedOperation, bytes_left, reason_to_wait, time_of, within
from icefield_maintenance.tend.planning import INTERRUPTED, Decision, TablePlan, decisions_by, fault_of
from icefield_maintenance.tend.policy import Policy
from icefield_maintenance.tend.record import TendRecord
from icefield_maintenance.tend.table_threads import results_in_time

if TYPE_CHECKING:
    from icefield import Catalog, Table

_HOUR_MS: Final = 3_600_000
_LOST: Final = "another process has taken the table over: the lease was not renewed in time"
_SHARES: Final = 10
"""The parts of a day's budget by which tables are compared. A table that used more of them comes later."""

_SURVEY_SECONDS: Final = 600.0
"""The longest time of a table's plan, which reads metadata alone."""

_MOST_OVERDUE: Final = 32
"""The number of overdue tables, each with a thread, at which no further work begins."""

_LONGEST_MESSAGE: Final = 1000

Name = tuple[str, ...]
T = TypeVar("T")
R = TypeVar("R")


class Tending:
    """The maintenance of the tables of a catalog by a policy; ``run`` can be called again and again.

    ``runner`` reads and writes data files, for example in the tasks of Spark; planning and commits stay in this
    process. Two of them, on any machines, do not maintain a table at the same time; see ``LeasedTable``.
    """

    def __init__(self, catalog: Catalog, policy: Policy, *, runner: WorkRunner | None = None) -> None:
        self.catalog, self.policy = catalog, policy
        self._runner = runner
        self._owner = new_owner()
        self._at_goals: dict[Name, tuple[str, int]] = {}
        self._at_work: dict[Name, TendedOperation] = {}
        self._overdue: dict[Name, float] = {}
        self._lock = Lock()
        self._reserved = 0
        self._record = TendRecord(catalog, policy.record, _now_ms)

    def run(self, tables: Iterable[Name] | None = None, *, dry_run: bool = False) -> Iterator[TendedOperation]:
        """Maintain the tables that the policy names, or those of ``tables`` among them.

        First every table is planned, from its metadata. Then the tables follow one another, ``budget.concurrency`` at
        once: urgent erasures first, then the greatest gain for each rewritten byte. A table that used more tenths of a
        day's budget in the last week comes later. Yields the operations as they end, and waiting operations with the
        reason: a window, the budget or a pause. An error of one table does not stop the work on others. A table that
        takes longer than ``budget.time_per_table`` is overdue: its operation goes on, and the run does, too.
        ``dry_run`` yields the plan. Raises errors of the catalog and of the record.
        """
        if not self._record.read(self._patience):
            yield self._late_record()
            return
        try:
            yield from self._tended(tables, dry_run=dry_run)
        finally:
            is_written = self._record.flush(self._patience)
        if not is_written:
            yield self._late_record()

    def _tended(self, tables: Iterable[Name] | None, *, dry_run: bool) -> Iterator[TendedOperation]:
        plans: list[TablePlan] = []
        late = partial(self._late, is_recorded=not dry_run)
        for survey in self._in_time(self.names(tables), self._surveyed, late, _SURVEY_SECONDS):
            if isinstance(survey, TablePlan):
                plans.append(survey)
            else:
                yield from survey
        plans.sort(key=self._turn)
        found = (
            map(self._foreseen, plans)
            if dry_run
            else self._in_time(plans, self._maintained, lambda plan: self._late(plan.table))
        )
        for operations in found:
            yield from operations

    def _in_time(
        self, items: Iterable[T], work: Callable[[T], R], overdue: Callable[[T], R | None], most: float = inf
    ) -> Iterator[R]:
        """The results as they come, so that a slow table holds up one thread, and that for a limited time."""
        budget = self.policy.budget
        return results_in_time(items, work, budget.concurrency, min(most, budget.time_per_table / 1000), overdue)

    def _turn(self, plan: TablePlan) -> tuple[bool, int, float]:
        """The place of a table: the lowest comes first."""
        budget = self.policy.budget
        nbytes, hours = self._record.past.used(".".join(plan.table))
        shares = [nbytes / budget.bytes_per_day] if budget.bytes_per_day else []
        shares += [hours / budget.hours_per_day] if budget.hours_per_day else []
        can_wait, gain = plan.rank
        return can_wait, int(_SHARES * max(shares, default=0.0)), gain

    def names(self, tables: Iterable[Name] | None = None) -> Iterator[Name]:
        """The names of the tables that the policy names, or of those of ``tables`` among them, each once."""
        named = self.catalog.walk_tables() if tables is None else dict.fromkeys(tables)
        return (name for name in named if self.policy.names(name))

    def _surveyed(self, name: Name) -> TablePlan | list[TendedOperation]:
        """The plan of a table; or, if nothing is to be done, its faults or the reason to wait."""
        reading = Decision(operation="plan", reason="the table was planned")
        if waits := self._reason_to_wait(name):
            return [self._outcome(name, reading, "postponed", waits)]
        with self._working(name, reading):
            try:
                table = self.catalog.load_table(name)
                location, hour = table.metadata_location, _now_ms() // _HOUR_MS
                if self._at_goals.get(name) == (location, hour):
                    return []
                plan = TablePlan(name, tuple(self._decisions(table)))
                if plan.decisions:
                    return plan if plan.can_be_carried_out else self._foreseen(plan)
            except NoSuchTable:  # it has been dropped
                return []
            except Exception as error:
                return [self._outcome(name, reading, "failed", fault_of(error))]
        if TableLease.of(table.metadata) is None:  # otherwise the lease of a dead process may end
            self._at_goals[name] = (location, hour)
        return []

    def _reason_to_wait(self, name: Name) -> str:
        """The reason for which a table is not even planned; empty if it is."""
        if held := self._at_work.get(name):
            return f"this process has worked on it since {held.at:%Y-%m-%d %H:%M} UTC: {held.operation} is overdue"
        if len(self._overdue) >= _MOST_OVERDUE:
            return f"{len(self._overdue)} tables are overdue at a time: their store may hang"
        pause = self._record.past.pause_ms(".".join(name), "plan", _now_ms())
        if pause and not self.policy.erasures_of(name):
            return f"its plan took too long before: the next attempt is in {pause // 60_000 + 1} minutes"
        return ""

    @contextmanager
    def _working(self, name: Name, decision: Decision) -> Iterator[None]:
        """Note the work of a thread on a table. The run takes overdue work from these notes."""
        self._at_work[name] = self._outcome(name, decision, "overdue")
        try:
            yield
        finally:
            with self._lock:
                del self._at_work[name]
                self._overdue.pop(name, None)

    def _late(self, name: Name, *, is_recorded: bool = True) -> list[TendedOperation] | None:
        """Note that the work on a table takes too long, and go on without it; None if no work is under way."""
        with self._lock:
            found = self._at_work.get(name)
            if found is None:
                return None
            seconds = round(_now_ms() / 1000 - found.at.timestamp(), 3)
            self._overdue[name] = seconds
        message = f"it has taken {seconds:,.0f} s already, and the run goes on without it"
        found = replace(found, seconds=seconds, message=message)
        if is_recorded:
            self._record.add(found)
        return [found]

    def _decisions(self, table: Table) -> Iterator[Decision]:
        done = self._record.past.done(".".join(table.name()), table.metadata.table_uuid)
        return decisions_by(self.policy, table, done, _now_ms(), self._owner)

    def _foreseen(self, plan: TablePlan) -> list[TendedOperation]:
        found = []
        for decision in plan.decisions:
            chosen, postponed = self._chosen(plan.table, None, decision)
            outcome: Outcome = "failed" if chosen.fault else "postponed" if postponed else "planned"
            found.append(self._outcome(plan.table, chosen, outcome, chosen.fault or postponed))
        return found

    def _maintained(self, plan: TablePlan) -> list[TendedOperation]:
        first = plan.decisions[0]
        if waits := self._reason_to_wait(plan.table):
            return [self._outcome(plan.table, first, "postponed", waits)]
        with self._working(plan.table, first):
            self._record.refresh()
            foreseen = self._foreseen(plan)
            if all(each.outcome != "planned" for each in foreseen):
                return foreseen
            done: list[TendedOperation] = []
            try:
                done.extend(self._leased(plan.table))
            except LeaseHeld as error:
                done.append(self._outcome(plan.table, first, "held", str(error)))
            except NoSuchTable:
                pass
            except Exception as error:
                done.append(self._outcome(plan.table, first, "failed", fault_of(error)))
            return done

    def _leased(self, name: Name) -> Iterator[TendedOperation]:
        """Maintain a table under a lease, until the run gives it up as overdue."""
        table = self.catalog.load_table(name)
        is_compared = not isinstance(self.catalog.backend, ServedCatalog)
        with LeasedTable(table, self._owner, self.policy.lease, is_compared=is_compared) as leased:
            table = self.catalog.load_table(name)
            interrupted = [INTERRUPTED] if leased.was_abandoned else []
            for decision in chain(interrupted, self._decisions(table)):
                if name in self._overdue:
                    break
                yield self._attempted(table, decision, is_lost=leased.is_lost())

    def _attempted(self, table: Table, decision: Decision, *, is_lost: bool) -> TendedOperation:
        """Carry out a decision, or the part of it that fits the budget; or say why not."""
        name = table.name()
        if is_lost:
            return self._outcome(name, decision, "postponed", _LOST)
        chosen, postponed = self._chosen(name, table, decision)
        if chosen.fault or postponed:
            return self._outcome(name, chosen, "failed" if chosen.fault else "postponed", chosen.fault or postponed)
        return self._carried_out(table, chosen)

    def _carried_out(self, table: Table, decision: Decision) -> TendedOperation:
        """Carry out an operation, and add it to the record."""
        maintenance = table.maintenance if self._runner is None else table.maintenance.on(self._runner)
        found = replace(self._outcome(table.name(), decision, "done"), uuid=table.metadata.table_uuid or "")
        self._at_work[table.name()] = replace(found, outcome="overdue")
        begun = time.monotonic()
        try:
            result = getattr(maintenance, decision.operation)(**decision.options)
        except Exception as error:
            outcome: Outcome = "lost" if isinstance(error, CommitFailed) else "failed"
            # A message may quote the filter of an erasure, which the record must not hold.
            is_erasure = decision.operation == "erase"
            message = getattr(error, "summary", type(error).__name__) if is_erasure else fault_of(error)
            found = replace(found, outcome=outcome, message=message[:_LONGEST_MESSAGE])
            if outcome == "lost":  # after all of its work
                found = replace(found, rewritten_bytes=decision.rewritten_bytes)
        else:
            found = replace(found, **{"rewritten_bytes": decision.rewritten_bytes, **measured(result)})
        seconds = time.monotonic() - begun - self._overdue.get(table.name(), 0.0)  # which the record has already
        found = replace(found, seconds=round(max(0.0, seconds), 3))
        try:
            self._record.add(found)
        finally:  # the bytes are spent before they are no longer reserved
            with self._lock:
                self._reserved -= decision.rewritten_bytes
        return found

    def _chosen(self, name: Name, table: Table | None, decision: Decision) -> tuple[Decision, str]:
        """The decision, or a part of it that fits the budget; and the reason for which it waits, or an empty string.

        With a table, the bytes are taken from the budget until the decision has been carried out.
        """
        if decision.fault:
            return decision, ""
        reason = reason_to_wait(decision, ".".join(name), self._record.past, self.policy.budget, _now_ms())
        if reason:
            return decision, reason
        with self._lock:
            left = bytes_left(self._record.past, self.policy.budget, _now_ms(), self._reserved)
            held = min(left, decision.rewritten_bytes)
            self._reserved += held
        chosen, taken = decision, 0
        try:
            if decision.rewritten_bytes > left and not decision.is_urgent:
                chosen, reason = within(decision, table or self.catalog.load_table(name), self.policy.budget, left)
            if table is not None and not reason:
                taken = chosen.rewritten_bytes
        except Exception as error:  # of the plan of a part
            chosen = replace(decision, fault=fault_of(error))
        finally:
            with self._lock:
                self._reserved += taken - held
        return chosen, reason

    def _outcome(self, table: Name, decision: Decision, outcome: Outcome, message: str = "") -> TendedOperation:
        return TendedOperation(
            at=time_of(_now_ms()),
            table=".".join(table),
            operation=decision.operation,
            reason=decision.reason,
            outcome=outcome,
            planned_requests=decision.gain.requests,
            planned_bytes=decision.gain.bytes,
            planned_rewrite=decision.rewritten_bytes,
            owner=self._owner,
            message=message[:_LONGEST_MESSAGE],
        )

    @property
    def _patience(self) -> float:
        """The longest time, in seconds, of a plan, and of reading or writing the record."""
        return min(_SURVEY_SECONDS, self.policy.budget.time_per_table / 1000)

    def _late_record(self) -> TendedOperation:
        reading = Decision(operation="record", reason="the record was read or written")
        message = f"the record takes longer than {self._patience:,.0f} s: its store may hang"
        return self._outcome(tuple(str(self._record.name).split(".")), reading, "overdue", message)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
