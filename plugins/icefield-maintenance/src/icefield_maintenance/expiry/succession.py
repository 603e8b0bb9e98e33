"""Expired snapshots compared with their successors by manifest lists alone: most files live on, and are not read.

A snapshot that only adds files, or merges manifests, takes over every live file of its parent. Its manifest list shows
this: its new manifests hold as many existing files as the manifests that it dropped held live files, and no deleted
files. Such a step loses nothing. From any other step, the dropped manifests are read.

By induction from the kept snapshots backwards, each live file of an expired snapshot is either in a manifest that is
read, or live in a kept snapshot. A list with wrong counts can leave an unreachable file behind, but cannot cause the
deletion of a file that is in use: only files that were read are candidates, and kept manifests protect these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.manifest import ManifestFile, ManifestList
from icefield.metadata import Snapshot
from icefield.storage import HashedLocations, Hashes


@dataclass(frozen=True, slots=True)
class _Listed:
    """The manifests of a snapshot: the hashes of their locations, and their numbers of files; -1 if unknown."""

    hashes: Hashes
    added: npt.NDArray[Any]
    existing: npt.NDArray[Any]
    deleted: npt.NDArray[Any]

    def unlike(self, other: _Listed) -> npt.NDArray[np.bool_]:
        """The mask of manifests that another snapshot does not list."""
        mask: npt.NDArray[np.bool_] = np.isin(self.hashes, other.hashes, invert=True)
        return mask

    def loses_files_to(self, successor: _Listed) -> bool:
        """Whether a live file of this snapshot may be missing in its successor."""
        dropped, new = self.unlike(successor), successor.unlike(self)
        before = self.added[dropped], self.existing[dropped]
        after = successor.existing[new], successor.deleted[new]
        if any((counts < 0).any() for counts in (*before, *after)):
            return True
        live = int(before[0].sum(dtype=np.int64) + before[1].sum(dtype=np.int64))
        return bool(after[1].any()) or int(after[0].sum(dtype=np.int64)) != live


class Succession:
    """The expired snapshots and their successors. ``note`` each manifest list, then ask which manifests lose files."""

    def __init__(self, expired: Collection[Snapshot], kept: Collection[Snapshot]) -> None:
        self._expired = {snapshot.snapshot_id for snapshot in expired}
        self._parents = {
            each.snapshot_id: each.parent_snapshot_id
            for each in (*expired, *kept)
            if each.parent_snapshot_id in self._expired
        }
        self._kept = [each.snapshot_id for each in kept if each.snapshot_id in self._parents]
        self._wanted = self._expired | self._parents.keys()
        self._listed: dict[int, _Listed] = {}

    def note(self, snapshot: Snapshot, listed: ManifestList, hashes: Hashes) -> None:
        """Note the manifest list of a snapshot, and the hashes of its manifests' locations."""
        if snapshot.snapshot_id in self._wanted:
            self._listed[snapshot.snapshot_id] = _Listed(hashes, *listed.file_counts())

    def losing(self, manifests: Sequence[ManifestFile], places: HashedLocations) -> list[ManifestFile]:
        """The manifests, among expired ones, with files that may be live in no kept snapshot."""
        left = set(self._listed) & self._expired
        losing: list[Hashes] = []
        successors = [*self._kept]
        while successors:
            successor = successors.pop()
            number = self._parents.get(successor)
            if number not in left:
                continue  # it was compared with another successor, or its list cannot be read
            left.remove(number)
            successors.append(number)
            before, after = self._listed[number], self._listed[successor]
            if before.loses_files_to(after):
                losing.append(before.hashes[before.unlike(after)])
        losing += [self._listed[number].hashes for number in left]  # without a successor: nothing is known to live on
        if not losing:
            return []
        hashes = places.hashes(pa.array([manifest.manifest_path for manifest in manifests], pa.string()))
        chosen = np.isin(hashes, np.concatenate(losing))
        return [manifest for manifest, loses in zip(manifests, chosen.tolist(), strict=True) if loses]
