"""The choice of position deletes to rewrite, such that fewer files result."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Final

import numpy as np
from icefield import manifest as f
from icefield.engine import puffin_files
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.metadata import DELETE_GRANULARITY, DELETE_TARGET_FILE_SIZE, LONG_MAX, get_int, get_str
from icefield.storage import Mask

from icefield_maintenance.deletes.affected import MOST_IN_A_PIECE
from icefield_maintenance.deletes.marks import most_lots
from icefield_maintenance.deletes.survey import DeleteSurvey, Ints

_SMALL: Final = 0.75
_LARGE: Final = 1.8
"""Files below or above these shares of the target size are worth rewriting; as in Iceberg's Java library."""


@dataclass(frozen=True, slots=True)
class RewritePolicy:
    """The choice of position deletes to rewrite, in partitions that may hold rows of ``row_filter``.

    A partition is chosen if ``min_input_files`` of its delete files are far from the target size, or if these files
    make up a file of that size. The rewrite must give fewer files, or split files that are too large. ``rewrite_all``
    chooses all position deletes. ``target_bytes`` defaults to ``write.delete.target-file-size-bytes``. Raises
    ``InvalidArgument`` for a size or number below one.
    """

    row_filter: BooleanExpression | None = None
    target_bytes: int | None = None
    min_input_files: int = 5
    rewrite_all: bool = False

    def __post_init__(self) -> None:
        for what, value in (("target_file_size", self.target_bytes), ("min_input_files", self.min_input_files)):
            if value is not None and not (isinstance(value, Integral) and 1 <= value <= LONG_MAX):
                raise InvalidArgument(f"{what} is a whole number and must be at least 1, not {value!r:.40}")

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
        return self._worth_it(survey, among, target, by_file)

    def _vectors(self, survey: DeleteSurvey, among: Mask, target: int) -> Mask:
        """The vectors of all small Puffin files, if there are enough of these and the rewrite gives fewer."""
        codes = np.asarray(survey.column(f.FILE_PATH).dictionary_encode().indices)
        sizes = survey.integers(f.FILE_SIZE)
        candidate = np.zeros(int(codes.max()) + 1, bool)
        candidate[codes[among & (self.rewrite_all | (sizes < _SMALL * target))]] = True
        count = int(np.count_nonzero(candidate))
        chosen: Mask = candidate[codes] & survey.is_vector
        if self.rewrite_all:
            return chosen
        if count < self.min_input_files or puffin_files(survey.sizes[chosen], survey.names[chosen], target) >= count:
            return np.zeros(len(survey), bool)
        return chosen

    def _worth_it(self, survey: DeleteSurvey, among: Mask, target: int, by_file: bool) -> Mask:
        groups, sizes = survey.groups(by_file=by_file), survey.sizes
        large = among & (sizes > _LARGE * target)
        odd = large | (among & (sizes < _SMALL * target))
        most = int(groups.max()) + 1
        counts = np.bincount(groups[odd], minlength=most)
        together = np.bincount(groups[odd], sizes[odd], most)
        worth = (counts >= self.min_input_files) | ((counts > 1) & (together >= target)) | (together > _LARGE * target)
        odd &= worth[groups]
        after = _files_after(survey, odd, groups, target, by_file)
        divided = np.bincount(groups[large], minlength=most) > 0
        # Positions beyond the memory or file size limit would be split again at each run.
        mask: Mask = odd & ((after < counts) | (divided & (after > counts)))[groups]
        return mask


def _files_after(survey: DeleteSurvey, odd: Mask, groups: Ints, target: int, by_file: bool) -> Ints:
    """The most files that a rewrite of each group's delete files would write."""
    most = int(groups.max()) + 1
    rows = np.maximum(survey.integers(f.RECORD_COUNT), 1)
    positions = np.bincount(groups[odd], rows[odd], most).astype(np.int64)
    of_partitions = np.arange(most) < survey.partitions
    # Positions bound the number of data files, and this bound mostly suffices.
    data_files = np.where(of_partitions, positions, 1)
    uncertain = of_partitions & (by_file | (positions > MOST_IN_A_PIECE))
    counted = odd & uncertain[groups]
    if counted.any():
        known = survey.data_files(counted)
        data_files[: len(known)][uncertain[: len(known)]] = known[uncertain[: len(known)]]
    lots = data_files if by_file else most_lots(positions, data_files)
    by_size = -(-np.bincount(groups[odd], survey.sizes[odd], most).astype(np.int64) // target)
    made: Ints = np.maximum(lots, by_size)
    return made
