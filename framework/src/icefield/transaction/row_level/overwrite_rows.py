"""Deletes rows by a filter, and adds others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from icefield.expressions import BooleanExpression, as_expression, bind, evaluate
from icefield.manifest.data_file import DataFile
from icefield.metadata.properties import DELETE_ISOLATION_LEVEL, DELETE_MODE
from icefield.metadata.refs import MAIN_BRANCH
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.append import AddedFiles
from icefield.transaction.branch_head import Head
from icefield.transaction.row_level.action import RowLevelAction
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

    def _others(self, head: Head, context: ActionContext, changed: Sequence[FileResult]) -> list[DataFile]:
        return self._added.files()


class DeleteMatching(RowEdit):
    """Deletes the rows that match a filter. A row with an unknown result (null) stays."""

    drops = True

    @property
    def deciding(self) -> frozenset[int]:
        """No columns: each row that is read goes."""
        return frozenset()

    def found(self, batch: pa.RecordBatch) -> EditResult:
        """All rows, because the reader has applied the filter."""
        return EditResult(np.arange(batch.num_rows))

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows that match."""
        return EditResult(np.flatnonzero(evaluate(self.row_filter, batch)))
