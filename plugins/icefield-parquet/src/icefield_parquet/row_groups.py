"""Row groups and column chunks: where they are in a file, and which row groups a split selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefield.abc import Split


def chunk_range(chunk: Any) -> tuple[int, int]:
    """Where the pages of a column chunk begin in the file, at its dictionary or its first page, and where they end."""
    dictionary, start = chunk.dictionary_page_offset, int(chunk.data_page_offset)
    if dictionary and 0 < dictionary < start:
        start = int(dictionary)
    return start, start + int(chunk.total_compressed_size)


def row_group_start(group: Any) -> int:
    """Where a row group starts in the file: where its first column does."""
    return chunk_range(group.column(0))[0] if group.num_columns else 0


def in_split(starts: Sequence[int], split: Split) -> list[int]:
    """The row groups that start inside a byte range."""
    return [group for group, start in enumerate(starts) if split.start <= start < split.start + split.length]
