"""Encrypting tables with branches and tags: each keeps its rows, and no plain file stays."""

from __future__ import annotations

import pytest
from encrypted_tables import FORMATS, MASTER, SCHEMA, catalog_in, clear_caches, files_of, new_table, rows
from icefield_maintenance import MaintenanceTable


def plain_table(tmp_path, file_format="parquet"):
    """A plain table. Its branches and tags name heads of branches, and snapshots outside of all branches."""
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    properties = {"write.delete.mode": "merge-on-read", "write.format.default": file_format, "format-version": "2"}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=properties)
    with table.manage_snapshots() as change:
        change.create_branch(None, "empty")
    table.append(rows(0))
    first = table.current_snapshot().snapshot_id
    table.append(rows(100))
    table.delete("id in (7, 107)")
    second = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as change:
        change.create_tag(first, "early", max_ref_age_ms=10**12)
        change.create_tag(first, "early-again")
        change.create_tag(second, "head")
        change.create_branch(first, "dev", min_snapshots_to_keep=9)
        change.create_branch(second, "same-as-main")
        change.set_min_snapshots_to_keep("main", 9)
    table.append(rows(500, 5), branch="dev")
    table.delete("id = 9", branch="dev")
    table.append(rows(900, 1), branch="dev", snapshot_properties={"wap.id": "waiting"})
    return table


def rows_by_ref(table):
    clear_caches()
    found = {name: table.scan(ref=name).to_arrow().column("id").to_pylist() for name in table.refresh().refs()}
    return {name: sorted(held) for name, held in found.items()}


def assert_no_plain_file(table, folder):
    assert table.encryption.status().is_complete
    for path in files_of(folder):
        data = path.read_bytes()
        assert b"confidential-" not in data, path
        assert path.suffix in (".json", ".text") or data[:4] in (b"AGS1", b"PARE"), path


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_branch_and_tag_keeps_its_rows_and_no_plain_file_is_left(tmp_path, file_format):
    table = plain_table(tmp_path, file_format)
    wanted, refs = rows_by_ref(table), dict(table.refs())
    assert set(map(len, wanted.values())) == {0, 100, 198, 105} | {len(wanted["dev"])}
    table.encryption.encrypt(MASTER)
    assert rows_by_ref(table) == wanted
    assert_no_plain_file(table, tmp_path / "warehouse")
    after = table.refs()
    assert {name: (ref.type, ref.max_ref_age_ms, ref.min_snapshots_to_keep) for name, ref in after.items()} == {
        name: (ref.type, ref.max_ref_age_ms, ref.min_snapshots_to_keep) for name, ref in refs.items()
    }
    assert after["early"].snapshot_id == after["early-again"].snapshot_id
    assert after["head"].snapshot_id in {after[name].snapshot_id for name in ("main", "same-as-main")}
    assert {each.snapshot_id for each in table.snapshots()} == {ref.snapshot_id for ref in after.values()}


def test_rewriting_an_encrypted_table_gives_every_file_of_its_tags_a_new_key(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "one").commit()
    table.append(rows(100))
    wanted = rows_by_ref(table)
    table_folder = tmp_path / "warehouse" / "db" / "t"
    before = {path for path in files_of(table_folder) if path.suffix in (".parquet", ".avro")}
    table.encryption.rewrite()
    assert rows_by_ref(table) == wanted
    assert not before & {*files_of(table_folder)}


@pytest.mark.slow
def test_an_interrupted_call_is_finished_by_the_next_one(tmp_path, monkeypatch):
    table = plain_table(tmp_path)
    wanted = rows_by_ref(table)
    operations = ["rewrite_data_files", "remove_dangling_deletes", "rewrite_manifests", "expire_snapshots"]
    kept = {name: getattr(MaintenanceTable, name) for name in operations}

    def stopping(name, left):
        def operation(self, *given, **options):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return kept[name](self, *given, **options)

        return operation

    for steps in range(40):
        left = iter(range(steps))
        for name in operations:
            monkeypatch.setattr(MaintenanceTable, name, stopping(name, left))
        try:
            table.encryption.encrypt(MASTER)
        except KeyboardInterrupt:
            monkeypatch.undo()
            if steps % 5 == 0:
                found = rows_by_ref(table)
                assert {name: found[name] for name in wanted} == wanted
        else:
            break
    else:
        raise AssertionError("it was never finished")
    assert rows_by_ref(table) == wanted
    assert_no_plain_file(table, tmp_path / "warehouse")


@pytest.mark.slow
def test_a_writer_between_the_steps_loses_no_row(tmp_path, monkeypatch):
    table = plain_table(tmp_path)
    wanted = rows_by_ref(table)
    rewrite, number = MaintenanceTable.rewrite_data_files, iter(range(2000, 9000, 100))

    def after_a_rival(self, *given, branch="main", **options):
        rival = catalog_in(tmp_path).load_table("db.t")
        if branch in wanted:
            first = next(number)
            rival.append(rows(first, 2), branch=branch)
            wanted[branch] = sorted([*wanted[branch], first, first + 1])
        return rewrite(self, *given, branch=branch, **options)

    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", after_a_rival)
    table.encryption.encrypt(MASTER)
    assert rows_by_ref(table) == wanted
    assert_no_plain_file(table, tmp_path / "warehouse")
