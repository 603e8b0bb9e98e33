"""The tables of manifest entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from icefield.catalog.inspection.entry_columns import EntryColumns, entry_batches
from icefield.catalog.inspection.metadata_table import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestContent
from icefield.metadata.snapshots import Snapshot


class EntriesTable(MetadataTable):
    """One row per manifest entry of the snapshots (0 existing, 1 added, 2 deleted), with inherited values."""

    def __init__(self, source: MetadataSource, snapshots: Sequence[Snapshot]) -> None:
        self._source = source
        self._snapshots = snapshots
        self._columns = EntryColumns(source)
        self.schema = self._columns.entry_schema()

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        every = frozenset(ManifestContent)
        return entry_batches(self._source, self._columns, selection, self._snapshots, every, live=False)
