"""The strategies ``rename`` and ``create``, for tables on a file system."""

from __future__ import annotations

from icefield.abc import FileSystemAbility, Pointer
from icefield.metadata.file_names import temporary_metadata_name
from icefield.toolkit import VersionedStrategy, publish_by_create, publish_by_rename


class RenameStrategy(VersionedStrategy):
    """One atomic rename that refuses to replace, on HDFS and local disks.

    Writes ``<uuid>.metadata.json`` and renames it to ``v<V+1>.metadata.json``.
    """

    needs = (FileSystemAbility.ATOMIC_RENAME,)

    def publish(self, target: str, data: bytes) -> Pointer | None:
        temporary = f"{target.rpartition('/')[0]}/{temporary_metadata_name()}"
        return publish_by_rename(self.file_system, target, data, temporary)


class CreateStrategy(VersionedStrategy):
    """Puts ``v<V+1>.metadata.json`` if no file has that name."""

    needs = (FileSystemAbility.ATOMIC_CREATE,)

    def publish(self, target: str, data: bytes) -> Pointer | None:
        return publish_by_create(self.file_system, target, data)
