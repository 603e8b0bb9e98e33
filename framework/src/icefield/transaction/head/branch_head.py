"""The head of a branch: its snapshot, its files, and the first free row id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from icefield.base import compute as pc
from icefield.base.concurrency import lazy
from icefield.base.spelling import was_meant
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.manifest.columns import PLAN_COLUMNS
from icefield.manifest.data_file import EntryStatus
from icefield.manifest.decoded import ManifestRequest
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.manifest.manifest_list import ManifestList, read_manifest_list
from icefield.manifest.reader import ManifestReader, read_manifest
from icefield.manifest.schemas import FIRST_ROW_ID, RECORD_COUNT, stored_partition_type
from icefield.manifest.statistics import StatisticsRequest
from icefield.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.storage import FileIO
from icefield.types import StructType


def checked_branch(branch: str | None) -> str | None:
    """The branch that a commit goes to, as the caller named it. Raises ``InvalidArgument`` for an invalid name."""
    if branch is not None and (not isinstance(branch, str) or not branch.strip()):
        raise InvalidArgument(
            f"a commit goes to a branch, which a non-empty string names, or with None is staged; not to {branch!r}"
        )
    return branch


def head_of(metadata: TableMetadata, branch: str | None) -> Snapshot | None:
    """The snapshot that a commit to the branch builds on, if any. A staged commit (None) builds on ``main``.

    Raises ``NoSuchSnapshot`` for a missing branch, ``InvalidArgument`` for a tag.
    """
    name = MAIN_BRANCH if branch is None else branch
    ref = metadata.ref(name)
    if ref is None:
        if name == MAIN_BRANCH:
            return None
        raise NoSuchSnapshot(
            f"the table has no branch '{name}'{was_meant(name, [MAIN_BRANCH, *metadata.refs]) or ';'} "
            f"manage_snapshots().create_branch(None, '{name}') makes one",
            branch=name,
        )
    if ref.is_tag:
        raise InvalidArgument(f"'{name}' is a tag, which no commit can move; commit to a branch", ref=name)
    return metadata.snapshot_by_id(ref.snapshot_id)


Mask = np.ndarray[Any, Any]

_NO_STATISTICS: StatisticsRequest = {}


class Head:
    """A snapshot of the base, and its manifests; everything is read on first use."""

    def __init__(self, metadata: TableMetadata, snapshot: Snapshot | None, io: FileIO) -> None:
        self.metadata = metadata
        self.snapshot = snapshot
        self.io = io
        self._types: dict[int, StructType] = {}

    @lazy
    def manifest_list(self) -> ManifestList | None:
        """The snapshot's manifest list, or None when there is no snapshot."""
        return None if self.snapshot is None else read_manifest_list(self.io, self.snapshot, self.metadata)

    @property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """Every manifest, in the order of the list."""
        return () if self.manifest_list is None else self.manifest_list.manifests

    def live(self, content: ManifestContent = ManifestContent.DATA) -> list[tuple[int, ManifestFile]]:
        """The manifests of a content that may hold live files, each with its position in the list."""
        return [
            (position, manifest)
            for position, manifest in enumerate(self.manifests)
            if manifest.content is content and (manifest.has_added_files or manifest.has_existing_files)
        ]

    def read(
        self,
        manifests: Sequence[ManifestFile],
        columns: Iterable[int] = PLAN_COLUMNS,
        statistics: StatisticsRequest = _NO_STATISTICS,
        *,
        rewriting: bool = False,
    ) -> Iterator[ManifestEntries]:
        """The entries of several manifests, in order, read ahead by threads.

        ``rewriting``: they are only written to other manifests, so statistics may be encoded, and none is cached.
        """
        typed = [(one, self.partition_type(one.partition_spec_id)) for one in manifests]
        request = ManifestRequest(frozenset(columns), statistics, encoded=rewriting)
        for group in manifest_groups(ManifestReader(self.io, remember=not rewriting), typed, request):
            yield from group

    def find(
        self,
        manifests: Sequence[tuple[int, ManifestFile]],
        matches: Callable[[ManifestEntries], Mask],
        statistics: StatisticsRequest = _NO_STATISTICS,
    ) -> dict[int, Mask]:
        """Masks of the live entries that match, by position of their manifest in the list."""
        found: dict[int, Mask] = {}
        read = self.read([manifest for _, manifest in manifests], statistics=statistics)
        for (position, _), entries in zip(manifests, read, strict=True):
            mask = matches(entries) & (entries.status() != EntryStatus.DELETED)
            if mask.any():
                found[position] = mask
        return found

    def spec(self, spec_id: int) -> PartitionSpec:
        """The spec with an id."""
        return self.metadata.spec_by_id(spec_id)

    def partition_type(self, spec_id: int) -> StructType:
        """The type of the partition tuples under a spec."""
        if spec_id not in self._types:
            self._types[spec_id] = stored_partition_type(
                self.spec(spec_id), self.metadata.schema(), self.metadata.schemas
            )
        return self._types[spec_id]


def next_row_id(base: TableMetadata, io: FileIO) -> int:
    """The first row id above the ids of all rows of the table.

    If the metadata does not state it, it is found in the manifests of all snapshots of the table. The next commit
    writes it down.
    """
    if base.next_row_id is not None:
        return base.next_row_id
    following, seen = 0, set()
    for snapshot in base.snapshots:
        following = max(following, (snapshot.first_row_id or 0) + (snapshot.added_rows or 0))
        for manifest in read_manifest_list(io, snapshot, base).manifests:
            key = manifest.manifest_path, manifest.first_row_id
            if key in seen or manifest.content is not ManifestContent.DATA:
                continue
            seen.add(key)
            entries = read_manifest(io, manifest, StructType(), columns=(FIRST_ROW_ID, RECORD_COUNT))
            ends = pc.max(pc.add(entries.column(FIRST_ROW_ID), entries.column(RECORD_COUNT))).as_py()
            following = max(following, ends or 0)
            if manifest.first_row_id is not None:
                following = max(following, manifest.first_row_id + (manifest.live_rows_count or 0))
    return following


def merged_masks(*parts: Mapping[int, Mask]) -> dict[int, Mask]:
    """The union of masks, by position of their manifest."""
    merged: dict[int, Mask] = {}
    for part in parts:
        for position, mask in part.items():
            merged[position] = merged[position] | mask if position in merged else mask
    return merged
