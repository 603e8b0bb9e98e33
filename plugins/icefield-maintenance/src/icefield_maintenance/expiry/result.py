"""The result of an expiry, or of its dry run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from icefield.engine import FileKind
from icefield.metadata import TableMetadata
from icefield.toolkit import html_of, short_repr

from icefield_maintenance.expiry.retention import Expired
from icefield_maintenance.expiry.unreachable import Unreachable

_SCHEMA: Final = pa.schema([pa.field("kind", pa.string(), False), pa.field("location", pa.string(), False)])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpireSnapshotsResult:
    """The expired snapshots and refs, and the number of files of each kind that only these referred to.

    These files were deleted, except for ``undeleted`` files. A dry run changes nothing, and ``locations`` names them.
    """

    snapshot_ids: tuple[int, ...] = ()
    """The snapshots, in the order in which they were made."""

    refs: tuple[str, ...] = ()
    """The branches and tags."""

    dry_run: bool = False
    data_files: int = 0
    position_delete_files: int = 0
    equality_delete_files: int = 0
    deletion_vector_files: int = 0
    """Puffin files with deletion vectors."""

    manifests: int = 0
    manifest_lists: int = 0
    statistics_files: int = 0
    partition_statistics_files: int = 0
    metadata_files: int = 0
    """Table metadata files that left the metadata log by this commit."""

    undeleted: int = 0
    """Files that the store did not delete, and files that lead the next run to these. The log says why."""

    kept_files: int = 0
    """Unreachable files that stay, as they are outside of the table's own folders.

    Another table may have written them. The catalog's property ``location.owned-only=false`` deletes them, too.
    """

    kept_folders: tuple[str, ...] = ()
    """The folders of these files, up to a hundred."""

    _found: Unreachable | None = field(default=None, repr=False, compare=False)

    __repr__ = short_repr
    _repr_html_ = html_of

    @property
    def files(self) -> int:
        """Files of all kinds."""
        return (
            self.data_files
            + self.position_delete_files
            + self.equality_delete_files
            + self.deletion_vector_files
            + self.manifests
            + self.manifest_lists
            + self.statistics_files
            + self.partition_statistics_files
            + self.metadata_files
        )

    def locations(self) -> pa.RecordBatchReader:
        """The files of a dry run: ``kind`` (``data``, ``manifest``, ...) and ``location``, in batches."""
        return pa.RecordBatchReader.from_batches(_SCHEMA, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._found is not None:
            labels = pa.array([kind.label for kind in FileKind], pa.string())
            for locations, kinds in self._found.batches():
                yield pa.record_batch([labels.take(pa.array(kinds)), locations], schema=_SCHEMA)


def result_of(
    before: TableMetadata,
    expired: Expired,
    found: Unreachable | None = None,
    *,
    dry_run: bool = False,
    undeleted: int = 0,
) -> ExpireSnapshotsResult:
    """The result for the expired part of a version, and the unreachable files."""
    counts = np.zeros(len(FileKind), np.int64) if found is None else found.counts()
    return ExpireSnapshotsResult(
        snapshot_ids=tuple(each for each in before.snapshots.positions if each in expired.snapshot_ids),
        refs=expired.refs,
        dry_run=dry_run,
        data_files=int(counts[FileKind.DATA]),
        position_delete_files=int(counts[FileKind.POSITION_DELETES]),
        equality_delete_files=int(counts[FileKind.EQUALITY_DELETES]),
        deletion_vector_files=int(counts[FileKind.DELETION_VECTORS]),
        manifests=int(counts[FileKind.MANIFEST]),
        manifest_lists=int(counts[FileKind.MANIFEST_LIST]),
        statistics_files=int(counts[FileKind.STATISTICS]),
        partition_statistics_files=int(counts[FileKind.PARTITION_STATISTICS]),
        metadata_files=int(counts[FileKind.METADATA]),
        undeleted=undeleted,
        kept_files=0 if found is None else found.kept.files,
        kept_folders=() if found is None else tuple(sorted(found.kept.folders)),
        _found=found if dry_run else None,
    )
