"""The source of metadata tables: a table's metadata, manifest lists and manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield import scan as scans
from icefield.base import compute as pc
from icefield.catalog.inspection.pieces import pieces
from icefield.errors import InvalidArgument
from icefield.manifest import (
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestReader,
    ManifestRequest,
)
from icefield.manifest.manifest_list import PATH
from icefield.metadata import Snapshot, TableMetadata, Timestamp
from icefield.scan.partitions.united import UnitedPartition
from icefield.scan.planning.manifest_filter import manifest_lists
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.scan.planning.pruning import Mask
from icefield.storage import FileIO
from icefield.types import StructType

_MANIFESTS_AT_ONCE: Final = 1024
"""The number of manifests that are decoded to objects and read ahead together."""

Choice = Callable[[ManifestList], Mask]
"""Selects manifests of a list."""


class MetadataSource:
    """One version of a table, as the source of metadata tables."""

    def __init__(self, metadata: TableMetadata, io: FileIO, metadata_location: str) -> None:
        self.metadata = metadata
        self.io = io
        self.metadata_location = metadata_location
        self._types = {
            spec.spec_id: spec.partition_type(metadata.schema(), metadata.schemas) for spec in metadata.partition_specs
        }
        self.united = UnitedPartition(metadata.partition_specs, self._types)

    def snapshots(
        self, snapshot_id: int | None = None, ref: str | None = None, as_of: Timestamp | None = None
    ) -> Sequence[Snapshot]:
        """One snapshot: by its id, by a branch or tag, or the current snapshot at a time.

        By default the current snapshot; empty for a table without snapshots. Raises ``NoSuchSnapshot``, and
        ``InvalidArgument`` for an invalid time or if several arguments are given.
        """
        if sum(given is not None for given in (snapshot_id, ref, as_of)) > 1:
            raise InvalidArgument("a metadata table is of one snapshot: give snapshot_id, ref or as_of, not several")
        scan = scans.TableScan(metadata=self.metadata, io=self.io, snapshot_id=snapshot_id, ref=ref)
        found = (scan if as_of is None else scan.as_of(as_of)).snapshot
        return () if found is None else (found,)

    def entries(
        self, snapshots: Sequence[Snapshot], choice: Choice, request: ManifestRequest
    ) -> Iterator[ManifestEntries]:
        """The entries of the chosen manifests of some snapshots, each manifest once, in pieces of bounded size.

        A piece has the entries of several manifests of one spec, or a part of one manifest.
        """
        reader = ManifestReader(self.io)
        for manifests in self._manifests(snapshots, choice):
            typed = [(one, self.partition_type(one.partition_spec_id)) for one in manifests]
            groups = manifest_groups(reader, typed, request)
            yield from pieces(chain.from_iterable(groups))

    def partition_type(self, spec_id: int) -> StructType:
        """The partition tuple of a spec. Raises ``InvalidMetadata`` for a spec that the table does not have."""
        self.metadata.spec_by_id(spec_id)  # raises
        return self._types[spec_id]

    def partitions(self, entries: ManifestEntries) -> pa.StructArray:
        """The partition tuples of entries under the fields of all specs; null where a spec does not have one."""
        return self.united.tuples(entries.spec_id, entries.partition)

    def _manifests(self, snapshots: Sequence[Snapshot], choice: Choice) -> Iterator[list[ManifestFile]]:
        waiting: list[ManifestFile] = []
        for manifests, rows in self._distinct(snapshots, choice):
            for start in range(0, len(rows), _MANIFESTS_AT_ONCE):
                waiting += manifests.select(rows[start : start + _MANIFESTS_AT_ONCE], summaries=False)
                if len(waiting) >= _MANIFESTS_AT_ONCE:
                    yield waiting
                    waiting = []
        if waiting:
            yield waiting

    def _distinct(
        self, snapshots: Sequence[Snapshot], choice: Choice
    ) -> Iterator[tuple[ManifestList, npt.NDArray[Any]]]:
        """The positions of the chosen manifests that are in no earlier list."""
        if len(snapshots) == 1:
            for _, manifests in manifest_lists(self.metadata, self.io, snapshots):
                yield manifests, np.flatnonzero(choice(manifests))
            return
        seen: set[str] = set()
        before: pa.Array | None = None
        for _, manifests in manifest_lists(self.metadata, self.io, snapshots):
            paths = manifests.columns[PATH]
            rows = np.arange(len(paths))
            if before is not None and len(before):
                # Most manifests are also in the previous snapshot; skip them before paths become Python strings.
                rows = np.flatnonzero(~np.asarray(pc.is_in(paths, value_set=before)))
            before = paths
            fresh = []
            for row, path in zip(rows.tolist(), paths.take(pa.array(rows)).to_pylist(), strict=True):
                if path not in seen:
                    seen.add(path)
                    fresh.append(row)
            new = np.zeros(len(paths), np.bool_)
            new[fresh] = True
            yield manifests, np.flatnonzero(new & choice(manifests))
