"""Maintenance by a policy: tables are planned, ranked by their gain for each rewritten byte, and maintained."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Final

from icefield.abc import ServedCatalog, WorkRunner
from icefield.errors import CommitFailed
from icefield.toolkit import map_ahead

from icefield_maintenance.all_tables import all_tables
from icefield_maintenance.tend.lease import LeasedTable, LeaseHeld, TableLease, new_owner
from icefield_maintenance.tend.measuring import measured
from icefield_maintenance.tend.planning import INTERRUPTED, Decision, TablePlan, decisions_by, fault_of
from icefield_maintenance.tend.policy import Policy
from icefield_maintenance.tend.record import Outcome, TendedOperation, TendRecord, reason_to_wait, time_of

if TYPE_CHECKING:
    from icefield import Catalog, Table

_HOUR_MS: Final = 3_600_000
_LOST: Final = "another process has taken the table over: the lease was not renewed in time"
_SHARES: Final = 10
"""The parts of a day's budget by which tables are compared. A table that used more of them comes later."""

_LONGEST_MESSAGE: Final = 1000

Name = tuple[str, ...]


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
        self._lock = Lock()
        self._reserved = 0
        self._record: TendRecord | None = None

    def run(self, tables: Iterable[Name] | None = None, *, dry_run: bool = False) -> Iterator[TendedOperation]:
        """Maintain the tables that the policy names, or those of ``tables`` among them.

        First every table is planned, from its metadata. Then the tables follow one another, ``budget.concurrency`` at
        once: urgent erasures first, then the greatest gain for each rewritten byte. A table that used more tenths of a
        day's budget in the last week comes later. Yields the operations as they end, and waiting operations with the
        reason: a window, the budget or a pause. An error of one table does not stop the work on others. ``dry_run``
        yields the plan. Raises errors of the catalog and of the record.
        """
        if self._record is None or self.policy.record is not None:  # others may have added to it
            self._record = TendRecord(self.catalog, self.policy.record, _now_ms())
        plans: list[TablePlan] = []
        for plan in map_ahead(self._names(tables), self._surveyed, self.policy.budget.concurrency):
            if plan is not None and plan.can_be_carried_out:
                plans.append(plan)
            elif plan is not None:
                yield from self._foreseen(plan)
        plans.sort(key=self._turn)
        for operations in map(self._foreseen, plans) if dry_run else self._by_threads(plans, self._maintained):
            yield from operations

    def _by_threads(
        self, plans: Iterable[TablePlan], work: Callable[[TablePlan], list[TendedOperation]]
    ) -> Iterator[list[TendedOperation]]:
        """The results as they come, so that a slow table holds up one thread only."""
        waiting = iter(plans)
        with ThreadPoolExecutor(self.policy.budget.concurrency, thread_name_prefix="icefield-tend") as pool:
            running = {pool.submit(work, each) for each in islice(waiting, self.policy.budget.concurrency)}
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, each) for each in islice(waiting, len(ended))}
                for each in ended:
                    yield each.result()

    def _turn(self, plan: TablePlan) -> tuple[bool, int, float]:
        """The place of a table: the lowest comes first."""
        budget = self.policy.budget
        nbytes, hours = self._recorded.used(".".join(plan.table))
        shares = [nbytes / budget.bytes_per_day] if budget.bytes_per_day else []
        shares += [hours / budget.hours_per_day] if budget.hours_per_day else []
        can_wait, gain = plan.rank
        return can_wait, int(_SHARES * max(shares, default=0.0)), gain

    def _names(self, tables: Iterable[Name] | None) -> Iterator[Name]:
        named = all_tables(self.catalog) if tables is None else tables
        return (name for name in named if self.policy.names(name))

    def _surveyed(self, name: Name) -> TablePlan | None:
        """The plan of a table; None if nothing is to be done."""
        try:
            table = self.catalog.load_table(name)
            location, hour = table.metadata_location, _now_ms() // _HOUR_MS
            if self._at_goals.get(name) == (location, hour):
                return None
            plan = TablePlan(name, tuple(self._decisions(table)))
        except Exception as error:
            return TablePlan(name, (Decision.impossible(fault_of(error)),))
        if plan.decisions:
            return plan
        if TableLease.of(table.metadata) is None:  # otherwise the lease of a dead process may end
            self._at_goals[name] = (location, hour)
        return None

    def _decisions(self, table: Table) -> Iterator[Decision]:
        done = self._recorded.done(".".join(table.name()))
        return decisions_by(self.policy, table, done, _now_ms(), self._owner)

    def _foreseen(self, plan: TablePlan) -> list[TendedOperation]:
        found = []
        for decision in plan.decisions:
            if decision.fault:
                found.append(self._outcome(plan.table, decision, "failed", decision.fault))
                continue
            postponed = self._postponed(plan.table, decision)
            outcome: Outcome = "postponed" if postponed else "planned"
            found.append(self._outcome(plan.table, decision, outcome, postponed))
        return found

    def _maintained(self, plan: TablePlan) -> list[TendedOperation]:
        name = plan.table
        foreseen = self._foreseen(plan)
        if all(each.outcome != "planned" for each in foreseen):
            return foreseen
        is_compared = not isinstance(self.catalog.backend, ServedCatalog)
        done: list[TendedOperation] = []
        try:
            table = self.catalog.load_table(name)
            with LeasedTable(table, self._owner, self.policy.lease, is_compared=is_compared) as leased:
                table = self.catalog.load_table(name)
                interrupted = [INTERRUPTED] if leased.was_abandoned else []
                for decision in chain(interrupted, self._decisions(table)):
                    if decision.fault:
                        done.append(self._outcome(name, decision, "failed", decision.fault))
                        continue
                    postponed = _LOST if leased.is_lost() else self._postponed(name, decision, reserve=True)
                    if postponed:
                        done.append(self._outcome(name, decision, "postponed", postponed))
                    else:
                        done.append(self._carried_out(table, decision))
        except LeaseHeld as error:
            done.append(self._outcome(name, plan.decisions[0], "held", str(error)))
        except Exception as error:
            done.append(self._outcome(name, plan.decisions[0], "failed", fault_of(error)))
        return done

    def _carried_out(self, table: Table, decision: Decision) -> TendedOperation:
        """Carry out an operation, and add it to the record."""
        maintenance = table.maintenance if self._runner is None else table.maintenance.on(self._runner)
        found = self._outcome(table.name(), decision, "done")
        begun = time.monotonic()
        try:
            result = getattr(maintenance, decision.operation)(**decision.options)
        except Exception as error:
            outcome: Outcome = "lost" if isinstance(error, CommitFailed) else "failed"
            # A message may quote the filter of an erasure, which the record must not hold.
            message = type(error).__name__ if decision.operation == "erase" else fault_of(error)
            found = replace(found, outcome=outcome, message=message[:_LONGEST_MESSAGE])
        else:
            found = replace(found, **measured(result))
        finally:
            with self._lock:
                self._reserved -= decision.rewritten_bytes
        found = replace(found, seconds=round(time.monotonic() - begun, 3))
        self._recorded.add(found)
        return found

    def _postponed(self, table: Name, decision: Decision, *, reserve: bool = False) -> str:
        """The reason for which an operation waits; empty if it can be carried out now.

        ``reserve`` then takes its bytes from the budget, until it has been carried out.
        """
        with self._lock:
            name = ".".join(table)
            reason = reason_to_wait(decision, name, self._recorded, self.policy.budget, _now_ms(), self._reserved)
            if reserve and not reason:
                self._reserved += decision.rewritten_bytes
        return reason

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
    def _recorded(self) -> TendRecord:
        assert self._record is not None
        return self._record


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
