"""Row groups: where they start, and which of them a read takes in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from icefield.abc import Split


@dataclass(frozen=True, slots=True)
class Run:
    """Row groups that follow one another and are read in one pass; ``first_row`` is counted in the file."""

    groups: range
    first_row: int
    rows: int


def row_group_start(group: Any) -> int:
    """Where a row group starts in the file: at the dictionary of its first column, or its first page."""
    if group.num_columns == 0:
        return 0
    first = group.column(0)
    dictionary, page = first.dictionary_page_offset, first.data_page_offset
    return int(dictionary) if dictionary and 0 < dictionary < page else int(page)


def in_split(starts: Sequence[int], split: Split | None) -> list[int]:
    """The row groups that start inside a byte range; all of them without one."""
    if split is None:
        return list(range(len(starts)))
    return [group for group, start in enumerate(starts) if split.start <= start < split.start + split.length]


def runs_of(groups: Sequence[int], rows: Sequence[int], *, join: bool) -> list[Run]:
    """The passes over ascending row groups: neighbours in one pass, or each alone unless ``join``."""
    first_rows = np.concatenate(([0], np.cumsum(rows, dtype=np.int64))).tolist()
    ranges: list[range] = []
    for group in groups:
        if join and ranges and ranges[-1].stop == group:
            ranges[-1] = range(ranges[-1].start, group + 1)
        else:
            ranges.append(range(group, group + 1))
    return [Run(each, first_rows[each.start], first_rows[each.stop] - first_rows[each.start]) for each in ranges]
