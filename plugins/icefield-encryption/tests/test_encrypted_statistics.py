"""Statistics of encrypted tables: files that the metadata names, with keys of their own."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from encrypted_tables import (
    FORMATS,
    MASTER,
    SCHEMA,
    catalog_in,
    clear_caches,
    files_of,
    ids,
    new_table,
    open_statistics,
    rows,
)
from icefield.errors import CommitFailed, DecryptionFailed, KeyUnavailable
from icefield.metadata import RemoveEncryptionKey, apply_updates
from icefield_encryption.local_keystore import add_key
from icefield_maintenance.doctor import Result, examine_table
from icefield_maintenance.puffin_reader import PuffinReader


def with_statistics(table):
    """Both kinds of statistics of the current snapshot."""
    return table.maintenance.compute_table_stats(), table.maintenance.compute_partition_stats()


def path_of(location):
    return Path(location.removeprefix("file://"))


def plain_copy(tmp_path):
    """A plain table with the same rows, and its statistics."""
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("plain")
    table = catalog.create_table("plain.t", SCHEMA, partition_spec=["part"], properties={"format-version": "3"})
    table.append(rows(0))
    return table, with_statistics(table)


@pytest.mark.parametrize("file_format", FORMATS)
def test_statistics_equal_those_of_a_plain_table_and_are_encrypted(tmp_path, file_format):
    table = new_table(catalog_in(tmp_path), **{"write.format.default": file_format})
    table.append(rows(0))
    sketches, partitions = with_statistics(table)
    plain, (plain_sketches, _) = plain_copy(tmp_path)
    assert [each.properties for each in sketches.blob_metadata] == [
        each.properties for each in plain_sketches.blob_metadata
    ]
    wanted = ["partition", "data_record_count", "data_file_count", "total_record_count"]
    found = table.inspect.partition_statistics().select(wanted)
    assert found == plain.inspect.partition_statistics().select(wanted)
    for file in (sketches, partitions):
        data = path_of(file.statistics_path).read_bytes()
        assert len(data) == file.file_size_in_bytes
        assert data[:4] == (b"PARE" if file is partitions and file_format == "parquet" else b"AGS1")
        assert b"region-" not in data
    assert base64.b64decode(sketches.key_metadata).decode() == sketches.statistics_path
    status = table.encryption.status()
    assert (status.statistics, status.plain_statistics, status.is_complete) == (2, 0, True)


def test_blobs_of_earlier_statistics_and_earlier_partitions_are_taken_over(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    table.maintenance.compute_table_stats(["id"])
    table.maintenance.compute_table_stats(["text"])
    (file,) = table.refresh().metadata.statistics
    assert {each.fields for each in file.blob_metadata} == {(1,), (2,)}
    table.maintenance.compute_partition_stats()
    table.append(rows(100))
    table.maintenance.compute_partition_stats()
    assert sum(table.inspect.partition_statistics().column("data_record_count").to_pylist()) == 200
    source = open_statistics(table.io, table.metadata, file.statistics_path)
    with PuffinReader(source, file.statistics_path) as reader:
        assert all(reader.read(blob) for blob in reader.blobs)


def test_rotation_keeps_statistics_and_expiry_drops_their_keys_with_them(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    first = with_statistics(table)
    table.encryption.rotate()
    assert table.refresh().inspect.partition_statistics().num_rows == 3
    table.append(rows(100))
    second = with_statistics(table)
    table.maintenance.expire_snapshots(older_than=2**62, retain_last=1)
    table.refresh()
    keys = {key.key_id for key in table.metadata.encryption_keys}
    assert {each.statistics_path for each in second} <= keys
    assert not {each.statistics_path for each in first} & keys
    assert not any(path_of(each.statistics_path).exists() for each in first)
    clear_caches()
    again = catalog_in(tmp_path).load_table("db.t")
    assert again.inspect.partition_statistics().num_rows == 3


def test_a_key_of_statistics_that_are_kept_cannot_be_removed(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    file, _ = with_statistics(table)
    with pytest.raises(CommitFailed, match="still needed"):
        apply_updates(table.refresh().metadata, [RemoveEncryptionKey(file.statistics_path)])


def test_damaged_exchanged_and_plain_statistics_are_refused(tmp_path):
    table = new_table(catalog_in(tmp_path), **{"write.format.default": "avro"})
    table.append(rows(0))
    earlier = with_statistics(table)
    table.append(rows(100))
    later = with_statistics(table)
    _, plain = plain_copy(tmp_path)
    table.refresh()
    for number, file in enumerate(later):
        path = path_of(file.statistics_path)
        whole = path.read_bytes()
        others = (path_of(each[number].statistics_path).read_bytes() for each in (earlier, plain))
        other_kind = path_of(later[1 - number].statistics_path).read_bytes()
        damaged = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
        for data in (whole[:-1], damaged, whole[:8], other_kind, *others):
            path.write_bytes(data)
            with (
                pytest.raises(DecryptionFailed),
                open_statistics(table.io, table.metadata, file.statistics_path) as held,
            ):
                held.read()
        path.write_bytes(whole)
    assert table.inspect.partition_statistics().num_rows == 3


def test_a_catalog_without_the_master_key_reads_no_statistics(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    with_statistics(table)
    other = tmp_path / "other.json"
    add_key(other, "another")
    without = catalog_in(tmp_path, **{"encryption.local.keystore": str(other)}).load_table("db.t")
    with pytest.raises(KeyUnavailable):
        without.inspect.partition_statistics()


def test_plain_statistics_of_another_writer_are_read_and_reported(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    _, (_, file) = plain_copy(tmp_path)
    made = type(file)(table.current_snapshot().snapshot_id, file.statistics_path, file.file_size_in_bytes)
    table.update_statistics().set_partition_statistics(made).commit()
    table.refresh()
    assert table.inspect.partition_statistics().num_rows == 3
    assert table.encryption.status().plain_statistics == 1
    assert not table.encryption.status().is_complete
    found = {each.check.split(": ")[-1]: each.result for group in examine_table(table) for each in group.findings}
    assert found["plain-files"] is Result.WARNING


def test_statistics_survive_a_writer_that_drops_their_key_metadata(tmp_path):
    """Java's library keeps the keys of a table, and drops ``key-metadata`` of statistics."""
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    file, _ = with_statistics(table)
    path = path_of(table.refresh().metadata_location)
    document = json.loads(path.read_text())
    del document["statistics"][0]["key-metadata"]
    path.write_text(json.dumps(document))
    again = catalog_in(tmp_path).load_table("db.t")
    with PuffinReader(open_statistics(again.io, again.metadata, file.statistics_path), "there") as reader:
        assert len(reader.blobs) == 3


def test_encrypting_a_plain_table_leaves_no_plain_statistics(tmp_path):
    table, files = plain_copy(tmp_path)
    assert table.encryption.encrypt(MASTER).is_complete
    assert not any(path_of(each.statistics_path).exists() for each in files)
    with_statistics(table.refresh())
    assert table.refresh().encryption.status().is_complete
    assert ids(table) == [*range(100)]
    held = [each for each in files_of(tmp_path / "warehouse") if b"region-" in each.read_bytes()]
    assert held == []
