"""Deleting rows by a filter, and putting others in their place: whole files are dropped, the others rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Self

import numpy as np

from icefield.expressions import BooleanExpression, as_expression
from icefield.manifest.data_file import DataFile
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.append import AddedFiles
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import IsolationLevel, Since, no_new_data, no_new_deletes, no_removed_data
from icefield.transaction.file_rewriter import FileRewriter
from icefield.transaction.filtering import RowFilter
from icefield.transaction.matching import Mask
from icefield.transaction.overwrite import operation_of
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer


class OverwriteRows(SnapshotProducer):
    """Delete the rows that match a filter and add files.

    The filter is evaluated anew on each base, so rows that were committed meanwhile and match are deleted too: the
    change is then the same as if it had come after them. ``isolate`` refuses such commits instead.
    """

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
        self._rewriter = FileRewriter()
        self._level: IsolationLevel | None = None
        self._since = Since(None)

    def add_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add data files under names that the caller drew at random."""
        self._added.add(files, fresh=True)
        return self

    def isolate(self, level: IsolationLevel | str | None, snapshot_id: int | None) -> Self:
        """Fail when commits after the snapshot that was read concern rows of the filter."""
        self._level = IsolationLevel.of(level)
        self._since = Since(snapshot_id)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to drop and to rewrite on this base."""
        row_filter = RowFilter(head, self._filter, self._case_sensitive)
        self._validate(head, row_filter)
        self._rewriter.begin(head)
        removed: dict[int, Mask] = {}
        added = self._added.files()
        for matches in row_filter.matches():
            gone = matches.whole.copy()
            if matches.some.any():
                rewritten = self._rewriter.without(matches, row_filter.bound, context)
                gone[np.flatnonzero(matches.some)] = [one.matched for one in rewritten]
                added += [file for one in rewritten for file in one.files]
            if gone.any():
                removed[matches.position] = gone
        self._rewriter.finish(context)
        return FileChanges(added, removed)

    def operation(self, changes: FileChanges) -> Operation:
        """What was done in effect."""
        return operation_of(changes)

    def _validate(self, head: Head, row_filter: RowFilter) -> None:
        if self._level is None:
            return
        if self._level is IsolationLevel.SERIALIZABLE:
            no_new_data(head, self._since, row_filter)
        no_new_deletes(head, self._since, row_filter)
        no_removed_data(head, self._since, row_filter)
