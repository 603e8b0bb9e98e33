"""A table as users hold it."""

from __future__ import annotations

import pickle

import icefield
import pytest
from tables import handle_of, ids, new_table, rows, state_of


def test_what_a_table_is_can_be_asked():
    table = new_table("kind")
    table.append(rows([1]))
    table.update_schema().add_column("x", "int").commit()
    table.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    assert sorted(table.schemas()) == [0, 1]
    assert sorted(table.specs()) == [0]
    assert sorted(table.sort_orders()) == [0]
    assert table.name_mapping().find("id").field_id == 1
    assert table.location_provider().data_location("f").startswith(table.location())
    snapshot = table.current_snapshot()
    assert table.snapshot_by_id(snapshot.snapshot_id) == snapshot
    assert table.snapshot_by_name("main") == snapshot
    assert table.snapshot_as_of_timestamp(snapshot.timestamp_ms) == snapshot
    assert table.snapshot_by_id(1) is None
    assert table.last_sequence_number == 1
    assert new_table().name_mapping() is None


@pytest.mark.spec("META-26")
def test_a_table_stays_at_its_version_until_it_is_refreshed():
    table = new_table()
    table.append(rows([1]))
    reader = memory_reader = table.scan()
    batches = reader.to_arrow_batch_reader()
    other = icefield.catalog.table.Table(handle_of(table), state_of(table))
    other.overwrite(rows([9]))
    assert batches.read_all()["id"].to_pylist() == [1]
    assert ids(table) == [1]
    assert ids(table.refresh()) == [9]
    assert memory_reader.count() == 1


def test_what_travels_to_executors_can_be_pickled():
    table = new_table("kind")
    table.append(rows([1]))
    scan = table.scan("id = 1")
    task, context = pickle.loads(pickle.dumps((next(scan.plan_files()), scan.context)))
    from icefield.scan.reading import read_task

    assert [row for batch in read_task(task, context) for row in batch.to_pylist()] == rows([1]).to_pylist()
