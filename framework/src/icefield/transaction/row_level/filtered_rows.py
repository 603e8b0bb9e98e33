"""Deletes and updates of the rows that match a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from icefield.expressions import BooleanExpression, as_expression, bind, evaluate
from icefield.manifest.data_file import DataFile
from icefield.metadata.properties import DELETE_ISOLATION_LEVEL, DELETE_MODE, UPDATE_ISOLATION_LEVEL, UPDATE_MODE
from icefield.metadata.refs import MAIN_BRANCH
from icefield.schema import Schema
from icefield.transaction.action import Action
from icefield.transaction.files.append import AddedFiles
from icefield.transaction.head.branch_head import Head
from icefield.transaction.row_level.action import RowLevelAction
from icefield.transaction.row_level.assignments import Assignments
from icefield.transaction.row_level.changed_files import FileResult
from icefield.transaction.row_level.edits import EditResult, RowEdit


class OverwriteRows(RowLevelAction):
    """Delete the rows that match a filter and add files. Files in which all rows match are dropped unread."""

    mode = DELETE_MODE
    isolation = DELETE_ISOLATION_LEVEL

    def __init__(
        self,
        stage: Callable[[Action], None],
        row_filter: str | BooleanExpression,
        *,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._filter = as_expression(row_filter)
        self._case_sensitive = case_sensitive
        self._added = AddedFiles()

    def add_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add data files under names that the caller drew at random."""
        self._added.add(files, fresh=True)
        return self

    def _edit(self, head: Head) -> RowEdit:
        return DeleteMatching(bind(head.metadata.schema(), self._filter, self._case_sensitive))

    def _others(self, head: Head, changed: Sequence[FileResult]) -> Sequence[DataFile]:
        return self._added.files()


class DeleteMatching(RowEdit):
    """Deletes the rows that match a filter. A row with an unknown result (null) stays."""

    drops = True

    def found(self, batch: pa.RecordBatch) -> EditResult:
        """All rows, because the reader has applied the filter."""
        return EditResult(np.arange(batch.num_rows))

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that match."""
        return EditResult(np.flatnonzero(evaluate(self.row_filter, batch)))


class UpdateRows(RowLevelAction):
    """Set columns of the rows that match a filter. A row with an unknown result (null) does not change."""

    mode = UPDATE_MODE
    isolation = UPDATE_ISOLATION_LEVEL

    def __init__(
        self,
        stage: Callable[[Action], None],
        schema: Schema,
        row_filter: str | BooleanExpression,
        values: Mapping[Any, Any],
        *,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._filter = as_expression(row_filter)
        self._values = dict(values)
        self._case_sensitive = case_sensitive
        bind(schema, self._filter, case_sensitive)
        Assignments(schema, self._values, case_sensitive)  # errors in the values are raised before the commit

    def _edit(self, head: Head) -> RowEdit:
        schema = head.metadata.schema()
        assignments = Assignments(schema, self._values, self._case_sensitive)
        return _RowsChange(bind(schema, self._filter, self._case_sensitive), assignments)


class _RowsChange(RowEdit):
    """Gives new values to the rows that match a filter."""

    def __init__(self, row_filter: BooleanExpression, assignments: Assignments) -> None:
        super().__init__(row_filter)
        self._assignments = assignments

    def found(self, batch: pa.RecordBatch) -> EditResult:
        """All rows, because the reader has applied the filter."""
        rows = np.arange(batch.num_rows)
        return EditResult(rows, rows)

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that match, with their new values."""
        rows = np.flatnonzero(evaluate(self.row_filter, batch))
        chosen = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
        return EditResult(rows, rows, self._assignments.apply(chosen, chosen))
