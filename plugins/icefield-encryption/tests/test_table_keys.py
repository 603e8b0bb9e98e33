"""Rotating keys, encrypting a plain table, and what the doctor says of keys."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from encrypted_tables import MASTER, SCHEMA, catalog_in, clear_caches, files_of, ids, keystore, new_table, rows
from icefield.errors import CommitFailed, InvalidArgument, KeyUnavailable, UnsupportedFeature
from icefield.metadata import AddEncryptionKey, RemoveEncryptionKey, apply_updates
from icefield_cli.main import main
from icefield_encryption import standard
from icefield_encryption.local_keystore import LocalKeystore, add_key
from icefield_maintenance.doctor import Result, examine_table
from icefield_maintenance.tend import Policy, Tending


def without_version_1(path: Path) -> None:
    held = json.loads(path.read_text())
    del held["keys"][MASTER]["versions"]["1"]
    path.write_text(json.dumps(held))


def test_rotation_frees_a_table_of_the_earlier_version_of_its_master_key(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    add_key(keystore(tmp_path), MASTER)
    table.encryption.rotate()
    table.append(rows(100))
    without_version_1(keystore(tmp_path))
    again = catalog_in(tmp_path).load_table("db.t")
    assert ids(again) == [*range(200)]
    status = again.encryption.status()
    assert (status.key_version, status.key_encryption_keys, status.files, status.is_complete) == ("2", 2, 6, True)
    lists = [key.encrypted_by_id for key in again.metadata.encryption_keys if not standard.is_key_encryption_key(key)]
    assert len(set(lists)) == 2  # the second list has the new key


def test_a_key_encryption_key_is_replaced_after_its_life(tmp_path, monkeypatch):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    later = standard.now_ms() + standard.KEY_LIFE_MS + 1
    monkeypatch.setattr(standard, "now_ms", lambda: later)
    assert by_rule(table)["key-rotation"] is Result.WARNING
    table.append(rows(100))
    assert by_rule(table)["key-rotation"] is Result.OK
    assert table.encryption.status().key_encryption_keys == 2
    assert ids(table) == [*range(200)]


def test_an_unwrapped_key_is_asked_for_again_after_the_life_that_its_service_states(tmp_path, monkeypatch):
    monkeypatch.setattr(LocalKeystore, "key_life_seconds", 0.0)
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    assert len(ids(table)) == 100
    keystore(tmp_path).unlink()
    clear_caches()
    with pytest.raises(KeyUnavailable):
        table.scan().to_arrow()


def test_a_plain_table_is_encrypted_and_no_plain_file_is_left(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", SCHEMA, partition_spec=["part"], properties={"write.delete.mode": "merge-on-read"}
    )
    table.append(rows(0))
    table.append(rows(100))
    table.delete("id = 7")
    with pytest.raises(KeyUnavailable):
        table.encryption.encrypt("no-such-key")
    assert "encryption.key-id" not in table.metadata.properties
    status = table.encryption.encrypt(MASTER)
    assert status.is_complete
    assert ids(table) == sorted({*range(200)} - {7})
    for path in files_of(tmp_path / "warehouse"):
        assert b"confidential-" not in path.read_bytes(), path
        assert path.suffix in (".json", ".text") or path.read_bytes()[:4] in (b"AGS1", b"PARE"), path


def test_plain_files_of_an_encrypted_table_are_read_and_reported(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
    table.append(rows(0))
    table.set_properties({"encryption.key-id": MASTER})
    table.append(rows(100))
    assert ids(table) == [*range(200)]
    status = table.encryption.status()
    assert (status.plain_manifest_lists, status.plain_manifests, status.plain_files) == (1, 1, 1)
    assert not status.is_complete
    assert by_rule(table)["plain-files"] is Result.WARNING
    assert table.encryption.rewrite().is_complete
    assert by_rule(table)["plain-files"] is Result.OK


def test_a_table_whose_files_may_not_be_deleted_is_not_encrypted_in_part(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"gc.enabled": "false"})
    table.append(rows(0))
    before = table.metadata_location
    with pytest.raises(UnsupportedFeature, match=r"gc\.enabled"):
        table.encryption.encrypt(MASTER)
    assert table.refresh().metadata_location == before


def test_rows_that_were_written_before_a_table_was_encrypted_are_refused_until_it_is_refreshed(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
    queue = table.append_queue()
    catalog.load_table("db.t").set_properties({"encryption.key-id": MASTER})
    for append in (table.append, queue.append):
        with pytest.raises(UnsupportedFeature, match="refresh the table"):
            append(rows(0))
    assert not [path for path in files_of(tmp_path / "warehouse") if path.suffix == ".parquet"]
    table.refresh().append(rows(0))
    queue.append(rows(100))  # a queue refreshes itself after a failure
    assert table.refresh().encryption.status().is_complete
    assert ids(table) == [*range(200)]


def test_a_plain_file_with_key_metadata_of_another_program_is_refused(tmp_path):
    catalog = catalog_in(tmp_path)
    table = new_table(catalog)
    table.append(rows(0))
    plain = catalog.create_table("db.plain", SCHEMA, partition_spec=["part"], properties={"format-version": "3"})
    plain.append(rows(100, 1))
    (task,) = plain.scan().plan_files()
    with pytest.raises(UnsupportedFeature, match="is plain"), table.transaction() as tx:
        tx.update_snapshot().fast_append().append_file(replace(task.file, key_metadata=b"\0")).commit()
    with plain.transaction() as tx:
        other = replace(task.file, file_path="/other.parquet", key_metadata=b"\0")
        tx.update_snapshot().fast_append().append_file(other).commit()
    assert plain.refresh().encryption.status().plain_files == 2


def test_bloom_filters_are_left_out_of_encrypted_files(tmp_path):
    table = new_table(catalog_in(tmp_path), **{"write.parquet.bloom-filter-enabled.column.text": "true"})
    table.append(rows(0))
    assert ids(table, "text = 'confidential-7'") == [7]


def by_rule(table):
    return {
        finding.check.split(": ")[-1]: finding.result for group in examine_table(table) for finding in group.findings
    }


def test_the_doctor_finds_a_missing_key(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    assert by_rule(table)["encryption-keys"] is Result.OK
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    document["encryption-keys"] = [key for key in document["encryption-keys"] if key["encrypted-by-id"] == MASTER]
    path.write_text(json.dumps(document))
    assert by_rule(catalog_in(tmp_path).load_table("db.t"))["encryption-keys"] is Result.FAILED


def test_a_plain_table_has_no_keys_to_rotate(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    with pytest.raises(InvalidArgument, match="is not encrypted"):
        catalog.create_table("db.t", SCHEMA).encryption.rotate()


def test_the_command_rotates_and_shows_no_key(tmp_path, capsys):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    given = {"type": "directory", "warehouse": str(tmp_path / "warehouse"), "encryption.kms-type": "local",
             "encryption.local.keystore": str(keystore(tmp_path))}  # fmt: skip
    properties = [word for pair in given.items() for word in ("--property", "=".join(pair))]

    def ran(*words):
        try:
            status = main([*words, *properties])
        except SystemExit as ended:
            status = ended.code
        return status or 0, capsys.readouterr()

    assert ran("encryption", "rotate", "db.t")[0] == 0
    status, out = ran("encryption", "status", "db.t", "--output", "json")
    assert status == 0
    assert json.loads(out.out)["key_encryption_keys"] == 2
    assert ran("encryption", "twist", "db.t")[0] == 2
    assert ran("encryption", "encrypt", "db.t")[0] == 2
    held = json.loads(keystore(tmp_path).read_text())["keys"][MASTER]["versions"]
    assert not any(secret in out.out + out.err for secret in held.values())


def test_a_commit_whose_key_was_removed_meanwhile_is_refused(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.encryption.rotate()
    base = table.refresh().metadata
    *_, own = table.io.encryption.store_key(base, table.io.encryption.new_key(16))
    table.encryption.rotate()
    after = apply_updates(table.refresh().metadata, [RemoveEncryptionKey(base.encryption_keys[0].key_id)])
    with pytest.raises(CommitFailed, match="still needed"):
        apply_updates(after, [AddEncryptionKey(own)])


def test_a_key_that_a_snapshot_needs_is_not_removed(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    for key in table.metadata.encryption_keys:
        with pytest.raises(CommitFailed, match="still needed"):
            apply_updates(table.metadata, [RemoveEncryptionKey(key.key_id)])


def test_tending_computes_the_statistics_of_an_encrypted_table(tmp_path):
    catalog = catalog_in(tmp_path)
    new_table(catalog).append(rows(0))
    policy = Policy.from_mapping({"rules": [{"tables": "db.*", "statistics-age": "1d"}]})
    done = {each.operation: each.outcome for each in Tending(catalog, policy).run()}
    assert done == {"compute_table_stats": "done", "compute_partition_stats": "done"}
    assert catalog.load_table("db.t").encryption.status().plain_statistics == 0
