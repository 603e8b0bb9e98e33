"""Row groups and column chunks: where they are in a file, and which row groups a split selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefield.abc import Split


def chunk_range(chunk: Any) -> tuple[int, int]:
    """The start and end of a column chunk's pages in the file; the dictionary page comes first, if there is one."""
    dictionary, start = chunk.dictionary_page_offset, int(chunk.data_page_offset)
    if dictionary and 0 < dictionary < start:
        start = int(dictionary)
    return start, start + int(chunk.total_compressed_size)


def row_group_start(group: Any) -> int:
    """The start of a row group in the file, which is the start of its first column chunk."""
    return chunk_range(group.column(0))[0] if group.num_columns else 0


def in_split(starts: Sequence[int], split: Split) -> list[int]:
    """The row groups that start inside a byte range."""
    return [group for group, start in enumerate(starts) if split.start <= start < split.start + split.length]
