"""The files of snapshots, and the snapshots that expire, computed plainly from the spec's text with sets of strings."""

from __future__ import annotations

from collections.abc import Iterable

from icefield import Table
from icefield.manifest import EntryStatus
from icefield.metadata import TableMetadata
from icefield.metadata.snapshots import Snapshot
from tables import entries, manifests


def files_of(table: Table, snapshots: Iterable[Snapshot]) -> set[str]:
    """Manifest lists, manifests and live files of snapshots."""
    found: set[str] = set()
    for snapshot in snapshots:
        if snapshot.manifest_list is not None:
            found.add(snapshot.manifest_list)
        for manifest in manifests(table, snapshot):
            found.add(manifest.manifest_path)
            part = entries(table, manifest)
            for file, status in zip(part.data_files(), part.status().tolist(), strict=True):
                if status != EntryStatus.DELETED:
                    found.add(file.file_path)
    return found


def kept_snapshots(
    metadata: TableMetadata, now: int, older_than: int, least: int, longest_ref: int = 2**63
) -> tuple[set[int], set[str]]:
    """The snapshots, and the branches and tags, that expiry keeps by ages and numbers."""
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}

    def line(snapshot_id: int | None) -> list[Snapshot]:
        found = []
        while snapshot_id in snapshots:
            found.append(snapshots[snapshot_id])
            snapshot_id = found[-1].parent_snapshot_id
        return found

    refs = {
        name: ref
        for name, ref in metadata.refs.items()
        if name == "main" or now - snapshots[ref.snapshot_id].timestamp_ms <= (ref.max_ref_age_ms or longest_ref)
    }
    kept: set[int] = set()
    on_a_branch: set[int] = set()
    for ref in refs.values():
        if ref.is_tag:
            kept.add(ref.snapshot_id)
            continue
        limit = older_than if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
        ancestors = line(ref.snapshot_id)
        on_a_branch |= {each.snapshot_id for each in ancestors}
        for number, each in enumerate(ancestors):
            if number >= (ref.min_snapshots_to_keep or least) and each.timestamp_ms < limit:
                break
            kept.add(each.snapshot_id)
    kept |= {
        each for each, snapshot in snapshots.items() if each not in on_a_branch and snapshot.timestamp_ms >= older_than
    }
    return kept, set(refs)
