"""Services of another author: rules for the values of a table, checked and enforced, and the nulls of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
from icefield import Table, TableService, hookimpl
from icefield.expressions import as_expression
from icefield.scan import TableScan


@dataclass(frozen=True)
class Quality:
    """Rules that the rows of a table keep, each a filter."""

    table: Table

    def broken(self, rule: str) -> int:
        """How many rows break a rule."""
        return self.table.scan(row_filter=~as_expression(rule)).count()

    def enforce(self, rule: str) -> int:
        """Delete the rows that break a rule from the newest version, and return their number."""
        broken = Quality(self.table.refresh()).broken(rule)
        with self.table.access().begin() as tx:
            tx.delete(~as_expression(rule))
        return broken


def count_nulls(scan: TableScan) -> dict[str, int]:
    """How many nulls each column of a scan has."""
    rows = scan.to_arrow()
    return {name: int(pc.sum(pc.is_null(rows[name])).as_py() or 0) for name in rows.column_names}


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``table.quality`` and ``scan.nulls``."""
    return [
        TableService("quality", f"{__name__}:Quality"),
        TableService("nulls", f"{__name__}:count_nulls", of="scan"),
    ]
