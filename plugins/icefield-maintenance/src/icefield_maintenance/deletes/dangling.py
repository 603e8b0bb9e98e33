"""Removing delete files that delete no row.

A delete file is dangling where it applies to no live data file: its data file is gone, or every data file of its
partition is newer, or has a deletion vector that counts instead. Spec: "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.engine import FileChanges, Head
from icefield.metadata import MAIN_BRANCH
from icefield.transaction import Action, ActionContext

from icefield_maintenance.deletes.action import DeleteMaintenance
from icefield_maintenance.deletes.results import RemoveDanglingDeletesResult
from icefield_maintenance.deletes.survey import DeleteSurvey


class RemoveDanglingDeletes(DeleteMaintenance):
    """Removes the delete files that apply to no live data file, except files with a key in ``gone`` (of a survey)."""

    def __init__(
        self,
        stage: Callable[[Action], None],
        *,
        gone: Iterable[pa.Array] = (),
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._gone = tuple(gone)
        self.result = RemoveDanglingDeletesResult()

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The delete files to remove."""
        return self.plan(head)

    def plan(self, head: Head) -> FileChanges:
        """Which delete files go, counted in ``result``. No delete file is read."""
        survey = DeleteSurvey(head)
        if not len(survey):
            self.result, self._changes = RemoveDanglingDeletesResult(), False
            return FileChanges()
        gone = ~survey.used()
        for taken in self._gone:
            gone &= ~np.asarray(pc.is_in(survey.keys, value_set=taken))
        self._changes = bool(gone.any())
        self.result = RemoveDanglingDeletesResult(
            removed_position_delete_files=int(np.count_nonzero(gone & survey.is_position)),
            removed_deletion_vectors=int(np.count_nonzero(gone & survey.is_vector)),
            removed_equality_delete_files=int(np.count_nonzero(gone & survey.is_equality)),
            removed_bytes=int(survey.sizes[gone].sum()),
            snapshot_id=self.committed_id,
        )
        return FileChanges(removed=survey.masks(gone))
