"""The hooks of maintenance, and their records: rules of the doctor, and strategies of compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from icefield import hookspec


@dataclass(frozen=True, slots=True)
class HealthRules:
    """A group of rules for tables, which the doctor checks together.

    ``name`` is the name of the group. ``target`` is ``"module:attribute"`` of an
    ``icefield_maintenance.doctor.RuleGroup``; it is imported when a table is examined.
    """

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class CompactionStrategy:
    """A strategy of ``rewrite_data_files``: the order of the rows in new files.

    ``name`` is the value of ``strategy``. ``target`` is ``"module:attribute"`` of a class or function that takes an
    ``icefield_maintenance.OrderingRequest`` and returns an ``icefield_maintenance.Ordering``; it is imported when the
    strategy is used. ``takes`` names the options that go with the strategy.
    """

    name: str
    target: str
    takes: tuple[Literal["sort_order", "zorder_columns"], ...] = ()


@hookspec
def icefield_health_rules() -> Sequence[HealthRules]:  # type: ignore[empty-body]
    """Provide rules for tables.

    Called at each examination or repair of a table. Return an empty sequence, or None, to provide none.
    """


@hookspec
def icefield_compaction_strategies() -> Sequence[CompactionStrategy]:  # type: ignore[empty-body]
    """Provide strategies of compaction.

    Called when data files are rewritten. Return an empty sequence, or None, to provide none.
    """
