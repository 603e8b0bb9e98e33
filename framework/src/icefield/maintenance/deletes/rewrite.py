"""Rewriting position deletes: small files into larger ones, and in version 3 into deletion vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.maintenance.deletes.action import DeleteUpkeep
from icefield.maintenance.deletes.affected import Affected, pieces
from icefield.maintenance.deletes.marks import Marks, MarkWriter
from icefield.maintenance.deletes.results import RewriteDeletesResult
from icefield.maintenance.deletes.survey import DeleteSurvey, Ints
from icefield.manifest import DataFile, DataFileContent
from icefield.manifest import schemas as f
from icefield.metadata.properties import DELETE_GRANULARITY, DELETE_TARGET_FILE_SIZE, get_int, get_str
from icefield.metadata.refs import MAIN_BRANCH
from icefield.puffin.roaring import Positions
from icefield.scan.deletes.store import DeleteStore
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import Mask
from icefield.transaction.row_level.head_deletes import HeadDeletes
from icefield.transaction.snapshot_producer import FileChanges

_SMALL: Final = 0.75
_LARGE: Final = 1.8
"""Files of less, or more, than so much of the target size are worth rewriting; as in Iceberg's Java library."""


@dataclass(frozen=True, slots=True)
class RewritePolicy:
    """Which position deletes to rewrite.

    Those of partitions that may hold rows of ``row_filter``: where ``min_input_files`` of a partition are far from the
    target size, or several of them make up a file of it; all of them with ``rewrite_all``. ``target_bytes`` defaults to
    ``write.delete.target-file-size-bytes``. Raises ``InvalidArgument`` for a size or number below one.
    """

    row_filter: BooleanExpression | None = None
    target_bytes: int | None = None
    min_input_files: int = 5
    rewrite_all: bool = False

    def __post_init__(self) -> None:
        for what, value in (("target_file_size", self.target_bytes), ("min_input_files", self.min_input_files)):
            if value is not None and value < 1:
                raise InvalidArgument(f"{what} must be at least 1, not {value}")

    def chosen(self, survey: DeleteSurvey) -> Mask:
        """The position delete files, and deletion vectors, that are rewritten."""
        metadata = survey.head.metadata
        target = self.target_bytes or get_int(metadata.properties, DELETE_TARGET_FILE_SIZE)
        among = ~survey.is_equality
        if self.row_filter is not None:
            among &= survey.matching(self.row_filter)
        if metadata.format_version >= 3:
            return (among & survey.is_position) | self._vectors(survey, among & survey.is_vector, target)
        if self.rewrite_all:
            return among
        by_file = get_str(metadata.properties, DELETE_GRANULARITY).lower() == "file"
        groups = survey.groups(by_file=by_file)
        return self._worth_it(among, groups, survey.sizes, target)

    def _vectors(self, survey: DeleteSurvey, among: Mask, target: int) -> Mask:
        """The vectors of all small Puffin files, where there are several."""
        codes = np.asarray(survey.column(f.FILE_PATH).dictionary_encode().indices)
        sizes = survey.integers(f.FILE_SIZE)
        candidate = np.zeros(int(codes.max()) + 1, bool)
        candidate[codes[among & (self.rewrite_all | (sizes < _SMALL * target))]] = True
        count = int(np.count_nonzero(candidate))
        if not self.rewrite_all and count < self.min_input_files:
            return np.zeros(len(survey), bool)
        mask: Mask = candidate[codes] & survey.is_vector
        return mask

    def _worth_it(self, among: Mask, groups: Ints, sizes: Ints, target: int) -> Mask:
        odd = among & ((sizes < _SMALL * target) | (sizes > _LARGE * target))
        most = int(groups.max()) + 1
        counts = np.bincount(groups[odd], minlength=most)
        together = np.bincount(groups[odd], sizes[odd], most)
        worth = (counts >= self.min_input_files) | ((counts > 1) & (together >= target)) | (together > _LARGE * target)
        mask: Mask = odd & worth[groups]
        return mask


class RewritePositionDeletes(DeleteUpkeep):
    """Writes the positions of position delete files, and of vectors, into fewer files.

    Positions of data files that are gone are left out. A new file has the data sequence number of the newest deletes
    in it: it applies to the same rows, and whoever checks for new deletes finds it where these were new.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        policy: RewritePolicy,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._policy = policy
        self._writer = MarkWriter()
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
        read = partial(_positions, HeadDeletes(head).store)
        copied = chosen & survey.is_vector & used
        numbers = survey.sequences[copied].tolist()
        vectors = [*zip(survey.files(copied), numbers, strict=True)]
        marks = self._writer.write(
            head, context, pieces(survey, parts, partial(_is_wanted, None if whole else names)), read, vectors
        )
        self._count(survey, chosen, marks)
        return FileChanges(marks.files, survey.masks(chosen), marks.numbers)

    def plan(self, head: Head) -> tuple[DeleteSurvey, Mask]:
        """Which delete files go, counted in ``result``. No delete file is read."""
        survey = DeleteSurvey(head)
        chosen = self._policy.chosen(survey) if len(survey) else np.zeros(0, bool)
        self._count(survey, chosen)
        return survey, chosen

    def _count(self, survey: DeleteSurvey, chosen: Mask, marks: Marks | None = None) -> None:
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
        )


def size_of(files: list[DataFile]) -> int:
    """Bytes of delete files; a deletion vector counts with its own."""
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
