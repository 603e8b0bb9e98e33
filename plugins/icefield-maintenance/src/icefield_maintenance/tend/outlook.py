"""The outlook for a table: the operations of the record, and the plan by the policy, for a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from icefield.errors import InvalidArgument
from icefield.metadata import get_bool

from icefield_maintenance.properties import TEND_ENABLED
from icefield_maintenance.tend.goals import GOALS, Goals, goals_in
from icefield_maintenance.tend.lease import TableLease
from icefield_maintenance.tend.past import RecordedPast, TendedOperation, bytes_left, reason_to_wait, within
from icefield_maintenance.tend.planning import Decision, decisions_by
from icefield_maintenance.tend.policy import Policy
from icefield_maintenance.tend.record import recorded_operations

if TYPE_CHECKING:
    from icefield import Table

_DAYS: Final = 90
"""The age of the oldest operations."""

_MOST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutlook:
    """The maintenance of a table: its goals, the present lease, the plan, and the latest operations.

    ``goals`` are those of the policy and of the table's properties. ``plan`` has each decision with the reason for
    which it waits, or an empty string. ``operations`` are of the last 90 days, the newest first. ``is_enabled`` is
    False for a table with ``tend.enabled=false``.
    """

    goals: Goals
    is_enabled: bool
    lease: TableLease | None
    plan: tuple[tuple[Decision, str], ...]
    operations: tuple[TendedOperation, ...]

    @property
    def stated(self) -> list[tuple[str, Any]]:
        """The goals that are stated, by their names in policies."""
        values = ((name, getattr(self.goals, name.replace("-", "_"))) for name in GOALS)
        return [(name, value) for name, value in values if value is not None]


def outlook_of(table: Table, policy: Policy, record: Table | None, now_ms: int) -> TableOutlook:
    """The outlook for a table at a time in ms since 1970 UTC. Reads metadata, manifests and the record.

    ``record`` is the table of the policy's record; without it, nothing is known of the past, and the plan has no
    erasures, since it cannot say which are done. Raises ``InvalidArgument`` if it is another table.
    """
    name = ".".join(table.name())
    past = RecordedPast()
    done: list[TendedOperation] = []
    if record is not None and record.current_snapshot() is not None:
        for each in recorded_operations(record, now_ms):
            past.note(each, now_ms)
        done = [*recorded_operations(record, now_ms, days=_DAYS, of=name)]
    known = past.done(name, table.metadata.table_uuid)
    decided = decisions_by(policy, table, known, now_ms, with_erasures=record is not None)
    left = bytes_left(past, policy.budget, now_ms)
    plan = []
    for decision in islice(decided, _MOST):
        reason = reason_to_wait(decision, name, past, policy.budget, now_ms)
        plan.append((decision, reason) if reason else within(decision, table, policy.budget, left))
    goals, _ = goals_in(table.properties, policy.goals_of(table.name()) or Goals())
    held = TableLease.of(table.metadata)
    return TableOutlook(
        goals=goals,
        is_enabled=_is_enabled(table),
        lease=None if held is None or held.is_over(now_ms) else held,
        plan=tuple(plan),
        operations=tuple(reversed(done[-_MOST:])),
    )


def _is_enabled(table: Table) -> bool:
    try:
        return get_bool(table.properties, TEND_ENABLED)
    except InvalidArgument:
        return False
