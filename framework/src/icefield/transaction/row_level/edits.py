"""Edits of rows: the rows that an operation removes, the rows that it updates, and their new values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from icefield.expressions import BooleanExpression

Ints = np.ndarray[Any, Any]

NO_ROWS: Final[Ints] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class EditResult:
    """The result of an edit for a batch. Rows are given by their index in it.

    ``gone``: the deleted and updated rows, ascending. ``updated``: the updated rows alone, and ``rows`` their new
    values, one row for each, by names of columns; None if they were not asked for. ``met``: the operation's own rows
    with a counterpart in the batch.
    """

    gone: Ints
    updated: Ints = field(default_factory=lambda: NO_ROWS)
    rows: pa.RecordBatch | None = None
    met: Ints = field(default_factory=lambda: NO_ROWS)


class RowEdit(ABC):
    """One operation on rows, bound to the schema of one head.

    Its result depends on rows alone, so that the result for a file holds as long as the file and its deletes stay.
    """

    drops: ClassVar[bool] = False
    """Whether every row that matches the filter is deleted, so that a file of such rows need not be read."""

    def __init__(
        self,
        row_filter: BooleanExpression,
        *,
        deciding: frozenset[int] = frozenset(),
        keys: frozenset[int] | None = None,
        own_rows: int = 0,
        changes_met: bool = True,
    ) -> None:
        """``row_filter`` is bound, and matches every row that may change or be met.

        ``deciding``: the ids of the columns that ``found`` reads besides those of the filter. ``keys``: the ids of the
        columns that ``met`` reads, if these few show for most files that nothing changes. ``own_rows``: the number of
        the operation's own rows. ``changes_met``: whether met rows may change; else a file is only read to find the
        operation's own rows in it.
        """
        self.row_filter = row_filter
        self.deciding = deciding
        self.keys = keys
        self.own_rows = own_rows
        self.changes_met = changes_met

    def met(self, batch: pa.RecordBatch) -> Ints:
        """The operation's own rows with a counterpart in the batch."""
        return NO_ROWS

    def may_change(self, met: Ints) -> bool:
        """Whether a file may change if the operation's own rows ``met`` have a counterpart in it."""
        return True

    @abstractmethod
    def found(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that change, from the deciding columns of rows that match the filter; without their new values."""

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that change, with their new values, from all columns of any rows."""
        return self.found(batch)
