"""The strategy ``rename``: one atomic rename that refuses to replace. HDFS and local disks."""

from __future__ import annotations

from uuid import uuid4

from icefield.abc import FileSystemAbility
from icefield.publishing import publish_by_rename
from icefield.versioned import VersionedStrategy


class RenameStrategy(VersionedStrategy):
    """Writes ``<uuid>.metadata.json`` and renames it to ``v<V+1>.metadata.json``."""

    needs = (FileSystemAbility.ATOMIC_RENAME,)

    def publish(self, target: str, data: bytes) -> bool:
        return publish_by_rename(self.file_system, target, data, f"{target.rpartition('/')[0]}/{uuid4()}.metadata.json")
