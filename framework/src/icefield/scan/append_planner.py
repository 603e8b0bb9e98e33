"""Planning of append scans: the files that appends added and that may hold matching rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from icefield.expressions import BooleanExpression, strict_metrics
from icefield.manifest import ALL_COLUMNS, PLAN_COLUMNS, EntryStatus, ManifestContent, ManifestFile
from icefield.metadata import TableMetadata
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.scan.changed_manifests import changed_entries, manifest_lists, written_manifests
from icefield.scan.manifest_filter import ManifestFilter
from icefield.scan.manifest_reads import in_lots
from icefield.scan.planned_files import PlannedFiles
from icefield.scan.planning import PlanReport, plan_request
from icefield.scan.pruning import EntryGroup
from icefield.schema import Schema
from icefield.storage import FileIO


class AppendPlanner:
    """Plans the files that the appends among some snapshots added; see ``ScanPlanner`` for the arguments.

    Deletes do not apply: an append adds none, and its rows count even if later snapshots deleted them.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        snapshots: Sequence[Snapshot],
        schema: Schema,
        row_filter: BooleanExpression,
        *,
        statistics: bool = False,
        prove: bool = False,
        identifier: tuple[str, ...] = (),
        workers: int | None = None,
    ) -> None:
        self._metadata = metadata
        self._io = io
        self._snapshots = [one for one in snapshots if one.operation is Operation.APPEND]
        self._filter = row_filter
        self._columns = ALL_COLUMNS if statistics else PLAN_COLUMNS
        self._prove = prove
        self._identifier = identifier
        self._matching = ManifestFilter(metadata, io, schema, row_filter, workers)
        self._request = plan_request(self._columns, row_filter, prove=prove)
        self.report = PlanReport()

    def files(self, first: int = 0, rows: int | None = None) -> Iterator[PlannedFiles]:
        """The files that the appends added and that may hold matching rows, the oldest first.

        ``first`` is the index of the first manifest, among the appends' manifests that may match; ``rows`` is the
        approximate number of entries to read ahead. Raises ``InvalidMetadata`` for a damaged manifest or manifest list.
        """
        ids = {snapshot.snapshot_id for snapshot in self._snapshots}
        found = chain.from_iterable(
            changed_entries(lot, ids, EntryStatus.ADDED, self._matching, self._filter, self._request)
            for lot in in_lots(self._manifests(ids)[first:], rows)
        )
        for place, (part, mask, plan) in enumerate(found, first):
            kept = part.select(self._columns).filter(mask)
            self.report.files_planned += len(kept)
            self.report.files_skipped += len(part) - len(kept)
            if len(kept):
                proven = strict_metrics(self._filter, EntryGroup([part], self._matching.types)) if self._prove else None
                own = None if proven is None else proven[np.flatnonzero(mask)]
                yield PlannedFiles(kept, plan.residuals, None, own, place)
        newest = self._snapshots[-1].snapshot_id if self._snapshots else -1
        schema_id = self._metadata.current_schema_id
        self.report.emit(self._io, self._identifier, newest, self._filter, self._metadata, schema_id)

    def _manifests(self, ids: set[int]) -> list[ManifestFile]:
        """The manifests of the appends without duplicates: later lists also name the manifests of earlier ones."""
        found: dict[str, ManifestFile] = {}
        for _, listed in manifest_lists(self._metadata, self._io, self._snapshots):
            for manifest in written_manifests(listed, ManifestContent.DATA, ids, self._matching):
                found.setdefault(manifest.manifest_path, manifest)
        self.report.manifests_read = len(found)
        return [*found.values()]
