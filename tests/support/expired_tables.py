"""Tables with snapshots that can all expire."""

from __future__ import annotations

from typing import Any

from icefield.catalog import Table
from tables import new_table, rows

ALL = 2**60
"""A time after every snapshot."""


def appended(count: int, **properties: Any) -> Table:
    table = new_table(**properties)
    for number in range(count):
        table.append(rows([number]))
    return table
