"""Rewriting the metadata of a table for a copy at another location."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import IcefieldError, InvalidArgument
from icefield.manifest import DataFile, ManifestContent, ManifestFile, counted, read_manifest_list, write_manifest_list
from icefield.metadata import Snapshot, TableMetadata, decode_metadata, metadata_folder
from icefield.storage import FileIO
from icefield.toolkit import map_ahead
from pyarrow import csv

from icefield_maintenance.paths.deletes import MovedFile, write_moved
from icefield_maintenance.paths.keys import CopiedKeys
from icefield_maintenance.paths.manifests import CopiedManifests, Growth, copied, live_deletes
from icefield_maintenance.paths.prefixes import Prefixes
from icefield_maintenance.paths.result import SCHEMA, RewriteTablePathResult
from icefield_maintenance.paths.versions import (
    ADDED_SIZE,
    TOTAL_SIZE,
    is_called,
    moved_version,
    name_of,
    versions_of,
)

_LIST: Final = "file-list"


def rewrite_table_path(
    io: FileIO,
    metadata: TableMetadata,
    location: str | None,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> RewriteTablePathResult:
    """See ``MaintenanceTable.rewrite_table_path``. ``location``: where the metadata file is."""
    prefixes = Prefixes.of(source_prefix, target_prefix)
    if location is None:
        raise InvalidArgument("the table has no metadata file yet, and so nothing to copy")
    if end_version is not None and not is_called(location, end_version):
        location = _found(metadata, end_version)
        metadata = decode_metadata(io.read_metadata(location), location)
    versions = versions_of(metadata, location, start_version)
    if metadata.is_encrypted:  # lists and versions that were copied before need the new keys, too
        versions = versions_of(metadata, location, None)
    earlier = None
    if start_version is not None:
        before = _found(metadata, start_version)
        earlier = frozenset(each.snapshot_id for each in decode_metadata(io.read_metadata(before), before).snapshots)
    folder = metadata_folder(metadata.location, metadata.properties)
    staging = (staging_location or f"{folder}/copy-table-staging-{uuid4()}").rstrip("/")
    if staging == prefixes.source:
        raise InvalidArgument("staging_location is source_prefix: the files of the table itself would be replaced")
    copy = _Copy(io, metadata, prefixes, staging, earlier, CopiedKeys(io, metadata))
    try:
        return copy.made(versions, create_file_list=create_file_list)
    except BaseException:
        with suppress(IcefieldError):
            io.delete_many(copy.written)
        raise


def _found(metadata: TableMetadata, name: str) -> str:
    for each in metadata.metadata_log:
        if is_called(each.metadata_file, name):
            return each.metadata_file
    known = ", ".join(name_of(each.metadata_file) for each in metadata.metadata_log[-5:]) or "none"
    raise InvalidArgument(
        f"there is no metadata file '{name}' in the metadata log, which ends with: {known}", name=name
    )


@dataclass(slots=True)
class _Copy:
    io: FileIO
    metadata: TableMetadata
    prefixes: Prefixes
    staging: str
    earlier: frozenset[int] | None
    """The snapshots that the copy has already; None for none."""

    keys: CopiedKeys
    written: list[str] = field(default_factory=list)
    staged: list[tuple[str, str]] = field(default_factory=list)
    """The location of each written file, and its location in the copy."""

    plain: list[pa.Array] = field(default_factory=list)
    """The locations of files to copy unchanged."""

    def made(self, versions: list[str], *, create_file_list: bool) -> RewriteTablePathResult:
        snapshots = [each for each in self.metadata.snapshots if each.snapshot_id not in (self.earlier or ())]
        new = None if self.earlier is None else frozenset(each.snapshot_id for each in snapshots)
        if self.metadata.is_encrypted:
            snapshots = list(self.metadata.snapshots)
        lists = {each.snapshot_id: self._listed(each) for each in reversed(snapshots)}
        # If several lists name a manifest, the newest list has the most fields: format versions add fields.
        manifests = {one.manifest_path: one for listed in reversed(lists.values()) for one in listed}
        reader = CopiedManifests(self.io, self.metadata, self.prefixes, self.keys)
        deletes = self._deletes(reader, manifests.values())

        def move(manifest: ManifestFile) -> tuple[ManifestFile, pa.Array, Growth]:
            entries = reader.read(manifest)
            moved = reader.write(entries, self._stage(manifest.manifest_path, "manifest"), deletes)
            return moved, copied(entries, new), reader.growth(entries, deletes)

        moved: dict[str, ManifestFile] = {}
        grown: dict[str, Growth] = {}
        results = map_ahead(manifests.values(), move, self.io.workers())
        for path, (made, files, growth) in zip(manifests, results, strict=True):
            moved[path], grown[path] = made, growth
            self.plain.append(files)
        for snapshot in snapshots:
            self._list(snapshot, [_as(each, moved[each.manifest_path]) for each in lists[snapshot.snapshot_id]])
        summaries = {
            each.snapshot_id: {
                TOTAL_SIZE: sum(grown[one.manifest_path].live for one in lists[each.snapshot_id]),
                ADDED_SIZE: sum(one.added.get(each.snapshot_id, 0) for one in grown.values()),
            }
            for each in snapshots
        }
        for location in versions:
            staged = self._stage(location, "metadata file")
            self._put(staged, moved_version(self.io, location, self.prefixes, summaries, self.keys))
        self._statistics(new)
        files = self._files()
        place = self._write_list(files) if create_file_list else None
        return RewriteTablePathResult(
            latest_version=name_of(versions[0]),
            staging_location=self.staging,
            files=files,
            file_list_location=place,
            rewritten_manifests=len(moved),
            rewritten_delete_files=len(deletes),
        )

    def _listed(self, snapshot: Snapshot) -> list[ManifestFile]:
        found = read_manifest_list(self.io, snapshot, self.metadata).manifests
        return [counted(self.io, each) for each in found]

    def _deletes(self, reader: CopiedManifests, manifests: Iterable[ManifestFile]) -> dict[str, MovedFile]:
        """Write the delete files that name data files. Return them by their locations in the table."""
        files: dict[str, DataFile] = {}
        for manifest in manifests:
            if manifest.content is ManifestContent.DELETES:
                for file in live_deletes(reader.read(manifest)).data_files():
                    files.setdefault(file.file_path, file)
        properties = dict(self.metadata.properties)

        def move(file: DataFile) -> MovedFile:
            staged = self._stage(file.file_path, "delete file")
            return write_moved(self.keys.writing(file.key_metadata), file, staged, self.prefixes, properties)

        return dict(zip(files, map_ahead(files.values(), move, self.io.workers()), strict=True))

    def _list(self, snapshot: Snapshot, manifests: list[ManifestFile]) -> None:
        if snapshot.manifest_list is None:
            return  # its metadata names the manifests
        # A snapshot from before an upgrade keeps its older form of list.
        version = 3 if snapshot.first_row_id is not None else min(self.metadata.format_version, 2)
        written, _ = write_manifest_list(
            self.keys.writing(snapshot.key_id),
            self._stage(snapshot.manifest_list, "manifest list"),
            manifests,
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
            properties=self.metadata.properties,
        )
        if written.key is not None and snapshot.key_id is not None:
            self.keys.store(written.key, snapshot.key_id)

    def _statistics(self, new: frozenset[int] | None) -> None:
        files = self.metadata.statistics_files
        kept = [each.statistics_path for each in files if new is None or each.snapshot_id in new]
        self.plain.append(pa.array(kept, pa.string()))

    def _stage(self, location: str, what: str) -> str:
        """The staging location of a file of the copy. Adds the file to ``written`` and ``staged``."""
        staged = self.staging + self.prefixes.below(location, what)
        self.written.append(staged)
        self.staged.append((staged, self.prefixes.moved(location, what)))
        return staged

    def _files(self) -> pa.Table:
        plain = pc.unique(pa.chunked_array(self.plain, pa.string()))
        moved = self.prefixes.moved_all(plain, "file")
        own = pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in self.staged], schema=SCHEMA)
        return pa.concat_tables([own, pa.Table.from_arrays([plain, moved], schema=SCHEMA)])

    def _write_list(self, files: pa.Table) -> str:
        place = f"{self.staging}/{_LIST}"
        sink = pa.BufferOutputStream()
        csv.write_csv(files, sink, csv.WriteOptions(include_header=False, quoting_style="needed"))
        self.written.append(place)
        self._put(place, sink.getvalue().to_pybytes())
        return place

    def _put(self, location: str, data: bytes) -> None:
        with self.keys.writing(None).open_output(location) as sink:
            sink.write(data)


def _as(manifest: ManifestFile, moved: ManifestFile) -> ManifestFile:
    """A list's own entry for a manifest, with the copy's location.

    It may have more fields than the entry in another list.
    """
    path, length, key_metadata = moved.manifest_path, moved.manifest_length, moved.key_metadata
    return replace(manifest, manifest_path=path, manifest_length=length, key_metadata=key_metadata)
