"""What an operation does to rows: which go, which go on under other values, and what these are."""

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
class Edited:
    """What becomes of the rows of a batch. Rows are places in it.

    ``gone``: the rows that leave their places, ascending. ``updated``: those of them that go on under other values,
    and ``rows`` these values, one row for each, by names of columns; None where they were not asked for. ``met``:
    the operation's own rows that have a row of the batch.
    """

    gone: Ints
    updated: Ints = field(default_factory=lambda: NO_ROWS)
    rows: pa.RecordBatch | None = None
    met: Ints = field(default_factory=lambda: NO_ROWS)


class Edit(ABC):
    """One operation on rows, bound to the schema of one head.

    It is a function of rows alone, so that what it made of a file holds for as long as the file and its deletes do.
    """

    drops: ClassVar[bool] = False
    """Whether every row that matches the filter goes, so that a file of such rows goes unread."""

    def __init__(self, row_filter: BooleanExpression) -> None:
        """``row_filter``, which is bound, holds of every row that may change or be met."""
        self.row_filter = row_filter

    @property
    @abstractmethod
    def deciding(self) -> frozenset[int]:
        """The ids of the columns that ``found`` looks at."""

    @property
    def keys(self) -> frozenset[int] | None:
        """The ids of the columns that ``met`` looks at, where these few say of most files that nothing changes."""
        return None

    @property
    def changes_met(self) -> bool:
        """Whether rows may change that are met; else a file is only looked at for those of the operation's own."""
        return True

    @property
    def own_rows(self) -> int:
        """How many rows the operation has itself."""
        return 0

    def met(self, batch: pa.RecordBatch) -> Ints:
        """Which rows of the operation's own have a row of the batch."""
        return NO_ROWS

    def may_change(self, met: Ints) -> bool:
        """Whether a file may change of which such rows were met."""
        return True

    @abstractmethod
    def found(self, batch: pa.RecordBatch) -> Edited:
        """Which rows change, from the deciding columns; without what they become."""

    def edited(self, batch: pa.RecordBatch) -> Edited:
        """Which rows change, and what they become, from all columns."""
        return self.found(batch)
