"""Expired snapshots compared with their successors by manifest lists alone: most files live on, and are not read.

A snapshot that only adds files, or merges manifests, takes over every live file of its parent. Its manifest list shows
this: its new manifests hold as many existing files as the manifests that it dropped held live files, and no deleted
files. Such a step loses nothing. From any other step, the dropped manifests are read.

Snapshots without a successor are read. By induction backwards from these and from the kept snapshots, each live file
of an expired snapshot is either in a manifest that is read, or live in a kept snapshot. A list with wrong counts can
leave an unreachable file behind, but cannot cause the deletion of a file that is in use: only files that were read are
candidates, and kept manifests protect these.
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
    """The expired snapshots and their successors. ``note`` each manifest list, then ask which manifests lose files.

    Each expired snapshot is compared with the first of its successors whose list is noted. A list is held only until
    then, since thousands of snapshots may list thousands of manifests each.
    """

    def __init__(self, expired: Collection[Snapshot], kept: Collection[Snapshot]) -> None:
        self._expired = {snapshot.snapshot_id for snapshot in expired}
        self._parents = {
            each.snapshot_id: each.parent_snapshot_id
            for each in (*expired, *kept)
            if each.parent_snapshot_id in self._expired and each.parent_snapshot_id != each.snapshot_id
        }
        self._left = set(self._expired)
        self._waiting: dict[int, _Listed] = {}
        self._successors: dict[int, _Listed] = {}
        self._losing: list[Hashes] = []

    def note(self, snapshot: Snapshot, listed: ManifestList, hashes: Hashes) -> None:
        """Note the manifest list of a snapshot, and the hashes of its manifests' locations."""
        number, parent = snapshot.snapshot_id, self._parents.get(snapshot.snapshot_id)
        if number not in self._expired and parent is None:
            return
        found = _Listed(hashes, *listed.file_counts())
        if parent in self._left:
            self._successors[parent] = found
            self._compare(parent)
        if number in self._left:
            self._waiting[number] = found
            self._compare(number)

    def _compare(self, number: int) -> None:
        """Compare an expired snapshot with its successor, once both are noted."""
        if number in self._waiting and number in self._successors:
            before, after = self._waiting.pop(number), self._successors.pop(number)
            self._left.remove(number)
            if before.loses_files_to(after):
                self._losing.append(before.hashes[before.unlike(after)])

    def losing(self, manifests: Sequence[ManifestFile], places: HashedLocations) -> list[ManifestFile]:
        """The manifests, among expired ones, with files that may be live in no kept snapshot."""
        # Of a snapshot without a successor, nothing is known to live on.
        losing = [*self._losing, *(each.hashes for each in self._waiting.values())]
        if not losing:
            return []
        hashes = places.hashes(pa.array([manifest.manifest_path for manifest in manifests], pa.string()))
        chosen = np.isin(hashes, np.concatenate(losing))
        return [manifest for manifest, loses in zip(manifests, chosen.tolist(), strict=True) if loses]
