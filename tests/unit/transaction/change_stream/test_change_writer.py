"""Streams of changes into a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import InvalidArgument, StorageError, UnsupportedFeature
from icefield.manifest import DataFileContent
from icefield.metadata.snapshots import Operation
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.transaction import ChangeKind, ChangeWriter
from icefield.transaction.change_stream import apply_changes as module
from icefield.writing import DeleteContext, WriteContext
from tables import SCHEMA, ids, new_table, rows

BY_KIND = PartitionSpec(PartitionField(2, 1000, "identity", "kind"))
INSERT, BEFORE, AFTER, DELETE = ChangeKind.INSERT, ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER, ChangeKind.DELETE
Change = tuple[ChangeKind, int, str | None, float | None]


def stream(*changes: Change) -> pa.Table:
    columns = [*zip(*changes, strict=True)] or [(), (), (), ()]
    made = pa.table({"id": [*columns[1]], "kind": [*columns[2]], "value": [*columns[3]]}, SCHEMA)
    return made.append_column("_change_type", pa.array([kind.name for kind in columns[0]], pa.string()))


def held(table: Table) -> list[tuple[int, str, float]]:
    return sorted((row["id"], row["kind"], row["value"]) for row in table.scan().to_arrow().to_pylist())


def kinds_of_deletes(table: Table) -> dict[str, int]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    names = ("added-equality-deletes", "added-position-deletes", "added-dvs", "added-records")
    return {name: int(snapshot.summary[name]) for name in names if name in snapshot.summary}


def files_below(table: Table) -> set[str]:
    return {info.location for info in table.io.list_files(f"{table.location()}/data")}


@pytest.mark.parametrize("version", ["2", "3"])
def test_old_rows_are_deleted_by_equality_and_rows_of_the_stream_by_position(version: str) -> None:
    table = new_table(properties={"format-version": version})
    table.append(rows([1, 2, 3]))
    table.apply_changes(
        [
            stream((INSERT, 10, "n", 1.0), (INSERT, 11, "n", 1.0), (DELETE, 1, "a", 1.0)),
            stream((DELETE, 10, "n", 1.0), (BEFORE, 2, "a", 1.0), (AFTER, 2, "b", 5.0)),
            stream((BEFORE, 2, "b", 5.0), (AFTER, 2, "c", 6.0), (BEFORE, 11, "n", 1.0), (AFTER, 11, "m", 2.0)),
        ],
        ["id"],
    )
    assert held(table) == [(2, "c", 6.0), (3, "a", 1.0), (11, "m", 2.0)]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation is Operation.OVERWRITE
    # Small batches are combined, so rows that a later change deletes are not written at all.
    assert kinds_of_deletes(table) == {"added-equality-deletes": 2, "added-records": 2}


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_writer_deletes_the_rows_that_it_wrote_itself_by_position(version: str) -> None:
    table = new_table(properties={"format-version": version})
    table.append(rows([1, 2, 3]))
    context = WriteContext.from_metadata(table.metadata, table.io)
    with ChangeWriter(context, DeleteContext.from_metadata(table.metadata, table.io), [1]) as writer:
        writer.write(rows([10, 11, 12]).to_batches()[0], INSERT)
        writer.write(rows([11, 2]).to_batches()[0], DELETE)
        writer.write(rows([11], "again").to_batches()[0], INSERT)
        writer.write(rows([10]).to_batches()[0], BEFORE)
        made = writer.close()
    contents = [file.content for file in made.delete_files]
    assert contents == [DataFileContent.EQUALITY_DELETES, DataFileContent.POSITION_DELETES]
    assert [file.record_count for file in made.delete_files] == [1, 2]
    assert made.delete_files[1].is_deletion_vector == (version == "3")
    assert len({file.file_path for file in made.all_files}) == 3
    with table.update_snapshot().row_delta() as action:
        action.add_rows(*made.data_files).add_deletes(*made.delete_files)
    assert held(table) == [(1, "a", 1.0), (3, "a", 1.0), (11, "again", 1.0), (12, "a", 1.0)]


@pytest.mark.parametrize("upsert", [True, None])
def test_with_upsert_whatever_has_the_key_is_replaced(upsert: bool | None) -> None:
    table = new_table(properties={} if upsert else {"write.upsert.enabled": "true"})
    table.append(rows([1, 2, 3]))
    changes = stream((INSERT, 1, "x", 2.0), (BEFORE, 2, "a", 1.0), (AFTER, 2, "y", 3.0), (AFTER, 9, "z", 4.0))
    table.apply_changes(changes, ["id"], upsert=upsert)
    assert held(table) == [(1, "x", 2.0), (2, "y", 3.0), (3, "a", 1.0), (9, "z", 4.0)]
    # A row to delete needs its key alone.
    table.apply_changes([("-D", pa.table({"id": [3]}))], ["id"], upsert=True)
    assert ids(table) == [1, 2, 9]


def test_operations_and_rows_may_come_in_pairs_and_under_another_name() -> None:
    table = new_table()
    table.apply_changes([("c", rows([1, 2])), (DELETE, rows([1])), ("+I", rows([3]).to_batches()[0])], ["id"])
    assert ids(table) == [2, 3]
    other = stream((DELETE, 2, "a", 1.0)).rename_columns(["id", "kind", "value", "op"])
    table.apply_changes(other.to_reader(), ["id"], "op")
    assert ids(table) == [3]
    with pytest.raises(InvalidArgument, match="need one column '_change_type'"):
        table.apply_changes(other, ["id"])


def test_an_updated_row_may_move_to_another_partition() -> None:
    table = new_table(BY_KIND)
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    changes = stream((BEFORE, 1, "a", 1.0), (AFTER, 1, "b", 2.0), (DELETE, 3, "b", 1.0), (INSERT, 3, "a", 9.0))
    table.apply_changes(changes, ["id"])
    assert held(table) == [(1, "b", 2.0), (2, "a", 1.0), (3, "a", 9.0)]
    with pytest.raises(InvalidArgument, match="partitioned by 'kind', which is no column of the key"):
        table.apply_changes(changes, ["id"], upsert=True)
    table.apply_changes(stream((AFTER, 1, "b", 7.0)), ["id", "kind"], upsert=True)
    assert held(table)[0] == (1, "b", 7.0)


def test_a_full_writer_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    table.append(rows([1, 2, 3]))
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 1)

    class Small(ChangeWriter):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, index_bytes=1, **kwargs)

    monkeypatch.setattr(module, "ChangeWriter", Small)
    batches = [
        stream((INSERT, 10, "a", 1.0)),
        stream((DELETE, 10, "a", 1.0), (INSERT, 11, "a", 1.0)),
        stream((BEFORE, 11, "a", 1.0), (AFTER, 11, "b", 1.0), (DELETE, 1, "a", 1.0)),
    ]
    table.apply_changes(batches, ["id"])
    assert held(table) == [(2, "a", 1.0), (3, "a", 1.0), (11, "b", 1.0)]
    assert len(table.metadata.snapshots) == 4


def test_an_error_leaves_the_table_and_its_folder_as_they_were() -> None:
    table = new_table()
    table.append(rows([1, 2, 3]))
    files, version = files_below(table), table.metadata_location

    def changes() -> Any:
        yield stream((INSERT, 10, "a", 1.0), (DELETE, 1, "a", 1.0))
        raise StorageError("the source is gone")

    with pytest.raises(StorageError, match="source is gone"):
        table.apply_changes(changes(), ["id"])
    with pytest.raises(InvalidArgument, match="'merge' is no operation"):
        table.apply_changes([("merge", rows([1]))], ["id"])
    assert files_below(table) == files
    assert table.refresh().metadata_location == version


def test_what_a_writer_cannot_take_is_refused() -> None:
    table = new_table()
    context = WriteContext.from_metadata(table.metadata, table.io)
    deletes = DeleteContext.from_metadata(table.metadata, table.io)
    batch = rows([1, 2]).to_batches()[0]
    with ChangeWriter(context, deletes, [1]) as writer, pytest.raises(InvalidArgument, match="1 operations for 2"):
        writer.write(batch, [0])
    for again in (lambda: writer.write(batch, INSERT), writer.close):
        with pytest.raises(InvalidArgument, match="has ended"):
            again()
    old = new_table(properties={"format-version": "1"})
    with pytest.raises(UnsupportedFeature, match="no row-level deletes"):
        old.apply_changes([(INSERT, rows([1]))], ["id"])


def test_no_changes_make_no_version() -> None:
    table = new_table()
    version = table.metadata_location
    table.apply_changes([], ["id"])
    table.apply_changes(stream(), ["id"])
    assert table.refresh().metadata_location == version


CHANGE = st.tuples(st.sampled_from([*ChangeKind]), st.integers(0, 9), st.sampled_from("ab"), st.floats(0, 9, width=16))


def model(before: dict[Any, Any], changes: list[Change], keyed_by_kind: bool) -> dict[Any, Any]:
    after = dict(before)
    for kind, number, name, value in changes:
        key = (number, name) if keyed_by_kind else number
        if kind is DELETE:
            after.pop(key, None)
        elif kind is not BEFORE:
            after[key] = (number, name, value)
    return after


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.lists(CHANGE, max_size=8), max_size=4),
    st.lists(st.integers(0, 9), unique=True, max_size=6),
    st.sampled_from(["2", "3"]),
    st.booleans(),
)
def test_upserts_leave_what_a_dictionary_would(
    batches: list[list[Change]], start: list[int], version: str, partitioned: bool
) -> None:
    table = new_table(BY_KIND if partitioned else None, properties={"format-version": version})
    table.append(rows(start))
    table_ids = [1, 2] if partitioned else [1]
    context = WriteContext.from_metadata(table.metadata, table.io)
    deletes = DeleteContext.from_metadata(table.metadata, table.io)
    with ChangeWriter(context, deletes, table_ids, upsert=True) as writer:
        for batch in batches:
            given_rows = stream(*batch).drop_columns(["_change_type"]).combine_chunks().to_batches()
            for part in given_rows:
                writer.write(part, [kind for kind, *_ in batch])
        made = writer.close()
    with table.update_snapshot().row_delta() as action:
        action.add_rows(*made.data_files).add_deletes(*made.delete_files)
    before = {((number, "a") if partitioned else number): (number, "a", 1.0) for number in start}
    everything = [change for batch in batches for change in batch]
    assert held(table) == sorted(model(before, everything, partitioned).values())


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from(["2", "3"]), st.booleans())
def test_a_changelog_leaves_what_it_describes(data: st.DataObject, version: str, partitioned: bool) -> None:
    table = new_table(BY_KIND if partitioned else None, properties={"format-version": version})
    table.append(rows(range(4)))
    state = {number: (number, "a", 1.0) for number in range(4)}
    context = WriteContext.from_metadata(table.metadata, table.io)
    deletes = DeleteContext.from_metadata(table.metadata, table.io)
    with ChangeWriter(context, deletes, [1]) as writer:
        for size in data.draw(st.lists(st.integers(0, 6), max_size=4)):
            batch: list[Change] = []
            for _ in range(size):
                _, number, name, value = data.draw(CHANGE)
                if number not in state:
                    batch.append((INSERT, number, name, value))
                elif data.draw(st.booleans()):
                    batch += [(BEFORE, *state[number]), (AFTER, number, name, value)]
                else:
                    batch.append((DELETE, *state.pop(number)))
                    continue
                state[number] = (number, name, value)
            for part in stream(*batch).drop_columns(["_change_type"]).combine_chunks().to_batches():
                writer.write(part, [kind for kind, *_ in batch])
        made = writer.close()
    with table.update_snapshot().row_delta() as action:
        action.add_rows(*made.data_files).add_deletes(*made.delete_files)
    assert held(table) == sorted(state.values())
