"""Filtering of manifest entries, in the planner or as work for the tasks of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import pyarrow as pa

from icefield.abc import Attempt, Work, WorkRunner
from icefield.expressions import AlwaysTrue, BooleanExpression, strict_metrics
from icefield.manifest import ManifestEntries, ManifestFile, ManifestReader, ManifestRequest
from icefield.scan.planning.manifest_filter import SpecPlan
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.scan.planning.pruning import EntryGroup, Mask, filter_types, matching_rows
from icefield.storage import FileIO

R = TypeVar("R")

_LOT_BYTES: Final = 8 << 20
"""The minimum size of the manifests for one item of work, in bytes."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The matching entries of a manifest.

    ``total`` is the number of all entries; ``proven`` marks the files that match as a whole.
    """

    entries: ManifestEntries
    total: int
    proven: Mask | None = None

    @property
    def is_whole(self) -> bool:
        """Whether no entry was left out."""
        return len(self.entries) == self.total

    def __reduce__(self) -> tuple[Any, ...]:
        # Columns of manifests that were decoded together are slices; pickling a slice would copy its whole buffer.
        entries = self.entries
        numbers = list(entries.columns)
        batch = pa.RecordBatch.from_arrays([entries.columns[each] for each in numbers], names=list(map(str, numbers)))
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd" if pa.Codec.is_available("zstd") else None)
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        data = sink.getvalue().to_pybytes()
        return _rebuild, (entries.manifest, len(entries), data, entries.read, self.total, self.proven)


def _rebuild(
    manifest: ManifestFile, count: int, data: bytes, read: frozenset[int], total: int, proven: Mask | None
) -> Matched:
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
    columns = {int(name): batch.column(place) for place, name in enumerate(batch.schema.names)}
    return Matched(ManifestEntries(manifest, count, columns, read=read), total, proven)


@dataclass(frozen=True, slots=True)
class MatchManifests(Work[Sequence[ManifestFile], list[Matched]]):
    """Finds the live entries of manifests that may match, with some ``columns`` of them.

    ``plans``: the projections of the filter to the partition specs of the manifests. ``prove``: whether to find files
    that match as a whole.
    """

    io: FileIO
    plans: Mapping[int, SpecPlan]
    row_filter: BooleanExpression
    request: ManifestRequest
    columns: frozenset[int]
    prove: bool

    def do(self, item: Sequence[ManifestFile], attempt: Attempt) -> list[Matched]:
        """The matching entries of each manifest, in order."""
        return [each for group in self.groups(item, attempt.threads) for each in group]

    def groups(
        self, manifests: Sequence[ManifestFile], workers: int | None, reader: ManifestReader | None = None
    ) -> Iterator[list[Matched]]:
        """The matching entries of each manifest, in order; manifests of one spec that are read already form a group."""
        types = filter_types(self.row_filter)
        typed = [(one, self.plans[one.partition_spec_id].partition_type) for one in manifests]
        reader = reader or ManifestReader(self.io)
        # A filter mostly matches files of a few manifests. The other manifests need no more columns than it tests.
        request = replace(self.request, partly=not isinstance(self.row_filter, AlwaysTrue))
        for parts in manifest_groups(reader, typed, request, workers):
            plan = self.plans[parts[0].spec_id]
            masks = list(matching_rows(parts, plan.partition_filter, self.row_filter, types))
            lacking = [
                (part.manifest, plan.partition_type)
                for part, mask in zip(parts, masks, strict=True)
                if (mask is None or mask.any()) and not part.read >= self.request.columns
            ]
            complete = {
                whole.manifest.manifest_path: whole
                for group in (manifest_groups(reader, lacking, self.request, workers) if lacking else ())
                for whole in group
            }
            yield [
                self._matched(complete.get(part.manifest.manifest_path, part), mask, types)
                for part, mask in zip(parts, masks, strict=True)
            ]

    def _matched(self, part: ManifestEntries, mask: Mask | None, types: Any) -> Matched:
        if mask is not None and not mask.any():
            return Matched(ManifestEntries(part.manifest, 0, {}), len(part))
        kept = part.select(self.columns).filter(mask)
        if not self.prove:
            return Matched(kept, len(part))
        whole = strict_metrics(self.row_filter, EntryGroup([part], types))
        return Matched(kept, len(part), whole if mask is None else whole[mask])


def run_in_lots(
    work: Work[Sequence[ManifestFile], R], manifests: Sequence[ManifestFile], runner: WorkRunner | None
) -> list[R] | None:
    """The result of work for each lot of manifests; None without a runner, or if the manifests are too small for it."""
    size = sum(max(0, one.manifest_length) for one in manifests)
    if runner is None or size < runner.least_manifest_bytes:
        return None
    # Lots of similar size, in order, each with manifests of one spec.
    most = max(_LOT_BYTES, size // (2 * runner.slots))
    lots: list[list[ManifestFile]] = []
    held = 0
    for one in manifests:
        if not lots or held >= most or lots[-1][0].partition_spec_id != one.partition_spec_id:
            lots.append([])
            held = 0
        lots[-1].append(one)
        held += max(0, one.manifest_length)
    return runner.run(work, lots)
