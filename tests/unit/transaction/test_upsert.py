"""Upserts, judged by a dict of rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata.snapshots import Operation
from tables import ids, meddled, memory_catalog, new_table, orphans, rows, stored_files


def by_id(table) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["kind"], row["value"]) for row in table.scan().to_arrow().to_pylist()}


def test_rows_with_a_known_key_are_replaced_and_others_added():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    result = table.upsert(pa.concat_tables([rows([2, 9], "a", 7.0), rows([3], "b")]), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert by_id(table) == {1: ("a", 1.0), 2: ("a", 7.0), 3: ("b", 1.0), 9: ("a", 7.0)}
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert orphans(table) == set()


def test_a_row_may_move_to_another_partition():
    table = new_table("kind")
    table.append(rows([1, 2], "a"))
    table.upsert(rows([2], "z"), join_cols=["id"])
    assert by_id(table) == {1: ("a", 1.0), 2: ("z", 1.0)}
    assert ids(table, "kind = 'z'") == [2]


@pytest.mark.spec("COMMIT-28")
def test_rows_that_are_there_already_change_nothing():
    table = new_table()
    table.append(pa.concat_tables([rows([1, 2]), rows([3], None, float("nan"))]))
    before, files = table.metadata_location, stored_files(table)
    result = table.upsert(pa.concat_tables([rows([2]), rows([3], None, float("nan"))]), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (0, 0)
    assert table.refresh().metadata_location == before
    assert stored_files(table) == files


def test_nested_values_are_compared_that_python_has_no_equal_for():
    seconds = pa.array([10**17, -(10**17), 1], pa.timestamp("us"))  # years 5138 and before Christ
    numbers = pa.array([float("nan"), 0.5, None])
    nested = pa.StructArray.from_arrays([pa.array([4 * 10**17, None, 1], seconds.type), numbers], ["far", "number"])
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], seconds)
    data = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": nested, "l": lists})
    table = new_table(schema=data.schema)
    table.append(data)
    result = table.upsert(data, join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (0, 0)
    changed = data.set_column(2, data.schema.field(2), pa.ListArray.from_arrays([0, 1, 2, 3], seconds.take([0, 2, 2])))
    assert table.upsert(changed, join_cols=["id"]).rows_updated == 1
    assert table.scan().to_arrow().sort_by("id")["l"].combine_chunks().values.equals(seconds.take([0, 2, 2]))


def test_a_time_that_python_cannot_hold_is_a_key_like_any_other():
    data = pa.table({"t": pa.array([4 * 10**17, 1], pa.timestamp("us")), "n": [1, 2]})
    table = new_table(schema=data.schema)
    assert table.upsert(data, join_cols=["t"]).rows_inserted == 2
    assert table.upsert(data, join_cols=["t"]).rows_updated == 0
    with pytest.raises(InvalidArgument, match=r"more than once, such as \{'t': '14645-06-30"):
        table.upsert(pa.concat_tables([data.slice(0, 1)] * 2), join_cols=["t"])


def test_files_without_a_given_key_are_not_touched():
    table = new_table()
    table.append(rows([1, 3]))
    table.append(rows([100]))
    untouched = {task.file.file_path for task in table.scan().plan_files()}
    table.upsert(rows([2], "new"), join_cols=["id"])  # within the bounds of the first file
    assert untouched < {task.file.file_path for task in table.scan().plan_files()}
    assert table.current_snapshot().operation is Operation.APPEND


def test_updating_and_inserting_can_be_asked_for_alone():
    table = new_table()
    table.append(rows([1]))
    result = table.upsert(rows([1, 2], "x"), join_cols=["id"], when_matched_update_all=False)
    assert (result.rows_updated, result.rows_inserted) == (0, 1)
    result = table.upsert(rows([1, 3], "y"), join_cols=["id"], when_not_matched_insert_all=False)
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert by_id(table) == {1: ("y", 1.0), 2: ("x", 1.0)}
    with pytest.raises(InvalidArgument, match="neither"):
        table.upsert(rows([1]), ["id"], False, False)


def test_the_identifier_fields_are_the_key_unless_stated():
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    table = new_table(schema=schema)
    data = pa.table({"id": [1], "v": ["a"]}, schema=schema)
    table.append(data)
    with pytest.raises(InvalidArgument, match="name the columns"):
        table.upsert(data)
    table.update_schema().set_identifier_fields("id").commit()
    table.upsert(pa.table({"id": [1, 2], "v": ["b", "c"]}, schema=schema))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, "v": "b"}, {"id": 2, "v": "c"}]


def test_what_cannot_be_a_key_is_refused():
    table = new_table(schema=pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))]))
    data = pa.table({"id": [1, 1], "s": [None, None]}, schema=table.scan().to_arrow().schema)
    with pytest.raises(InvalidArgument, match="more than once"):
        table.upsert(data, ["id"])
    for wrong in (["s"], ["s.x"], []):
        with pytest.raises(InvalidArgument):
            table.upsert(data, wrong)
    with pytest.raises(InvalidArgument):
        table.upsert(iter(()), ["id"])
    assert table.snapshots() == []


def test_a_null_in_a_key_equals_nothing():
    table = new_table()
    table.append(rows([1], None))
    result = table.upsert(pa.concat_tables([rows([1], None), rows([2], "a")]), join_cols=["id", "kind"])
    assert (result.rows_updated, result.rows_inserted) == (0, 2)
    assert ids(table) == [1, 1, 2]


@pytest.mark.spec("COMMIT-10", "COMMIT-03")
def test_an_upsert_meets_what_was_committed_meanwhile():
    table = new_table()
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([2])), lambda other: other.delete("id = 1"))
    result = holder.upsert(rows([1, 2], "new"), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert by_id(holder) == {1: ("new", 1.0), 2: ("new", 1.0)}
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-24")
def test_an_upsert_sees_what_its_transaction_did_before():
    table = new_table()
    with table.transaction() as tx:
        tx.append(rows([1, 2]))
        result = tx.upsert(rows([2, 3], "b"), join_cols=["id"])
        tx.delete("id = 3")
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert by_id(table) == {1: ("a", 1.0), 2: ("b", 1.0)}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", "b", "c"]),
        (pa.date32(), [dt.date(2024, 1, n) for n in (1, 2, 3)]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, n, tzinfo=dt.UTC) for n in (1, 2, 3)]),
        (pa.decimal128(9, 2), [1, 2, 3]),
        (pa.binary(2), [b"aa", b"bb", b"cc"]),
        (pa.float64(), [0.5, 1.5, 2.5]),
        (pa.bool_(), [True, False, None]),
    ],
)
def test_keys_may_be_of_any_primitive_type(kind, values):
    schema = pa.schema([("id", kind), ("n", pa.list_(pa.int32()))])
    table = new_table(schema=schema)
    first, second, third = pa.array(values, kind)
    table.append(pa.table({"id": [first, second], "n": [[1], [2]]}, schema=schema))
    table.upsert(pa.table({"id": [second, third], "n": [[20], [30]]}, schema=schema), join_cols=["id"])
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {first.as_py(): [1], second.as_py(): [20], third.as_py(): [30]}


pairs = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None])), max_size=6, unique_by=lambda row: row[0]
)


@given(st.lists(pairs, min_size=1, max_size=4), st.sampled_from([None, "kind", "bucket[2](id)"]))
@settings(max_examples=20, deadline=None)
def test_upserts_do_what_a_dict_does(batches, partition_spec):
    table = new_table(partition_spec, catalog=memory_catalog())
    oracle: dict[int, tuple[Any, float]] = {}
    for batch in batches:
        given_rows = pa.concat_tables([rows([]), *(rows([number], kind) for number, kind in batch)])
        before = dict(oracle)
        oracle.update({number: (kind, 1.0) for number, kind in batch})
        result = table.upsert(given_rows, join_cols=["id"])
        assert result.rows_inserted == len(oracle) - len(before)
        assert result.rows_updated == sum(before[n] != oracle[n] for n in before)
    assert by_id(table) == oracle
    assert orphans(table) == set()


def test_every_row_that_has_a_given_key_is_updated_as_by_merge():
    """PyIceberg refuses a target with repeated keys; a MERGE of SQL updates each row that matches."""
    table = new_table()
    table.append(rows([1, 1, 2]))
    table.append(rows([1]))
    result = table.upsert(rows([1, 3], value=5.0), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (3, 1)
    found = sorted((row["id"], row["value"]) for row in table.scan().to_arrow().to_pylist())
    assert found == [(1, 5.0), (1, 5.0), (1, 5.0), (2, 1.0), (3, 5.0)]
    again = table.upsert(rows([1], value=5.0), ["id"])
    assert (again.rows_updated, again.rows_inserted) == (0, 0)
