"""The strategy ``create``: one conditional put. Object stores, and local disks."""

from __future__ import annotations

from icefield.abc import FileSystemAbility, Pointer
from icefield.toolkit.publishing import publish_by_create
from icefield.toolkit.versioned_strategy import VersionedStrategy


class CreateStrategy(VersionedStrategy):
    """Puts ``v<V+1>.metadata.json`` if no file has that name."""

    needs = (FileSystemAbility.ATOMIC_CREATE,)

    def publish(self, target: str, data: bytes) -> Pointer | None:
        return publish_by_create(self.file_system, target, data)
