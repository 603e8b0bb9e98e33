"""Groups of data files that one relation of Spark's own reader reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from icefield.scan import FileScanTask

from icefield_spark.roads.columns import FileColumn
from icefield_spark.roads.deleted import GroupDeletes

_FEW_ROWS = 1 << 18
"""So many rows without deletes are read beside those with deletes: a relation of their own would cost more."""


@dataclass(slots=True, eq=False)
class RelationFiles:
    """Files that one relation reads: they have one shape. ``held`` and ``constants`` are by field id."""

    held: dict[int, FileColumn]
    has_nans: bool
    """Whether its floats may be NaN, according to the NaN counts in manifests."""
    is_old: bool
    """Whether its dates and times may be of before 1900, by the bounds in manifests."""
    deleted: GroupDeletes | None = None
    """The deleted rows of the files; None if no delete file applies."""
    constants: dict[int, list[Any]] = field(default_factory=dict)
    """The values of missing columns and of metadata columns, one for each file."""
    tasks: list[FileScanTask] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """The files as Spark spells them."""
    size: int = 0

    def add(self, member: Member) -> None:
        """Add a file."""
        self.tasks.append(member.task)
        self.paths.append(member.path)
        self.size += member.task.file.file_size_in_bytes
        for field_id, value in member.constants.items():
            self.constants.setdefault(field_id, []).append(value)

    def varies(self, field_id: int) -> bool:
        """Whether a constant differs between files. The float -0.0 differs from 0.0, although both are equal."""
        first, *others = self.constants[field_id]
        shown = repr(first) if first == 0 else None
        return any(value != first or (shown and repr(value) != shown) for value in others)


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a relation; ``path``: as Spark spells it. Files with equal keys can be read by one relation."""

    task: FileScanTask
    path: str
    held: dict[int, FileColumn]
    constants: dict[int, Any]
    has_nans: bool
    is_old: bool
    key: tuple[Any, ...]


def groups_of(members: list[Member]) -> Iterator[RelationFiles]:
    """The relations of files with equal keys: one, unless many files have deletes and many have not."""
    marked = [each for each in members if each.task.delete_files]
    clean = [each for each in members if not each.task.delete_files]
    rows = [each.task.file.record_count for each in clean]
    if marked and min(rows, default=0) >= 0 and sum(rows) <= _FEW_ROWS:
        marked, clean = members, []
    for some, deleted in ((marked, GroupDeletes()), (clean, None)):
        if some:
            first = some[0]
            group = RelationFiles(first.held, first.has_nans, first.is_old, deleted)
            for each in some:
                group.add(each)
            yield group
