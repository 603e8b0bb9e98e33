"""One file of a table, as a manifest describes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import IntEnum
from itertools import repeat, starmap
from typing import Any, Final

import numpy as np

_NONE: Final[Mapping[int, Any]] = {}


class EntryStatus(IntEnum):
    """The status of a file in a snapshot: manifest entry field 0."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class DataFileContent(IntEnum):
    """The content of a file: data file field 134. A deletion vector counts as position deletes."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file or a delete file: the struct ``data_file`` of a manifest entry.

    ``file_format`` is always lower case. ``partition`` is the tuple of internal values in the order of the spec
    ``spec_id``. The statistics are by field id; ``lower_bounds`` and ``upper_bounds`` hold encoded values (single-value
    serialisation). Files of a scan plan carry only the requested statistics.
    """

    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    partition: tuple[Any, ...] = ()
    spec_id: int = 0
    content: DataFileContent = DataFileContent.DATA
    column_sizes: Mapping[int, int] = field(default_factory=lambda: _NONE, hash=False)
    value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE, hash=False)
    null_value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE, hash=False)
    nan_value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE, hash=False)
    lower_bounds: Mapping[int, bytes] = field(default_factory=lambda: _NONE, hash=False)
    upper_bounds: Mapping[int, bytes] = field(default_factory=lambda: _NONE, hash=False)
    key_metadata: bytes | None = field(default=None, repr=False)
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_deletion_vector(self) -> bool:
        """Whether the file is a blob in a Puffin file that deletes rows of one data file."""
        return self.content is DataFileContent.POSITION_DELETES and self.file_format == "puffin"


_DEFAULTS: Final = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory() for each in fields(DataFile)
}
_SLOTS: Final = {
    name: (getattr(DataFile, name).__set__, None if default is MISSING else default)
    for name, default in _DEFAULTS.items()
}
"""For each field of a data file: the slot's setter and the default value, None for a field that has none."""


def files_of_columns(count: int, columns: Mapping[str, Iterable[Any]]) -> list[DataFile]:
    """``count`` files with the values of these columns as fields; a field without a column has its default or None."""
    # Column by column: the constructor takes four times as long for each file.
    files = list(map(object.__new__, repeat(DataFile, count)))
    for name, (put, default) in _SLOTS.items():
        values = columns.get(name)
        deque(starmap(put, zip(files, repeat(default, count) if values is None else values, strict=True)), maxlen=0)
    return files


COUNTS: Final = tuple(f"{kind.name.lower()}_{what}_count" for what in ("files", "rows") for kind in EntryStatus)
"""The fields of ``ManifestFile`` for the number of files of each status, and for the number of their rows."""


def counts_by_status(status: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The ``COUNTS`` of entries, from the status and the number of rows of each; a negative number is not known."""
    masks = [status == kind for kind in EntryStatus]
    numbers = (*map(np.count_nonzero, masks), *(np.maximum(rows[mask], 0).sum() for mask in masks))
    return dict(zip(COUNTS, map(int, numbers), strict=True))
