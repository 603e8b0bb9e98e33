"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence

from icefield import TableService, hookimpl

_ADDING = "icefield_import.adding:adding_files"


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``add_files`` of tables and of transactions."""
    return [TableService("add_files", _ADDING), TableService("add_files", _ADDING, "transaction")]
