"""Table metadata against PyIceberg: loading it, looking into it, and the work of a commit on it."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from harness import compare, main
from icefield.metadata import (
    TableMetadata,
    apply_updates,
    decode_metadata,
    encode_metadata,
    new_table_metadata,
    with_metadata_log,
)
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType, TimestampType
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.snapshots import Operation as PeerOperation
from pyiceberg.table.snapshots import Snapshot as PeerSnapshot
from pyiceberg.table.snapshots import Summary as PeerSummary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, update_table_metadata

LOCATION = "s3://warehouse/db/events"
COLUMNS = 30


def summary_of(number: int) -> dict[str, str]:
    """Return the summary of an append, about 500 bytes with its keys."""
    return {
        "operation": "append",
        "spark.app.id": "local-1700000000000",
        "added-data-files": "4",
        "added-records": "100000",
        "added-files-size": "13107200",
        "changed-partition-count": "4",
        "total-records": str(100_000 * number),
        "total-files-size": str(13_107_200 * number),
        "total-data-files": str(4 * number),
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


def snapshot_of(base: TableMetadata, number: int, snapshot_id: int) -> Snapshot:
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=base.current_snapshot_id,
        sequence_number=base.next_sequence_number(),
        timestamp_ms=base.last_updated_ms + 1_000,
        summary=summary_of(number),
        manifest_list=f"{LOCATION}/metadata/snap-{snapshot_id}-1-2a3b0d2e-6d4e-4c35-8a1c-111111111111.avro",
        schema_id=0,
    )


def committed(base: TableMetadata, number: int, snapshot_id: int) -> TableMetadata:
    updates = [AddSnapshot(snapshot_of(base, number, snapshot_id)), SetSnapshotRef(MAIN_BRANCH, branch(snapshot_id))]
    return apply_updates(base, updates)


def table_with(snapshots: int) -> bytes:
    """The metadata file of a table that was appended to so many times."""
    schema = Schema(
        NestedField(1, "id", LongType(), True),
        NestedField(2, "ts", TimestampType()),
        *(NestedField(i, f"c{i:02}", StringType()) for i in range(3, COLUMNS + 1)),
    )
    spec = PartitionSpec(PartitionField(2, 1000, "day", "ts_day"))
    metadata = new_table_metadata(schema, spec, location=LOCATION, now_ms=1_700_000_000_000)
    draw = random.Random(7)
    for number in range(1, snapshots + 1):
        before = metadata.last_updated_ms
        metadata = committed(metadata, number, draw.getrandbits(62) + 1)
        metadata = with_metadata_log(metadata, f"{LOCATION}/metadata/{number:05}.metadata.json", before)
        if number % 100 == 0:  # as in a loaded table: joins the new part and the old one into one string
            metadata = decode_metadata(encode_metadata(metadata), LOCATION)
    return encode_metadata(metadata)


def peer_commit(base: Any, snapshot: Snapshot) -> bytes:
    summary = dict(snapshot.summary)
    added = PeerSnapshot(
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        timestamp_ms=snapshot.timestamp_ms,
        manifest_list=snapshot.manifest_list,
        summary=PeerSummary(PeerOperation(summary.pop("operation")), **summary),
        schema_id=snapshot.schema_id,
    )
    head = SetSnapshotRefUpdate(ref_name=MAIN_BRANCH, type="branch", snapshot_id=snapshot.snapshot_id)
    updated = update_table_metadata(base, (AddSnapshotUpdate(snapshot=added), head))
    return bytes(updated.model_dump_json().encode())


def check(data: bytes) -> None:
    """Both must see the same table, or the comparison means nothing."""
    ours, theirs = decode_metadata(data, LOCATION), TableMetadataUtil.parse_raw(data.decode())
    assert [s.snapshot_id for s in ours.snapshots] == [s.snapshot_id for s in theirs.snapshots]
    assert ours.current_snapshot_id == theirs.current_snapshot_id
    new = snapshot_of(ours, 0, 1)
    mine = msgspec.json.decode(encode_metadata(committed(ours, 0, 1)))
    peers = msgspec.json.decode(peer_commit(theirs, new))
    assert mine["snapshots"][-1] == peers["snapshots"][-1]
    assert mine["current-snapshot-id"] == peers["current-snapshot-id"]


def run() -> None:
    # Of a small file most is the schema, which both decode in Python.
    for snapshots, load, listing, commit in ((10, None, None, 3.0), (1_000, 5.0, 1.5, 20.0), (10_000, 8.0, 1.5, 20.0)):
        data = table_with(snapshots)
        text = data.decode()
        check(data)
        ours, theirs = decode_metadata(data, LOCATION), TableMetadataUtil.parse_raw(text)
        compare(
            f"load, {snapshots} snapshots",
            lambda data=data: decode_metadata(data, LOCATION),
            lambda text=text: TableMetadataUtil.parse_raw(text),
            floor=load,
        )
        compare(
            f"load and list all, {snapshots}",
            lambda data=data: [s.summary for s in decode_metadata(data, LOCATION).snapshots],
            lambda text=text: [s.summary for s in TableMetadataUtil.parse_raw(text).snapshots],
            floor=listing,
        )
        new = snapshot_of(ours, 0, 1)
        compare(
            f"add a snapshot and encode, {snapshots}",
            lambda ours=ours: encode_metadata(committed(ours, 0, 1)),
            lambda theirs=theirs, new=new: peer_commit(theirs, new),
            floor=commit,
        )


if __name__ == "__main__":
    main(run)
