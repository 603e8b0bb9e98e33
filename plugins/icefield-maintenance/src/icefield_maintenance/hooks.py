"""The hooks of this plugin."""

from collections.abc import Sequence

from icefield import TableService, hookimpl


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``table.maintenance``."""
    return [TableService("maintenance", "icefield_maintenance.maintenance_table:MaintenanceTable")]
