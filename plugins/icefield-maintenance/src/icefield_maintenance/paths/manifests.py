"""Manifests with the locations of a copy, and the files in them that must be copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.manifest import (
    ALL_COLUMNS,
    DataFileContent,
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestReader,
    ManifestRequest,
    ManifestWriter,
)
from icefield.metadata import TableMetadata
from icefield.storage import FileIO
from icefield.types import DELETE_FILE_PATH

from icefield_maintenance.paths.deletes import MovedFile
from icefield_maintenance.paths.keys import CopiedKeys
from icefield_maintenance.paths.prefixes import Prefixes

_LEAST, _GREATEST = b"", chr(0x10FFFF).encode()
_BOUNDS: Final = ((f.LOWER_BOUNDS, _LEAST), (f.UPPER_BOUNDS, _GREATEST))


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a manifest's delete files in bytes: of its live files, and of the files added by each snapshot."""

    live: int
    added: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CopiedManifests:
    """Reads the manifests of a table, and writes them for its copy."""

    io: FileIO
    metadata: TableMetadata
    prefixes: Prefixes
    keys: CopiedKeys

    def read(self, manifest: ManifestFile) -> ManifestEntries:
        """All entries of a manifest, with all columns."""
        schemas = list(self.metadata.schemas)
        kind = self.metadata.spec_by_id(manifest.partition_spec_id).partition_type(self.metadata.schema(), schemas)
        return ManifestReader(self.io, remember=False).read(manifest, kind, ManifestRequest(ALL_COLUMNS))

    def write(self, entries: ManifestEntries, location: str, deletes: Mapping[str, MovedFile]) -> ManifestFile:
        """Write a manifest of the copy to a location. The returned entry has its location in the copy.

        ``deletes``: the rewritten delete files, by their locations in the table.
        """
        manifest, metadata = entries.manifest, self.metadata
        writer = ManifestWriter(
            self.keys.writing(manifest.key_metadata),
            location,
            metadata.spec_by_id(manifest.partition_spec_id),
            metadata.schema(),
            metadata.format_version,
            manifest.added_snapshot_id,
            manifest.content,
            schemas=metadata.schemas,
            properties=metadata.properties,
        )
        with writer:
            writer.add_entries(self._moved(entries, deletes))
            written = writer.close()
        moved = self.prefixes.moved(manifest.manifest_path, "manifest")
        length, key_metadata = written.manifest_length, written.key_metadata
        return replace(manifest, manifest_path=moved, manifest_length=length, key_metadata=key_metadata)

    def growth(self, entries: ManifestEntries, deletes: Mapping[str, MovedFile]) -> Growth:
        """The growth of a manifest's rewritten delete files over the files of the table."""
        if entries.manifest.content is not ManifestContent.DELETES:
            return Growth(0, {})
        new = pc.index_in(entries.column(f.FILE_PATH), value_set=pa.array(list(deletes), pa.string()))
        sizes = pa.array([each.size for each in deletes.values()], pa.int64())
        grown = pc.subtract(sizes.take(new), entries.column(f.FILE_SIZE))
        # A deletion vector counts with its own bytes, which stay the same.
        is_vector = np.asarray(pc.equal(pc.utf8_lower(entries.column(f.FILE_FORMAT)), "puffin"))
        bytes_ = np.where(is_vector, 0, np.asarray(pc.fill_null(grown, 0)))
        status, owners = entries.status(), np.asarray(pc.fill_null(entries.column(f.SNAPSHOT_ID), -1))
        added = {
            int(owner): int(bytes_[(status == EntryStatus.ADDED) & (owners == owner)].sum())
            for owner in np.unique(owners[status == EntryStatus.ADDED])
        }
        return Growth(int(bytes_[status != EntryStatus.DELETED].sum()), added)

    def _moved(self, entries: ManifestEntries, deletes: Mapping[str, MovedFile]) -> ManifestEntries:
        columns = dict(entries.columns)
        paths = columns[f.FILE_PATH]
        columns[f.FILE_PATH] = self.prefixes.moved_all(paths, "file")
        if columns.get(f.REFERENCED_DATA_FILE) is not None:
            columns[f.REFERENCED_DATA_FILE] = self.prefixes.moved_all(columns[f.REFERENCED_DATA_FILE], "data file")
        if entries.manifest.content is ManifestContent.DELETES and len(entries):
            rewritten = pc.index_in(paths, value_set=pa.array(list(deletes), paths.type))
            sizes, keys = zip(*deletes.values(), strict=True) if deletes else ((), ())
            for number, known in ((f.FILE_SIZE, sizes), (f.KEY_METADATA, keys)):
                if columns.get(number) is not None:
                    own = pa.array(known, columns[number].type).take(rewritten)
                    columns[number] = pc.coalesce(own, columns[number])
            if f.SPLIT_OFFSETS in columns:  # of the file as it was
                columns[f.SPLIT_OFFSETS] = pa.nulls(len(entries), columns[f.SPLIT_OFFSETS].type)
            for number, open_end in _BOUNDS:
                if columns.get(number) is not None:
                    columns[number] = self._bounds(columns[number], open_end)
        return ManifestEntries(entries.manifest, len(entries), columns, read=entries.read)

    def _bounds(self, bounds: pa.MapArray, open_end: bytes) -> pa.MapArray:
        """Bounds with the paths of the copy. A path that was truncated within the prefix becomes an open bound."""
        keys, items = bounds.keys, bounds.items
        own = pc.equal(keys, DELETE_FILE_PATH.field_id)
        paths = items.filter(own)
        if not len(paths):
            return bounds
        start = f"{self.prefixes.source}/".encode()
        whole = pc.starts_with(paths, start)
        kept = self.prefixes.moved_all(paths.filter(whole).cast(pa.string()), "data file").cast(items.type)
        ends = pa.array([open_end] * len(paths), items.type)
        made = pc.replace_with_mask(ends, whole, kept)
        offsets = pa.array(np.asarray(bounds.offsets), pa.int32())
        mask = bounds.is_null() if bounds.null_count else None
        return pa.MapArray.from_arrays(offsets, keys, pc.replace_with_mask(items, own, made), mask=mask)


def live_deletes(entries: ManifestEntries) -> ManifestEntries:
    """The live delete files of a manifest that name data files."""
    named = pc.not_equal(entries.column(f.CONTENT), int(DataFileContent.EQUALITY_DELETES))
    return entries.filter((entries.status() != EntryStatus.DELETED) & np.asarray(named))


def copied(entries: ManifestEntries, snapshots: frozenset[int] | None) -> pa.Array:
    """The files of a manifest to copy unchanged. ``snapshots`` limits them to files that these snapshots added."""
    mask = entries.status() != EntryStatus.DELETED
    if snapshots is not None:
        mask &= np.isin(np.asarray(entries.column(f.SNAPSHOT_ID)), list(snapshots))
    if entries.manifest.content is ManifestContent.DELETES:
        mask &= np.asarray(pc.equal(entries.column(f.CONTENT), int(DataFileContent.EQUALITY_DELETES)))
    return entries.column(f.FILE_PATH).filter(pa.array(mask))
