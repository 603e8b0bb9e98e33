"""One writer for every format version, and upgrades that rewrite nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.commit import load_table
from icefield.manifest.schemas import FILE_SEQUENCE_NUMBER, SEQUENCE_NUMBER
from tables import entries, handle_of, ids, live_files, manifests, meddled, new_table, orphans, rows, stored_files


def document(table: Table) -> dict[str, Any]:
    return json.loads(MemoryFileSystem.files[table.metadata_location][0])


@pytest.mark.spec("VER-01", "VER-03", "VER-04", "VER-05", "SNAP-04", "SNAP-07")
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partition_spec", [None, "kind", "bucket[3](id)"])
def test_every_change_works_in_every_version(version: int, partition_spec: str | None):
    table = new_table(partition_spec, **{"format-version": str(version), "commit.manifest.min-count-to-merge": "3"})
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    table.append(rows([4, 5], "a"))
    table.delete("id = 1")
    table.overwrite(rows([6], "c"), "kind = 'b'")
    meddled(table, lambda other: other.append(rows([7], "b"))).delete("id = 4")
    table.refresh()
    with table.transaction() as tx:
        tx.update_schema().add_column("more", "int").rename_column("value", "amount").commit()
        tx.append(pa.table({"id": [8], "kind": ["c"], "more": pa.array([1], pa.int32())}))
    table.update_spec().add_field("id", "truncate[2]").commit()
    table.append(pa.table({"id": [11], "kind": ["c"]}))
    # With row 9 this is refused: row 8 of the older spec may be in the same partition.
    table.dynamic_partition_overwrite(pa.table({"id": [11], "kind": ["c"]}))
    assert ids(table) == [2, 5, 6, 7, 8, 11]
    assert ids(table, "kind = 'c' and id > 6") == [8, 11]
    assert orphans(table) == set()
    numbers = [snapshot.sequence_number for snapshot in table.snapshots()]
    assert numbers == ([0] * len(numbers) if version == 1 else list(range(1, len(numbers) + 1)))
    stored = document(table)
    assert stored["format-version"] == version
    assert ("last-sequence-number" in stored) == (version > 1)
    assert ("schema" in stored) == ("partition-spec" in stored) == (version == 1)
    assert ("next-row-id" in stored) == (version > 2)
    assert all(("sequence-number" in snapshot) == (version > 1) for snapshot in stored["snapshots"])


@pytest.mark.spec("VER-02", "VER-03", "VER-07", "VER-08", "MAN-16", "SNAP-04", "ROW-11")
def test_an_upgrade_changes_metadata_only_and_everything_written_before_stays_valid():
    table = new_table("kind", **{"format-version": "1"})
    table.append(rows([1, 2], "a"))
    table.append(rows([3], "b"))
    before = {name: MemoryFileSystem.files[name] for name in stored_files(table) if "version-hint" not in name}
    uuid = table.metadata.table_uuid
    expected = [1, 2, 3]
    for version in (2, 3):
        files = {name for name in stored_files(table) if name.endswith((".avro", ".parquet"))}
        versions = len(table.metadata.metadata_log)
        table.transaction().upgrade_table_version(version).commit_transaction()
        assert table.format_version == version
        assert len(table.metadata.metadata_log) == versions + 1
        assert table.metadata.table_uuid == uuid
        assert [snapshot.sequence_number for snapshot in table.snapshots()[:2]] == [0, 0]
        assert ids(table) == expected
        assert {name for name in stored_files(table) if name.endswith((".avro", ".parquet"))} == files
        table.append(rows([version * 10], "b"))
        expected.append(version * 10)
        assert table.current_snapshot().sequence_number == version - 1
        assert ids(table, snapshot_id=table.snapshots()[0].snapshot_id) == [1, 2]
    assert {name: MemoryFileSystem.files[name] for name in before} == before
    assert ids(table) == expected == [1, 2, 3, 20, 30]
    old = manifests(table)[0]
    found = entries(table, old)
    assert found.column(SEQUENCE_NUMBER).to_pylist() == found.column(FILE_SEQUENCE_NUMBER).to_pylist() == [0]
    # The first snapshot of version 3 assigns row ids to the existing rows.
    assert (table.current_snapshot().first_row_id, table.current_snapshot().added_rows) == (0, 5)
    table.delete("id = 1")
    assert ids(table) == [2, 3, 20, 30]
    assert live_files(table) <= stored_files(table)


@pytest.mark.spec("VER-07", "META-03")
def test_an_upgrade_gives_a_uuid_to_a_table_that_has_none():
    table = new_table(**{"format-version": "1"})
    stored = document(table)
    del stored["table-uuid"]
    location = table.metadata_location
    MemoryFileSystem.files[location] = (json.dumps(stored).encode(), 0)
    state = load_table(handle_of(table))
    assert state is not None
    bare = Table(handle_of(table), state)
    assert bare.metadata.table_uuid is None
    bare.append(rows([1]))
    bare.transaction().upgrade_table_version(2).commit_transaction()
    assert bare.metadata.table_uuid is not None
    assert ids(bare) == [1]


@pytest.mark.spec("META-19")
def test_the_metadata_log_names_the_last_hundred_files():
    table = new_table()
    names = [table.metadata_location]
    for number in range(105):
        table.set_properties(n=number)
        names.append(table.metadata_location)
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    assert log == names[-101:-1]
    assert set(names) <= stored_files(table)  # falling out of the log deletes nothing here
    times = [entry.timestamp_ms for entry in table.metadata.metadata_log]
    assert times == sorted(times)
    few = new_table(**{"write.metadata.previous-versions-max": "2"})
    for number in range(5):
        few.set_properties(n=number)
    assert len(few.metadata.metadata_log) == 2


@pytest.mark.spec("META-17", "META-19", "META-06")
def test_each_log_states_its_own_kind_of_change():
    table = new_table()
    table.append(rows([1]))
    table.set_properties(a=1)
    table.append(rows([2]))
    assert [entry.snapshot_id for entry in table.history()] == [s.snapshot_id for s in table.snapshots()]
    assert len(table.metadata.metadata_log) == 3
    assert [entry.timestamp_ms for entry in table.history()] == [s.timestamp_ms for s in table.snapshots()]
    assert table.metadata.last_updated_ms == table.current_snapshot().timestamp_ms


@pytest.mark.spec("META-06", "META-25")
def test_time_never_runs_backwards_whatever_the_clock_says(monkeypatch):
    table = new_table()
    table.append(rows([1]))
    first = table.current_snapshot().timestamp_ms
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)
    table.append(rows([2]))
    assert table.current_snapshot().timestamp_ms == first
    assert table.metadata.last_updated_ms == first
    assert ids(table) == [1, 2]
