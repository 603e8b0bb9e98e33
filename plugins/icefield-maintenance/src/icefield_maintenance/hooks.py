"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import TableService, hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``table.maintenance``."""
    return [TableService("maintenance", "icefield_maintenance.maintenance_table:MaintenanceTable")]


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide the commands of maintenance and the doctor."""
    from icefield_maintenance.commands import COMMANDS

    return COMMANDS
