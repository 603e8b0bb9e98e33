"""Rewriting position deletes: small files into larger ones, and in version 3 into deletion vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from icefield import manifest as f
from icefield.abc import WorkRunner
from icefield.engine import DeleteStore, FileChanges, Head, HeadDeletes
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata import MAIN_BRANCH
from icefield.puffin import Positions
from icefield.scan import ScanContext
from icefield.storage import Mask
from icefield.transaction import Action, ActionContext

from icefield_maintenance.deletes.action import DeleteMaintenance
from icefield_maintenance.deletes.affected import Affected, pieces
from icefield_maintenance.deletes.marks import MarkWriter, Read, WrittenDeletes
from icefield_maintenance.deletes.policy import RewritePolicy
from icefield_maintenance.deletes.results import RewriteDeletesResult
from icefield_maintenance.deletes.survey import DeleteSurvey


@dataclass(frozen=True, slots=True)
class RecordedPositions(Read):
    """The positions in the delete files of a data file."""

    scan: ScanContext

    def reader(self) -> Callable[[Affected], Positions | None]:
        """A function that returns the positions. It reads each delete file once."""
        return partial(_positions, DeleteStore(self.scan))


class RewritePositionDeletes(DeleteMaintenance):
    """Writes the positions of position delete files, and of vectors, into fewer files.

    Positions of removed data files are left out. A new file has the highest data sequence number of the deletes that
    apply to its data files: it applies to the same rows, and conflict checks of other writers still find its deletes.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        policy: RewritePolicy,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        runner: WorkRunner | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._policy = policy
        self._writer = MarkWriter(runner, policy.target_bytes)
        self.result = RewriteDeletesResult()

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The delete files that come and go."""
        survey, chosen = self.plan(head)
        if not chosen.any():
            return FileChanges()
        parts, used = survey.affected(chosen & survey.is_position)
        names = {file.file_path for file in survey.files(chosen & survey.is_position & used)}
        # In version 3 a vector takes the place of every position delete file of its data file.
        whole = head.metadata.format_version >= 3
        read = RecordedPositions(HeadDeletes(head).scan)
        copied = chosen & survey.is_vector & used
        numbers = survey.sequences[copied].tolist()
        vectors = [*zip(survey.files(copied), numbers, strict=True)]
        marks = self._writer.write(
            head,
            context,
            pieces(survey, parts, partial(_is_wanted, None if whole else names)),
            read,
            vectors,
            affected=sum(map(len, parts)),
        )
        self._count(survey, chosen, marks)
        return FileChanges(marks.files, survey.masks(chosen), marks.numbers)

    def plan(self, head: Head) -> tuple[DeleteSurvey, Mask]:
        """Which delete files go, counted in ``result``. No delete file is read."""
        survey = DeleteSurvey(head)
        chosen = self._policy.chosen(survey) if len(survey) else np.zeros(0, bool)
        self._count(survey, chosen)
        return survey, chosen

    def _count(self, survey: DeleteSurvey, chosen: Mask, marks: WrittenDeletes | None = None) -> None:
        self._changes = bool(chosen.any())
        if not self._changes:
            self.result = RewriteDeletesResult()
            return
        added = [] if marks is None else marks.files
        vectors = [file for file in added if file.is_deletion_vector]
        paths = survey.column(f.FILE_PATH)
        self.result = RewriteDeletesResult(
            rewritten_position_delete_files=int(np.count_nonzero(chosen & survey.is_position)),
            rewritten_deletion_vectors=int(np.count_nonzero(chosen & survey.is_vector)),
            rewritten_puffin_files=len(set(paths.filter(chosen & survey.is_vector).to_pylist())),
            added_position_delete_files=len(added) - len(vectors),
            added_deletion_vectors=len(vectors),
            added_puffin_files=len({file.file_path for file in vectors}),
            rewritten_bytes=int(survey.sizes[chosen].sum()),
            added_bytes=size_of(added),
            snapshot_id=None if marks is None else self.committed_id,
            _taken=survey.keys.filter(pa.array(chosen)) if marks is None else None,
        )


def size_of(files: list[DataFile]) -> int:
    """The bytes of delete files; a deletion vector counts with its own size."""
    return sum(
        (file.content_size_in_bytes or 0) if file.is_deletion_vector else file.file_size_in_bytes for file in files
    )


def _is_wanted(names: set[str] | None, delete: DataFile) -> bool:
    if delete.content is not DataFileContent.POSITION_DELETES:
        return False
    return names is None or delete.file_path in names


def _positions(store: DeleteStore, affected: Affected) -> Positions | None:
    file = affected.task.file
    deletes = store.of(affected.task, file)
    if deletes is None:
        return None
    positions = deletes.positions
    if file.record_count >= 0:
        positions = positions[: np.searchsorted(positions, file.record_count)]
    return positions if len(positions) else None
