"""Row groups: where they start, and which of them a split selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefield.abc import Split


def row_group_start(group: Any) -> int:
    """Where a row group starts in the file: at the dictionary of its first column, or its first page."""
    if group.num_columns == 0:
        return 0
    first = group.column(0)
    dictionary, page = first.dictionary_page_offset, first.data_page_offset
    return int(dictionary) if dictionary and 0 < dictionary < page else int(page)


def in_split(starts: Sequence[int], split: Split) -> list[int]:
    """The row groups that start inside a byte range."""
    return [group for group, start in enumerate(starts) if split.start <= start < split.start + split.length]
