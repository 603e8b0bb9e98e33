"""The tables of manifest entries and of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from icefield.catalog.inspection.entry_columns import EntryColumns
from icefield.catalog.inspection.manifest_pruning import ManifestPruning
from icefield.catalog.inspection.metadata_scan import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestContent, ManifestList
from icefield.manifest.manifest_list import CONTENT
from icefield.metadata.snapshots import Snapshot
from icefield.scan.planning.pruning import Mask


class EntriesTable(MetadataTable):
    """One row per manifest entry of the snapshots (0 existing, 1 added, 2 deleted), with inherited values.

    With ``live``, one row per live file. Each manifest is read once, if it has one of the ``contents``.
    """

    def __init__(
        self,
        source: MetadataSource,
        snapshots: Sequence[Snapshot],
        contents: frozenset[ManifestContent] = frozenset(ManifestContent),
        *,
        live: bool = False,
    ) -> None:
        self._source, self._snapshots, self._contents, self._live = source, snapshots, contents, live
        self._columns = EntryColumns(source)
        self.schema = self._columns.file_schema() if live else self._columns.entry_schema()

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        columns, pruning = self._columns, ManifestPruning(self._source, selection.row_filter)
        wanted = [int(content) for content in self._contents]

        def choice(manifests: ManifestList) -> Mask:
            kept = np.isin(manifests.integers(CONTENT), wanted)
            if self._live:
                kept &= manifests.may_have_live_files()
            return pruning.may_match(manifests, kept)

        for entries in self._source.entries(self._snapshots, choice, columns.request(selection.read)):
            rows = entries.filter(entries.live()) if self._live else entries
            if selection.is_filtered:
                rows = rows.filter(selection.matches(columns.batch(rows, selection.tested)))
            if len(rows):
                yield columns.batch(rows, selection.schema)
