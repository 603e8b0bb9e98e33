"""One manifest, as a manifest list describes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from icefield.errors import InvalidMetadata

UNASSIGNED: Final = -1
"""The sequence number of a manifest that no manifest list has named yet."""


class ManifestContent(IntEnum):
    """The content of a manifest: manifest file field 517."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The summary of one partition field over a manifest's files. Bounds are encoded, over non-null, non-NaN values."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """The struct ``manifest_file`` of a manifest list.

    A count of None is unknown, and treated as more than zero. ``sequence_number`` and ``min_sequence_number`` are
    ``UNASSIGNED`` until a manifest list names the manifest.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int = 0
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    first_row_id: int | None = None

    @property
    def has_added_files(self) -> bool:
        """Whether entries with status ADDED may be there."""
        return self.added_files_count is None or self.added_files_count > 0

    @property
    def has_existing_files(self) -> bool:
        """Whether entries with status EXISTING may be there."""
        return self.existing_files_count is None or self.existing_files_count > 0

    @property
    def has_deleted_files(self) -> bool:
        """Whether entries with status DELETED may be there."""
        return self.deleted_files_count is None or self.deleted_files_count > 0

    @property
    def entry_count(self) -> int:
        """Entries by the counts that are known."""
        counts = (self.added_files_count, self.existing_files_count, self.deleted_files_count)
        return sum(max(0, count or 0) for count in counts)

    @property
    def live_rows_count(self) -> int | None:
        """Rows of the files that are added or existing; None when a count is not known."""
        if self.added_rows_count is None or self.existing_rows_count is None:
            return None
        return self.added_rows_count + self.existing_rows_count

    def assigned(self, snapshot_id: int, sequence_number: int) -> ManifestFile:
        """The manifest under the sequence number of the snapshot that adds it; itself when it has one already.

        Raises ``InvalidMetadata`` when it was written for another snapshot: only this snapshot may number it.
        """
        if self.sequence_number != UNASSIGNED:
            return self
        if self.added_snapshot_id != snapshot_id:
            raise InvalidMetadata(
                f"manifest {self.manifest_path} of snapshot {self.added_snapshot_id} has no sequence number, "
                f"and snapshot {snapshot_id} cannot give it one",
                location=self.manifest_path,
            )
        lowest = sequence_number if self.min_sequence_number == UNASSIGNED else self.min_sequence_number
        return replace(self, sequence_number=sequence_number, min_sequence_number=lowest)
