"""A frame of another author: the columns of a scan as arrays of NumPy, and arrays as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table, TableService, hookimpl


@dataclass(frozen=True)
class ToArrays:
    """The method ``scan.to_arrays``: it reads its columns and rows alone."""

    scan: Any

    def __call__(self, *names: str, where: pc.Expression | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Some columns, all by default, of the rows that match an expression of Arrow."""
        read = self.scan.to_dataset().to_table(columns=list(names) or None, filter=where)
        return {name: read[name].to_numpy() for name in read.column_names}


@dataclass(frozen=True)
class Arrays:
    """``table.arrays``: arrays as rows."""

    table: Table

    def append(self, arrays: Mapping[str, Sequence[Any]]) -> None:
        """Add rows."""
        self.table.append(pa.table(dict(arrays)))


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``scan.to_arrays`` and ``table.arrays``."""
    return [TableService("to_arrays", f"{__name__}:ToArrays", "scan"), TableService("arrays", f"{__name__}:Arrays")]
