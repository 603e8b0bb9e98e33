"""Statistics files of snapshots: registered, kept, replaced and removed."""

from __future__ import annotations

import pytest
from icefield.catalog import Table
from icefield.errors import InvalidArgument
from icefield.metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile, decode_metadata, encode_metadata
from icefield.metadata.updates.apply import apply_updates
from icefield.metadata.updates.snapshots import RemoveSnapshots
from icefield.puffin import BlobType, PuffinWriter
from icefield_maintenance import PuffinReader
from tables import again, new_table, rows


@pytest.fixture
def table() -> Table:
    made = new_table()
    for number in range(3):
        made.append(rows([number]))
    return made


def snapshot_ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def puffin(table: Table, snapshot_id: int, ndv: int) -> StatisticsFile:
    """A statistics file as Spark writes it, with the number of distinct values next to the sketch."""
    location = f"{table.location()}/metadata/{snapshot_id}-{ndv}.stats"
    given = {"fields": (1,), "snapshot_id": snapshot_id, "sequence_number": 1, "properties": {"ndv": str(ndv)}}
    with PuffinWriter(table.io.open_output(location)) as writer:
        writer.add(BlobType.THETA_SKETCH, b"\x01\x03\x03\x00\x00\x1e\x00\x00", **given)
        size = writer.close()
    blob = BlobMetadata(type=BlobType.THETA_SKETCH, **given)
    return StatisticsFile(snapshot_id, location, size, 42, (blob,))


@pytest.mark.spec("PUF-10")
def test_statistics_are_set_replaced_and_removed_and_say_how_many_values_are_distinct(table: Table) -> None:
    first, second, _ = snapshot_ids(table)
    older, newer, other = puffin(table, first, 5), puffin(table, first, 7), puffin(table, second, 9)
    with table.update_statistics() as update:
        update.set_statistics(older).set_statistics(other)
    assert [*table.metadata.statistics] == [older, other]
    table.update_statistics().set_statistics(newer).commit()
    table.append(rows([9]))
    kept = again(table).refresh().metadata.statistics
    assert sorted(kept, key=lambda file: file.snapshot_id) == sorted([newer, other], key=lambda file: file.snapshot_id)
    assert decode_metadata(encode_metadata(table.metadata), "f") == table.metadata

    (read,) = [file for file in table.metadata.statistics if file.snapshot_id == first]
    with PuffinReader(table.io.open_input(read.statistics_path), read.statistics_path) as reader:
        assert [blob.strings["ndv"] for blob in reader.blobs] == ["7"]
    assert read.blob_metadata[0].properties == {"ndv": "7"}

    left = apply_updates(table.metadata, [RemoveSnapshots([second])])
    assert [*left.statistics] == [newer]
    table.update_statistics().remove_statistics(first).commit()
    assert [*table.metadata.statistics] == [other]
    before = table.metadata_location
    table.update_statistics().remove_statistics(first).commit()
    assert table.metadata_location == before


def test_partition_statistics_have_entries_of_their_own(table: Table) -> None:
    first, second, _ = snapshot_ids(table)
    files = [PartitionStatisticsFile(number, f"memory://p/{number}", 3) for number in (first, second)]
    with table.update_statistics() as update:
        update.set_partition_statistics(files[0]).set_partition_statistics(files[1])
    assert [*table.metadata.partition_statistics] == files
    assert not [*table.metadata.statistics]
    table.update_statistics().remove_partition_statistics(first).commit()
    assert [*table.metadata.partition_statistics] == files[1:]


def test_statistics_of_a_snapshot_that_is_not_there_are_refused(table: Table) -> None:
    with pytest.raises(InvalidArgument, match="snapshot 42, which does not exist"):
        table.update_statistics().set_statistics(StatisticsFile(42, "memory://s", 1, 1, ())).commit()


def test_a_transaction_sets_statistics_with_other_changes(table: Table) -> None:
    first, *_ = snapshot_ids(table)
    with table.transaction() as tx:
        tx.append(rows([7]))
        tx.update_statistics().set_statistics(StatisticsFile(first, "memory://s", 1, 1, ())).commit()
    assert len(table.metadata.statistics) == 1
    assert len(table.snapshots()) == 4
