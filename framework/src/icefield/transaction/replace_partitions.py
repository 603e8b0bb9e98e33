"""Dynamic partition overwrite: new files take the place of all that the partitions they are in held before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np

from icefield.manifest.data_file import DataFile, EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata.snapshots import REPLACE_PARTITIONS, Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.append import AddedFiles
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import no_new_data, no_new_deletes, no_removed_data
from icefield.transaction.matching import Mask, PartitionSet
from icefield.transaction.overwrite import operation_of
from icefield.transaction.snapshot_producer import FileChanges
from icefield.transaction.validated import ValidatedOverwrite


class ReplacePartitions(ValidatedOverwrite):
    """Add files and remove every live file of the partitions that they are in, of the same spec.

    Files of other specs stay, since no partition of theirs is a partition of this one. Evaluated anew on each base.
    Without partitions the whole table is replaced.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._strings.setdefault(REPLACE_PARTITIONS, "true")
        self._added = AddedFiles()

    def add_file(self, *files: DataFile) -> Self:
        """Add data files."""
        self._added.add(files)
        return self

    def add_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add data files under names that the caller drew at random, which need not be looked for in the table."""
        self._added.add(files, fresh=True)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        files = self._added.files()
        if not files:
            return FileChanges()
        self._added.refuse_live(head)
        partitions = PartitionSet(head)
        for file in files:
            partitions.add(file.spec_id, file.partition)
        self._validate(head, partitions)
        whole_table = any(head.spec(file.spec_id).is_unpartitioned for file in files)
        return FileChanges(files, _live_files(head, None if whole_table else partitions))

    def operation(self, changes: FileChanges) -> Operation:
        """What was done in effect."""
        return operation_of(changes)

    def _validate(self, head: Head, partitions: PartitionSet) -> None:
        since = self._validated_since()
        if since is None:
            return
        if self._no_data:
            no_new_data(head, since, partitions, "or leave out validate_no_conflicting_data")
        if self._no_deletes:
            remedy = "or leave out validate_no_conflicting_deletes"
            no_new_deletes(head, since, partitions, remedy)
            no_removed_data(head, since, partitions, remedy)


def _live_files(head: Head, partitions: PartitionSet | None) -> dict[int, Mask]:
    found: dict[int, Mask] = {}
    data = ManifestContent.DATA
    chosen = head.live(data) if partitions is None else partitions.manifests(data)
    for (position, _), entries in zip(chosen, head.read([one for _, one in chosen]), strict=True):
        mask = np.asarray(entries.status() != EntryStatus.DELETED)
        if partitions is not None:
            mask = mask & partitions.may_match(entries)
        if mask.any():
            found[position] = mask
    return found
