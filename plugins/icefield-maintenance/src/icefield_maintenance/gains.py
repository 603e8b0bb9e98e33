"""The gains of maintenance: the effect that each operation would have on a table, from dry runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icefield.metadata import WRITE_TARGET_FILE_SIZE, get_int

if TYPE_CHECKING:
    from icefield import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The effect of an operation: a scan of the whole table opens ``after`` instead of ``before`` files.

    ``operation`` is a method of ``table.maintenance``, and ``options`` are its keywords. ``saved`` bytes are no longer
    read by a scan. The operation reads ``rewritten`` bytes and writes at most that many. ``places`` is the number of
    partitions that it concerns, and ``read_files`` the number of data files that it reads besides.
    """

    operation: str
    options: Mapping[str, Any] = field(default_factory=dict)
    before: int = 0
    after: int = 0
    saved: int = 0
    rewritten: int = 0
    places: int = 0
    read_files: int = 0

    @property
    def fewer(self) -> int:
        """The number of files by which a scan shrinks."""
        return self.before - self.after


def of_data_files(table: Table, deleted_share: float = 0.0, **options: Any) -> Gain | None:
    """The gain of ``rewrite_data_files``; ``deleted_share`` is the share of the table's rows that is deleted."""
    planned = table.maintenance.rewrite_data_files(dry_run=True, **options)
    if not planned.rewritten_data_files:
        return None
    target = options.get("target_file_size_bytes") or get_int(table.metadata.properties, WRITE_TARGET_FILE_SIZE)
    return Gain(
        operation="rewrite_data_files",
        options=options,
        before=planned.rewritten_data_files,
        after=sum(max(1, -(-group.rewritten_bytes // target)) for group in planned.groups),
        saved=int(min(1.0, deleted_share) * planned.rewritten_bytes),
        rewritten=planned.rewritten_bytes,
        places=len({group.partition for group in planned.groups}),
    )


def of_manifests(table: Table) -> Gain | None:
    """The gain of ``rewrite_manifests``."""
    planned = table.maintenance.rewrite_manifests(dry_run=True)
    if not planned.rewritten_manifests:
        return None
    return Gain(
        operation="rewrite_manifests",
        before=planned.rewritten_manifests,
        after=planned.added_manifests,
        saved=max(0, planned.rewritten_bytes - planned.added_bytes),
        rewritten=planned.rewritten_bytes,
    )


def of_position_deletes(table: Table, places: int = 1, **options: Any) -> Gain | None:
    """The gain of ``rewrite_position_delete_files``; ``places`` is the number of partitions with such deletes."""
    planned = table.maintenance.rewrite_position_delete_files(dry_run=True, **options)
    before = planned.rewritten_position_delete_files + planned.rewritten_puffin_files
    if not before:
        return None
    return Gain(
        operation="rewrite_position_delete_files",
        options=options,
        before=before,
        after=min(before, max(1, places)),
        rewritten=planned.rewritten_bytes,
        places=places,
    )


def of_equality_deletes(table: Table) -> Gain | None:
    """The gain of ``convert_equality_deletes``."""
    planned = table.maintenance.convert_equality_deletes(dry_run=True)
    if not planned.converted_equality_delete_files:
        return None
    return Gain(
        operation="convert_equality_deletes",
        before=planned.converted_equality_delete_files,
        after=min(1, planned.read_data_files),
        saved=planned.converted_bytes,
        rewritten=planned.converted_bytes + planned.read_bytes,
        read_files=planned.read_data_files,
    )


def of_dangling_deletes(table: Table) -> Gain | None:
    """The gain of ``remove_dangling_deletes``."""
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    before = planned.removed_position_delete_files + planned.removed_deletion_vectors
    before += planned.removed_equality_delete_files
    if not before:
        return None
    return Gain(operation="remove_dangling_deletes", before=before, saved=planned.removed_bytes)
