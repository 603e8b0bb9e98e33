"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import TableService, hookimpl

from icefield_maintenance.hookspecs import CompactionStrategy, HealthRules

if TYPE_CHECKING:
    from icefield_cli import Command

_VERSIONS = "icefield_maintenance.versions"
_CHECKS = "icefield_maintenance.doctor.tables"
_STRATEGIES = "icefield_maintenance.compaction.strategies"


@hookimpl
def icefield_addhooks() -> Sequence[str]:
    """Add the hooks for rules of the doctor and for strategies of compaction."""
    return ["icefield_maintenance.hookspecs"]


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``table.maintenance``, ``table.undo``, ``table.rollback`` and ``table.diff``."""
    return [
        TableService("maintenance", "icefield_maintenance.maintenance_table:MaintenanceTable"),
        TableService("undo", f"{_VERSIONS}:undoing"),
        TableService("rollback", f"{_VERSIONS}:rolling_back"),
        TableService("diff", f"{_VERSIONS}:comparing"),
    ]


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide the commands of maintenance and the doctor."""
    from icefield_maintenance.commands.records import COMMANDS

    return COMMANDS


@hookimpl
def icefield_health_rules() -> Sequence[HealthRules]:
    """Provide the rules of the specification, and those of maintenance."""
    return [
        HealthRules("metadata", f"{_CHECKS}.metadata_checks:RULES"),
        HealthRules("manifests", f"{_CHECKS}.manifest_checks:RULES"),
        HealthRules("entries", f"{_CHECKS}.live_checks:RULES"),
        HealthRules("files", f"{_CHECKS}.file_checks:RULES"),
        HealthRules("rows", f"{_CHECKS}.row_checks:RULES"),
        HealthRules("maintenance", f"{_CHECKS}.maintenance_checks:RULES"),
    ]


@hookimpl
def icefield_compaction_strategies() -> Sequence[CompactionStrategy]:
    """Provide packing, sorting and clustering."""
    return [
        CompactionStrategy("binpack", f"{_STRATEGIES}.binpack:BinPack"),
        CompactionStrategy("sort", f"{_STRATEGIES}.sort:Sort", takes=("sort_order",)),
        CompactionStrategy("zorder", f"{_STRATEGIES}.zorder:ZOrder", takes=("zorder_columns",)),
    ]
