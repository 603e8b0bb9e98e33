"""Encrypted tables through every change, and what is in their files."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from encrypted_tables import FORMATS, MASTER, catalog_in, clear_caches, files_of, ids, new_table, rows
from icefield import load_catalog
from icefield.errors import DecryptionFailed, IcefieldError, KeyUnavailable, StorageError
from icefield.scan import read_tasks
from icefield_encryption.key_metadata import decode
from icefield_encryption.local_keystore import LocalKeystore

PLAIN_VALUES = re.compile(rb"confidential-\d|region-\d")


def change(table, file_format):
    """Every kind of change, and the ids that are left."""
    table.append(rows(0))
    table.append(rows(100))
    table.delete("id in (1, 50, 150)")
    table.delete("part = 'region-2' and id < 100")
    table.upsert(rows(195, 10), ["id"])
    table.overwrite(rows(300, 5), "id >= 300")
    table.manage_snapshots().create_branch(None, "dev").commit()
    table.append(rows(400, 5), branch="dev")
    left = {*range(205)} - {1, 50, 150} - {each for each in range(100) if each % 3 == 2}
    return sorted({*left, *range(300, 305)})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_every_change_of_an_encrypted_table_leaves_no_value_and_no_key_in_its_files(tmp_path, file_format, mode):
    catalog = catalog_in(tmp_path)
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    table = new_table(catalog, **{"write.format.default": file_format, **modes})
    expected = change(table, file_format)
    assert ids(table) == expected
    keys = {
        decode(file.key_metadata, "f").key
        for task in table.scan().plan_files()
        for file in (task.file, *task.delete_files)
    }
    table.maintenance.rewrite_data_files(rewrite_all=True)
    table.maintenance.rewrite_manifests()
    assert ids(table.refresh()) == expected
    assert ids(table, "part = 'region-1' and id < 100") == [n for n in expected if n % 3 == 1 and n < 100]
    clear_caches()
    assert table.scan(ref="dev").to_arrow().num_rows == len(expected) + 5
    keys |= {decode(task.file.key_metadata, "f").key for task in table.scan().plan_files()}
    stored = files_of(tmp_path / "warehouse")
    assert {path.read_bytes()[:4] for path in stored if path.suffix in (".avro", ".orc", ".puffin")} == {b"AGS1"}
    for path in stored:
        data = path.read_bytes()
        assert not PLAIN_VALUES.search(str(path).encode()), path
        found = PLAIN_VALUES.search(data)
        assert found is None, (path, data[max(0, found.start() - 60) : found.end() + 20])
        assert not any(key in data for key in keys), path


def test_the_keys_of_expired_snapshots_are_dropped_with_their_files(tmp_path):
    table = new_table(catalog_in(tmp_path))
    for turn in range(4):
        table.append(rows(100 * turn))
    table.overwrite(rows(0, 5))
    assert len(table.metadata.encryption_keys) == 6
    table.maintenance.expire_snapshots(older_than=2**62, retain_last=1)
    table.refresh()
    assert len(table.metadata.snapshots) == 1
    assert len(table.metadata.encryption_keys) == 2
    assert ids(table) == [*range(5)]
    kept = [path for path in files_of(tmp_path / "warehouse") if path.suffix == ".parquet"]
    assert len(kept) == 3  # a partition each


def test_a_catalog_without_the_master_key_reads_nothing(tmp_path):
    new_table(catalog_in(tmp_path)).append(rows(0))
    clear_caches()
    without = load_catalog("other", type="directory", warehouse=str(tmp_path / "warehouse")).load_table("db.t")
    with pytest.raises(KeyUnavailable, match=r"encryption\.kms-type"):
        without.scan().to_arrow()
    with pytest.raises(KeyUnavailable):
        without.append(rows(100))


def test_a_cached_manifest_list_is_not_handed_to_a_catalog_without_keys(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    assert len(table.scan().to_arrow()) == 100  # the caches are filled
    without = load_catalog("other", type="directory", warehouse=str(tmp_path / "warehouse")).load_table("db.t")
    with pytest.raises(KeyUnavailable):
        without.scan().to_arrow()


def test_no_key_is_shown(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    task = next(iter(table.scan().plan_files()))
    key = decode(task.file.key_metadata, "f").key
    assert repr(key)[2:-1] not in repr(task.file)
    assert repr(key)[2:-1] not in repr(task)
    assert set(table.inspect.files().column("key_metadata").to_pylist()) == {b"\1"}
    assert {entry["key_metadata"] for entry in table.inspect.entries().column("data_file").to_pylist()} == {b"\1"}
    assert set(table.inspect.all_manifests().column("key_metadata").to_pylist()) == {b"\1"}
    assert key not in pickle.dumps(table.io)


def test_a_task_is_read_where_no_key_service_can_be_reached(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    table.delete("id = 5")
    scan = table.scan()
    tasks = [*scan.plan_files()]
    pattern = re.compile(r"encryption\.")
    context = replace(scan.context, io=scan.context.io.for_workers(pattern))
    moved = pickle.loads(pickle.dumps((tasks, context)))
    assert not any(name.startswith("encryption.") for name in moved[1].io.properties)
    assert sum(map(len, read_tasks(*moved))) == 99


@pytest.mark.parametrize("file_format", FORMATS)
def test_splits_of_a_large_file_are_read_apart(tmp_path, file_format):
    table = new_table(
        catalog_in(tmp_path),
        **{
            "write.format.default": file_format,
            "read.split.target-size": "500000",
            "write.parquet.row-group-size-bytes": "300000",
            "write.orc.stripe-size-bytes": "300000",
            "write.avro.compression-codec": "uncompressed",
            "write.orc.compression-codec": "none",
            "write.parquet.compression-codec": "uncompressed",
        },
    )
    table.append(rows(0, 60_000))
    assert ids(table) == [*range(60_000)]
    assert ids(table, "id between 30000 and 30010 and part = 'region-1'") == [30001, 30004, 30007, 30010]


def test_a_key_whose_time_was_changed_opens_nothing(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    path = Path(table.metadata_location.removeprefix("file://"))
    data = path.read_text()
    stamp = re.search(r'"KEY_TIMESTAMP"\s*:\s*"(\d+)"', data)[1]
    clear_caches()
    path.write_text(data.replace(stamp, str(int(stamp) + 1)))
    with pytest.raises(DecryptionFailed, match="does not open"):
        catalog_in(tmp_path).load_table("db.t").scan().to_arrow()
    assert issubclass(DecryptionFailed, IcefieldError)


def test_a_key_that_is_damaged_while_it_is_wrapped_is_never_used(tmp_path, monkeypatch):
    table = new_table(catalog_in(tmp_path))
    wrap = LocalKeystore.wrap

    def damaged(self, key, key_id):
        return wrap(self, bytes(len(key)), key_id)

    monkeypatch.setattr(LocalKeystore, "wrap", damaged)
    with pytest.raises(StorageError, match="does not give back a key"):
        table.append(rows(0))
    monkeypatch.undo()
    assert table.refresh().current_snapshot() is None
    assert not len(table.metadata.encryption_keys)


def test_commits_use_one_key_encryption_key(tmp_path):
    table = new_table(catalog_in(tmp_path))
    for turn in range(3):
        table.append(rows(turn))
    by = [key.encrypted_by_id for key in table.metadata.encryption_keys]
    assert by.count(MASTER) == 1
    assert len(set(by)) == 2
