"""The clauses of a merge: a condition for a row, and the change of the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression, as_expression, bind, evaluate, field_ids
from icefield.schema import Schema
from icefield.transaction.head.branch_head import Mask
from icefield.transaction.row_level.assignments import Assignments, called, computed
from icefield.transaction.row_level.edits import Ints

Condition: TypeAlias = "BooleanExpression | str | pc.Expression | Callable[[pa.RecordBatch], pa.Array] | None"
"""A filter, an Arrow expression, or a function of a record batch that gives booleans; None holds for every row."""

ALL = "all"
"""In place of values: every column of the source."""

DELETE = "delete"
"""In place of values: the row is deleted."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition, and the change of a row for which it holds: values by columns, ``ALL`` or ``DELETE``."""

    condition: Condition
    values: Mapping[Any, Any] | str


class BoundClause:
    """A clause that is bound to the schema of some rows."""

    def __init__(self, clause: Clause, seen: Schema, table: Schema, case_sensitive: bool) -> None:
        """``seen``: the columns that the condition may use. Raises ``InvalidArgument``."""
        condition = clause.condition
        if condition is None or isinstance(condition, pc.Expression) or callable(condition):
            self.row_filter: BooleanExpression | None = None
            self._condition = condition
        elif isinstance(condition, BooleanExpression | str):
            self.row_filter = bind(seen, as_expression(condition), case_sensitive)
            self._condition = None
        else:
            raise InvalidArgument(
                "a condition is a filter, a pyarrow.compute.Expression or a function of a record batch, not "
                f"{type(condition).__name__}"
            )
        self.deletes = clause.values == DELETE
        self.takes_all = clause.values == ALL
        self.assignments: Assignments | None = None
        if not (self.deletes or self.takes_all):
            assert not isinstance(clause.values, str)
            self.assignments = Assignments(table, clause.values, case_sensitive)

    @property
    def field_ids(self) -> frozenset[int] | None:
        """The ids of the columns that the condition reads; None if unknown."""
        if self.row_filter is not None:
            return field_ids(self.row_filter)
        return frozenset() if self._condition is None else None

    def holds(self, seen: pa.RecordBatch) -> Mask:
        """A mask of the rows for which the condition holds; an unknown result (null) does not count."""
        if self.row_filter is not None:
            return np.asarray(evaluate(self.row_filter, seen))
        if self._condition is None:
            return np.ones(seen.num_rows, bool)
        name = "a condition"
        given = self._condition
        made = computed(given, seen, name) if isinstance(given, pc.Expression) else called(given, seen, name)
        if not pa.types.is_boolean(made.type):
            raise InvalidArgument(f"a condition is true or false for each row, and not {made.type}: {given}")
        return np.asarray(pc.fill_null(made, False))


def first_that_holds(clauses: list[BoundClause], seen: pa.RecordBatch) -> Ints:
    """For each row the number of the first clause that holds; -1 for none."""
    found = np.full(seen.num_rows, -1)
    for number, clause in enumerate(clauses):
        left = np.flatnonzero(found < 0)
        if not len(left):
            break
        asked = seen if len(left) == seen.num_rows else seen.take(pa.array(left))
        found[left[clause.holds(asked)]] = number
    return found
