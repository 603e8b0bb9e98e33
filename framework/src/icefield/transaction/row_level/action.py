"""The base of all operations on rows: each is evaluated anew on each base, file by file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.metadata.properties import Property
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import ConflictRange, IsolationLevel, no_new_data, no_new_deletes, no_removed_data
from icefield.transaction.filtering import Matches, RowFilter, merged_masks
from icefield.transaction.matching import Mask
from icefield.transaction.overwrite import operation_of
from icefield.transaction.row_level.changed_files import FileResult, FileResults
from icefield.transaction.row_level.delete_marker import DeleteMarker
from icefield.transaction.row_level.edits import RowEdit
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer


def since_head(metadata: TableMetadata, branch: str | None) -> ConflictRange | None:
    """The head of a branch that was read; None for a missing branch."""
    name = branch or MAIN_BRANCH
    return ConflictRange(metadata.head(name)) if name == MAIN_BRANCH or name in metadata.refs else None


class RowLevelAction(SnapshotProducer):
    """Change rows of the files that may hold rows to change.

    The change is evaluated anew on each base, so rows that were committed meanwhile are changed too, as if the change
    had come after them. ``isolate`` refuses such commits instead.
    """

    mode: ClassVar[Property]
    """The table property that says how files are changed."""

    isolation: ClassVar[Property]
    """The table property that names the isolation level."""

    def __init__(
        self,
        stage: Callable[[Action], None],
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._files = FileResults()
        self._marker = DeleteMarker(self._files)
        self._level: IsolationLevel | None = None
        self._since: ConflictRange | None = None

    def isolate(self, level: IsolationLevel | str | None, since: ConflictRange | None) -> Self:
        """Fail when commits after the snapshot that was read concern rows that may change.

        Without a level, the table property for it applies, if it is set. ``since`` is None if nothing was read of the
        branch.
        """
        self._level = IsolationLevel.of(level)
        self._since = since
        return self

    @abstractmethod
    def _edit(self, head: Head) -> RowEdit:
        """The edit of the rows of a head."""

    def _others(self, head: Head, context: ActionContext, changed: Sequence[FileResult]) -> list[DataFile]:
        """The files that are added besides the files of changed rows."""
        return []

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to drop and to change on this base."""
        edit = self._edit(head)
        row_filter = RowFilter(head, edit.row_filter)
        self._validate(head, context, row_filter)
        self._files.begin(head, context, self.mode)
        removed: dict[int, Mask] = {}
        changed: list[FileResult] = []
        for matches in row_filter.matches():
            gone = self._changed(matches, edit, changed)
            if gone.any():
                removed[matches.position] = gone
        added = [file for one in changed for file in one.files]
        added += self._files.successors(changed, edit)
        marks = self._marker.mark(head, context, changed)
        added += marks.files
        added += self._others(head, context, changed)
        self._files.finish()
        return FileChanges(added, merged_masks(removed, marks.superseded))

    def operation(self, changes: FileChanges) -> Operation:
        """The operation that describes the actual effect."""
        return operation_of(changes)

    def _changed(self, matches: Matches, edit: RowEdit, changed: list[FileResult]) -> Mask:
        """Change the files of a manifest and add them to ``changed``; a mask of the entries to remove."""
        gone = matches.whole.copy() if edit.drops else np.zeros(len(matches.whole), bool)
        chosen = matches.some if edit.drops else matches.some | matches.whole
        if chosen.any():
            made = self._files.of(matches.entries.filter(chosen), edit)
            gone[np.flatnonzero(chosen)] = [one.changes and one.positions is None for one in made]
            changed += made
        return gone

    def _validate(self, head: Head, context: ActionContext, row_filter: RowFilter) -> None:
        level = self._level or IsolationLevel.of(head.metadata.properties.get(self.isolation.name))
        if level is None or self._since is None:
            return
        since = replace(self._since, own=frozenset(context.snapshots))
        remedy = self._remedy(level)
        if level is IsolationLevel.SERIALIZABLE:
            no_new_data(head, since, row_filter, f"{remedy}; the level 'snapshot' tolerates rows that were added")
        no_new_deletes(head, since, row_filter, remedy)
        no_removed_data(head, since, row_filter, remedy)

    def _remedy(self, level: IsolationLevel) -> str:
        by = f"the table property '{self.isolation.name}'" if self._level is None else "isolation_level"
        return (
            f"or do without the level '{level}', which {by} asks for: the change is then evaluated anew on what was "
            "committed"
        )
