"""The first free row id, for tables of version 3 without it in their metadata.

Some engines leave ``next-row-id`` out. Their rows can still be read, but a new snapshot must not assign an id that a
row has already ("Row Lineage" of the table specification).
"""

from __future__ import annotations

import pyarrow.compute as pc

from icefield.manifest import read_manifest, read_manifest_list
from icefield.manifest.manifest_file import ManifestContent
from icefield.manifest.schemas import FIRST_ROW_ID, RECORD_COUNT
from icefield.metadata import TableMetadata
from icefield.storage import FileIO
from icefield.types import StructType


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
