"""Raises a table's format version: a change of metadata only, no data file is rewritten.

From format version 2 on every snapshot must have a manifest list, and readers refuse a table without it. So lists are
written for the snapshots of an old v1 table that name their manifests themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import msgspec

from icefield.errors import InvalidArgument
from icefield.manifest import ManifestFile, counted, read_manifest_list, write_manifest_list
from icefield.metadata import Snapshot, TableMetadata, TableUpdate, UpgradeFormatVersion
from icefield.storage import LocationProvider
from icefield.transaction.action import ActionContext


class OldSnapshots:
    """Writes the lists, each once: a snapshot never changes, so its list serves every attempt."""

    def __init__(self) -> None:
        self._uuid = uuid4()
        self._lists: dict[int, str] = {}
        self._manifests: dict[str, ManifestFile] = {}

    def lists(self, base: TableMetadata, context: ActionContext) -> Mapping[int, str]:
        """The location of a list for each snapshot of the base without one, by the snapshot's id.

        Raises ``FileMissing`` or ``InvalidMetadata`` for a manifest that cannot be read.
        """
        context.written.retire(*self._lists.values())
        if base.format_version > 1:  # another commit has raised it meanwhile
            return {}
        lacking = [snapshot for snapshot in base.snapshots if snapshot.manifest_list is None]
        for snapshot in lacking:
            if snapshot.snapshot_id not in self._lists:
                self._lists[snapshot.snapshot_id] = self._write(base, snapshot, context)
        used = {snapshot.snapshot_id: self._lists[snapshot.snapshot_id] for snapshot in lacking}
        context.written.add(*used.values())
        return used

    def _write(self, base: TableMetadata, snapshot: Snapshot, context: ActionContext) -> str:
        unknown = tuple(path for path in snapshot.manifests if path not in self._manifests)
        found = read_manifest_list(context.io, msgspec.structs.replace(snapshot, manifests=unknown), base)
        for manifest in found.manifests:
            # Snapshots come in the order of their creation: the first to name a manifest has added it.
            self._manifests[manifest.manifest_path] = counted(context.io, manifest)
        name = f"snap-{snapshot.snapshot_id}-0-{self._uuid}.avro"
        location = LocationProvider.from_metadata(base).metadata_location(name)
        context.written.add(location)
        write_manifest_list(
            context.io,
            location,
            [self._manifests[path] for path in snapshot.manifests],
            format_version=2,  # in a later version too: no row of such a snapshot has an id
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
        )
        return location


def upgrade(base: TableMetadata, format_version: int, context: ActionContext, old: OldSnapshots) -> list[TableUpdate]:
    """The update that raises the version; none when the table has it already.

    Manifest lists are written for snapshots without one, since only version 1 allows such snapshots.
    """
    if base.format_version > format_version:
        raise InvalidArgument(
            f"table '{'.'.join(context.name)}' has format version {base.format_version}, which cannot be lowered to "
            f"{format_version}; write its data to a new table instead",
            table=context.name,
        )
    lists = old.lists(base, context) if format_version > 1 else {}
    return [] if base.format_version == format_version else [UpgradeFormatVersion(format_version, lists)]
