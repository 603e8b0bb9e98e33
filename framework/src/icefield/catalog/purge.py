"""Deleting every file of a table that was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from icefield.abc import CommitStrategy
from icefield.errors import IcefieldError
from icefield.manifest import ManifestFile, read_manifest, read_manifest_list
from icefield.manifest.schemas import FILE_PATH
from icefield.metadata import TableMetadata
from icefield.metadata.file_names import version_of
from icefield.metadata.properties import GC_ENABLED, get_bool
from icefield.secrets import without_userinfo
from icefield.storage import FileIO
from icefield.toolkit.versioned_strategy import VersionedStrategy

_log = logging.getLogger(__name__)


def delete_files_of(io: FileIO, metadata: TableMetadata, metadata_location: str, strategy: CommitStrategy) -> None:
    """Delete the data, the manifests and the metadata of a table that no catalog knows any more.

    What the strategy has published as versions it forgets itself: see ``delete_versions_of``.
    Data files stay when ``gc.enabled`` is false. A file that cannot be read or deleted is logged and passed over: the
    table is gone already. The metadata goes last, so that what is left can still be found.
    """
    collected = _Files(io, metadata)
    if get_bool(metadata.properties, GC_ENABLED):
        _delete(io, list(collected.data_files()))
    _delete(io, [manifest.manifest_path for manifest in collected.manifests()])
    _delete(io, collected.lists + [entry.statistics_path for entry in metadata.statistics])
    _delete(io, [entry.statistics_path for entry in metadata.partition_statistics])
    versions = [*(entry.metadata_file for entry in metadata.metadata_log), metadata_location]
    _delete(io, [location for location in versions if not _is_kept(io, location, strategy)])


def _is_kept(io: FileIO, location: str, strategy: CommitStrategy) -> bool:
    """Whether a metadata file is a version that the table's strategy has published, and knows more of than the file."""
    if not isinstance(strategy, VersionedStrategy) or version_of(location) is None:
        return False
    try:
        return io.resolve(location).rpartition("/")[0] == io.resolve(strategy.folder)
    except IcefieldError:
        return False


def delete_versions_of(strategy: CommitStrategy) -> None:
    """Delete what the strategy of such a table has kept; a failure is logged: the table is gone already."""
    try:
        strategy.purge()
    except IcefieldError as error:
        _log.warning("could not delete every version of a dropped table: %s", error)


class _Files:
    """The files that the snapshots of a table refer to, each once."""

    def __init__(self, io: FileIO, metadata: TableMetadata) -> None:
        self._io = io
        self._metadata = metadata
        self._manifests: dict[str, ManifestFile] | None = None
        self.lists: list[str] = []

    def manifests(self) -> list[ManifestFile]:
        """Every manifest."""
        if self._manifests is None:
            self._manifests = {}
            for snapshot in self._metadata.snapshots:
                if snapshot.manifest_list is not None:
                    self.lists.append(snapshot.manifest_list)
                try:
                    found = read_manifest_list(self._io, snapshot, self._metadata).manifests
                except IcefieldError as error:
                    _log.warning("cannot list the files of snapshot %d: %s", snapshot.snapshot_id, error)
                    continue
                self._manifests.update((manifest.manifest_path, manifest) for manifest in found)
        return list(self._manifests.values())

    def data_files(self) -> Iterator[str]:
        """Every data and delete file, those among them that a snapshot deleted."""
        seen: set[str] = set()
        schema = self._metadata.schema()
        for manifest in self.manifests():
            try:
                spec = self._metadata.spec_by_id(manifest.partition_spec_id)
                kind = spec.partition_type(schema, self._metadata.schemas)
                paths = read_manifest(self._io, manifest, kind, columns=(FILE_PATH,)).column(FILE_PATH).to_pylist()
            except IcefieldError as error:
                _log.warning(
                    "cannot list the files of manifest %s: %s", without_userinfo(manifest.manifest_path), error
                )
                continue
            yield from (path for path in paths if path not in seen)
            seen.update(paths)


def _delete(io: FileIO, locations: list[str]) -> None:
    try:
        io.delete_many(locations)
    except IcefieldError as error:
        _log.warning("could not delete %d files of a dropped table: %s", len(locations), error)
