"""The strategy ``rename``: one atomic rename that refuses to replace. HDFS and local disks."""

from __future__ import annotations

from icefield.abc import FileSystemAbility, Pointer
from icefield.metadata.file_names import temporary_metadata_name
from icefield.toolkit.publishing import publish_by_rename
from icefield.toolkit.versioned_strategy import VersionedStrategy


class RenameStrategy(VersionedStrategy):
    """Writes ``<uuid>.metadata.json`` and renames it to ``v<V+1>.metadata.json``."""

    needs = (FileSystemAbility.ATOMIC_RENAME,)

    def publish(self, target: str, data: bytes) -> Pointer | None:
        temporary = f"{target.rpartition('/')[0]}/{temporary_metadata_name()}"
        return publish_by_rename(self.file_system, target, data, temporary)
