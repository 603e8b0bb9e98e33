"""The entry point to the actions on files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from icefield.transaction.action import Action
from icefield.transaction.branches.cherry_pick import CherryPick
from icefield.transaction.files.append import AppendFiles, FastAppendFiles
from icefield.transaction.files.replace_partitions import ReplacePartitions
from icefield.transaction.files.row_delta import RowDelta
from icefield.transaction.files.whole_files import DeleteFiles, OverwriteFiles, RewriteFiles


class UpdateSnapshot:
    """Begins actions on files, which the caller fills and then commits."""

    def __init__(
        self, stage: Callable[[Action], None], *, branch: str | None, snapshot_properties: Mapping[str, str]
    ) -> None:
        self._stage = stage
        self._options: dict[str, Any] = {"branch": branch, "snapshot_properties": snapshot_properties}

    def fast_append(self) -> FastAppendFiles:
        """Add files in a new manifest; other manifests are not touched."""
        return FastAppendFiles(self._stage, **self._options)

    def merge_append(self) -> AppendFiles:
        """Add files, and merge small manifests if the table's properties ask for it."""
        return AppendFiles(self._stage, **self._options)

    def delete(self) -> DeleteFiles:
        """Remove files."""
        return DeleteFiles(self._stage, **self._options)

    def overwrite(self) -> OverwriteFiles:
        """Remove files and add others."""
        return OverwriteFiles(self._stage, **self._options)

    def row_delta(self) -> RowDelta:
        """Add data files and delete files, and remove others."""
        return RowDelta(self._stage, **self._options)

    def rewrite(self) -> RewriteFiles:
        """Exchange files for others that hold the same rows."""
        return RewriteFiles(self._stage, **self._options)

    def replace_partitions(self) -> ReplacePartitions:
        """Add files and remove all earlier files of their partitions."""
        return ReplacePartitions(self._stage, **self._options)

    def cherry_pick(self, snapshot_id: int) -> CherryPick:
        """Publish a staged snapshot, or take over the change of a snapshot of another branch."""
        return CherryPick(self._stage, snapshot_id, **self._options)
