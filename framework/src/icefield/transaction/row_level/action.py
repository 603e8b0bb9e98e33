"""The base of all operations on rows: each is evaluated anew on each base, file by file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from icefield.manifest.data_file import DataFile
from icefield.metadata import MAIN_BRANCH, Property, TableMetadata
from icefield.transaction.action import ActionContext
from icefield.transaction.conflicts import ConflictRange, Conflicts, IsolationLevel
from icefield.transaction.head.branch_head import Head, Mask, merged_masks
from icefield.transaction.head.filtering import Matches, RowFilter
from icefield.transaction.row_level.changed_files import FileResult, FileResults
from icefield.transaction.row_level.delete_marker import mark_rows, superseded
from icefield.transaction.row_level.edits import RowEdit
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer


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

    def _prepare(self) -> None:
        self._files = FileResults()
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

    def _others(self, head: Head, changed: Sequence[FileResult]) -> Sequence[DataFile]:
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
        dropped = 0
        for matches in row_filter.matches():
            dropped += edit.drops and int(np.count_nonzero(matches.whole))
            gone = self._changed(matches, edit, changed)
            if gone.any():
                removed[matches.position] = gone
        added = [file for one in changed for file in one.files]
        added += self._files.successors(changed, edit)
        marked = [one for one in changed if one.positions is not None]
        added += mark_rows(self._files, head, context, marked)
        others = self._others(head, changed)
        added += others
        self._files.finish()
        self.count_rows(
            inserted=sum(file.record_count for file in others),
            updated=sum(one.updated for one in changed),
            deleted=None if dropped else sum(one.deleted for one in changed),
        )
        return FileChanges(added, merged_masks(removed, superseded(head, marked)))

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
        conflicts = Conflicts(head, replace(self._since, own=frozenset(context.snapshots)))
        remedy = self._remedy(level)
        if level is IsolationLevel.SERIALIZABLE:
            conflicts.no_new_data(row_filter, f"{remedy}; the level 'snapshot' tolerates rows that were added")
        conflicts.no_new_deletes(row_filter, remedy)
        conflicts.no_removed_data(row_filter, remedy)

    def _remedy(self, level: IsolationLevel) -> str:
        by = f"the table property '{self.isolation.name}'" if self._level is None else "isolation_level"
        return (
            f"or do without the level '{level}', which {by} asks for: the change is then evaluated anew on what was "
            "committed"
        )
