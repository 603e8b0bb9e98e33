"""Converting equality deletes into position deletes, or deletion vectors in version 3, by finding the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.abc import WorkRunner
from icefield.engine import DeleteStore, FileChanges, Head, HeadDeletes, TaskReader
from icefield.errors import UnsupportedFeature
from icefield.expressions import BooleanExpression
from icefield.manifest import DataFile, ManifestEntries
from icefield.metadata import MAIN_BRANCH
from icefield.puffin import Positions
from icefield.scan import FileScanTask, ScanContext
from icefield.schema import Schema
from icefield.storage import Mask
from icefield.transaction import Action, ActionContext
from icefield.types import POS

from icefield_maintenance.deletes.action import DeleteMaintenance
from icefield_maintenance.deletes.affected import Affected, pieces
from icefield_maintenance.deletes.marks import MarkWriter, Read, WrittenDeletes
from icefield_maintenance.deletes.results import ConvertEqualityDeletesResult
from icefield_maintenance.deletes.rewrite import size_of
from icefield_maintenance.deletes.survey import DeleteSurvey


class ConvertEqualityDeletes(DeleteMaintenance):
    """Replaces equality deletes by position deletes, or by deletion vectors.

    Each affected data file is read once, with all its deletes applied: the missing rows are its deleted rows. A new
    delete file has the data sequence number of the newest deletes that it replaces.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        row_filter: BooleanExpression | None = None,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        runner: WorkRunner | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._filter = row_filter
        self._writer = MarkWriter(runner)
        self.result = ConvertEqualityDeletesResult()

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The delete files that come and go."""
        survey, chosen, parts = self.plan(head)
        if not chosen.any():
            return FileChanges()
        found = pieces(survey, parts, _is_any)
        marks = self._writer.write(head, context, found, MissingRows.of(head), affected=sum(map(len, parts)))
        self._count(survey, chosen, parts, marks)
        return FileChanges(marks.files, survey.masks(chosen | _replaced(survey, marks)), marks.numbers)

    def plan(self, head: Head) -> tuple[DeleteSurvey, Mask, list[ManifestEntries]]:
        """Which equality deletes are converted, and which data files are read for it, counted in ``result``."""
        survey = DeleteSurvey(head)
        chosen = np.zeros(0, bool)
        parts: list[ManifestEntries] = []
        if len(survey):
            chosen = survey.is_equality.copy()
            if self._filter is not None:
                chosen &= survey.matching(self._filter)
            if chosen.any():
                parts, _ = survey.affected(chosen)
        self._count(survey, chosen, parts)
        return survey, chosen, parts

    def _count(
        self, survey: DeleteSurvey, chosen: Mask, parts: list[ManifestEntries], marks: WrittenDeletes | None = None
    ) -> None:
        self._changes = bool(chosen.any())
        added = [] if marks is None else marks.files
        vectors = sum(file.is_deletion_vector for file in added)
        self.result = ConvertEqualityDeletesResult(
            converted_equality_delete_files=int(np.count_nonzero(chosen)),
            converted_bytes=int(survey.sizes[chosen].sum()) if len(survey) else 0,
            read_data_files=sum(map(len, parts)),
            read_bytes=sum(pc.sum(part.column(f.FILE_SIZE)).as_py() or 0 for part in parts),
            deleted_rows=0 if marks is None else marks.rows,
            added_position_delete_files=len(added) - vectors,
            added_deletion_vectors=vectors,
            added_bytes=size_of(added),
            snapshot_id=None if marks is None else self.committed_id,
            _taken=survey.keys.filter(pa.array(chosen)) if self._changes and marks is None else None,
        )


def _replaced(survey: DeleteSurvey, marks: WrittenDeletes) -> Mask:
    """The vectors, and the position delete files of single data files, for which new vectors count."""
    if survey.head.metadata.format_version < 3 or not marks.marked:
        return np.zeros(len(survey), bool)
    return survey.naming(marks.marked) & ~survey.is_equality


def _is_any(delete: DataFile) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class MissingRows(Read):
    """The rows of data files that a scan leaves out: all if ``whole``, else only rows of equality deletes."""

    scan: ScanContext
    whole: bool

    @classmethod
    def of(cls, head: Head) -> MissingRows:
        """Make it for the files of a head. Raises ``UnsupportedFeature`` for a table with a column ``_pos``."""
        schema = head.metadata.schema()
        if schema.has_field(POS.name):
            raise UnsupportedFeature(
                f"the table has a column '{POS.name}', the name of the positions by which rows are found; rename it",
                field_id=schema.find_field(POS.name).field_id,
            )
        return cls(replace(HeadDeletes(head).scan, projection=Schema(POS)), head.metadata.format_version >= 3)

    def reader(self) -> Callable[[Affected], Positions | None]:
        """A function that finds the rows. It reads each delete file once, and each data file."""
        return _DeletedRowReader(self).positions


class _DeletedRowReader:
    """Finds the rows of data files that are deleted."""

    def __init__(self, asked: MissingRows) -> None:
        self._store = DeleteStore(asked.scan)
        self._reader = TaskReader(asked.scan, self._store)
        self._whole = asked.whole

    def positions(self, affected: Affected) -> Positions | None:
        """The rows that only equality deletes delete, or in version 3 all deleted rows.

        None if the equality deletes delete no row beyond the other deletes.
        """
        task = affected.task
        rows = self._rows(task)
        mask = np.ones(rows, bool)
        for left in self._left(task):
            mask[left] = False
        before = self._store.of(task, task.file)
        older = np.zeros(0, np.int64) if before is None else before.positions
        older = older[: np.searchsorted(older, rows)]
        every = np.flatnonzero(mask)
        if len(every) <= len(older):
            return None
        if self._whole:
            return every
        mask[older] = False
        return np.flatnonzero(mask)

    def _rows(self, task: FileScanTask) -> int:
        """The number of rows of a file, counted if its manifest does not state it."""
        if task.file.record_count >= 0:
            return task.file.record_count
        return sum(map(len, self._left(FileScanTask(task.file))))

    def _left(self, task: FileScanTask) -> Iterator[Positions]:
        """The positions of the rows that are not deleted."""
        for batch in self._reader.read(task):
            yield batch.column(0).to_numpy()
