"""Dynamic partition overwrite: new files replace all earlier files of their partitions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import ValidationFailed
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata.snapshots import REPLACE_PARTITIONS
from icefield.partitioning.spec import normalised_key
from icefield.partitioning.transforms import BucketTransform
from icefield.transaction.action import ActionContext
from icefield.transaction.files.partition_rows import rows_of_partitions
from icefield.transaction.files.validated import ValidatedOverwrite
from icefield.transaction.head.branch_head import Head, Mask
from icefield.transaction.head.filtering import RowFilter
from icefield.transaction.head.matching import PartitionSet
from icefield.transaction.snapshots.snapshot_producer import FileChanges


class ReplacePartitions(ValidatedOverwrite):
    """Add files and remove every live file of their partitions, of the same spec.

    Files of other specs stay, since their partitions are other partitions. If such a file may hold rows of a replaced
    partition, these would stay beside the new rows: ``ValidationFailed``. Evaluated anew on each base. Without
    partitions the whole table is replaced.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._strings.setdefault(REPLACE_PARTITIONS, "true")

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        files = self._added.files()
        if not files:
            return FileChanges()
        self._added.refuse_live(head)
        partitions = PartitionSet(head, files)
        self._validate(head, partitions)
        if any(head.spec(file.spec_id).is_unpartitioned for file in files):
            return FileChanges(files, head.find(head.live(), lambda entries: np.ones(len(entries), bool)))
        _refuse_other_specs(head, files)
        return FileChanges(files, head.find(partitions.manifests(ManifestContent.DATA), partitions.may_match))

    def _validate(self, head: Head, partitions: PartitionSet) -> None:
        conflicts = self._validating(head)
        if conflicts is None:
            return
        if self._no_data:
            conflicts.no_new_data(partitions, "or leave out validate_no_conflicting_data")
        if self._no_deletes:
            remedy = "or leave out validate_no_conflicting_deletes"
            conflicts.no_new_deletes(partitions, remedy)
            conflicts.no_removed_data(partitions, remedy)


def _refuse_other_specs(head: Head, files: list[DataFile]) -> None:
    """Raise ``ValidationFailed`` where files of other specs may hold rows of the partitions of these files."""
    tuples: dict[int, dict[Hashable, tuple[Any, ...]]] = {}
    for file in files:
        tuples.setdefault(file.spec_id, {})[normalised_key(file.partition)] = file.partition
    if all(manifest.partition_spec_id in tuples for _, manifest in head.live()):
        return
    left: list[str] = []
    specs: set[int] = set()
    for spec_id, held in tuples.items():
        values = [*held.values()]
        rows = rows_of_partitions(head.spec(spec_id), head.metadata.schema(), values)
        for _, entries, some in RowFilter(head, rows).possible():
            if entries.spec_id not in tuples:
                some = some & _in_same_buckets(head, entries, spec_id, values)
                left += entries.column(f.FILE_PATH).filter(pa.array(some)).to_pylist()
                specs.update({entries.spec_id} if some.any() else ())
    if left:
        named = ", ".join(f"{number} {_shown(head, number)}" for number in sorted(specs))
        raise ValidationFailed(
            f"cannot replace partitions: {len(left)} data files of other partition specs ({named}) may hold rows of "
            f"them, which would stay beside the new ones, such as {left[0]}; write these files anew with "
            "rewrite_data_files(rewrite_all=True) first, or replace the rows by a filter with overwrite",
            files=tuple(left[:100]),
        )


def _in_same_buckets(head: Head, entries: ManifestEntries, spec_id: int, tuples: list[tuple[Any, ...]]) -> Mask:
    """A mask of another spec's files whose value in each bucket field of both specs occurs in the partitions."""
    mask = np.ones(len(entries), bool)
    mine = head.spec(spec_id)
    for place, field in enumerate(head.spec(entries.spec_id).fields):
        same = [one for one, own in enumerate(mine.fields) if own.definition[:2] == field.definition[:2]]
        if same and isinstance(field.transform, BucketTransform):
            column = entries.partition.field(place)
            wanted = pa.array([values[same[0]] for values in tuples], column.type)
            mask &= np.asarray(pc.is_in(column, value_set=wanted))
    return mask


def _shown(head: Head, spec_id: int) -> str:
    fields = head.spec(spec_id).fields
    return f"by {', '.join(field.name for field in fields)}" if fields else "unpartitioned"
