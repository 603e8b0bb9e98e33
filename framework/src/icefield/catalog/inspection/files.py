"""The tables of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from icefield.catalog.inspection.entry_columns import EntryColumns, entry_batches
from icefield.catalog.inspection.metadata_table import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestContent
from icefield.metadata.snapshots import Snapshot


class FilesTable(MetadataTable):
    """One row per live file of the snapshots' manifests with these contents; each manifest is read once."""

    def __init__(
        self,
        source: MetadataSource,
        snapshots: Sequence[Snapshot],
        contents: frozenset[ManifestContent] = frozenset(ManifestContent),
    ) -> None:
        self._source = source
        self._snapshots = snapshots
        self._contents = contents
        self._columns = EntryColumns(source)
        self.schema = self._columns.file_schema()

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        return entry_batches(self._source, self._columns, selection, self._snapshots, self._contents, live=True)
