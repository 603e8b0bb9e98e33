"""Updating rows: the permitted new values, and the rows that change."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield.errors import InvalidArgument
from icefield.metadata.snapshots import Operation
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from tables import ids, meddled, new_table, orphans, rows, stored_files

COPY = "copy-on-write"
MODES = pytest.mark.parametrize("mode", [COPY, "merge-on-read"])


def updatable(*args: Any, mode: str = COPY, version: int = 2, **kwargs: Any) -> Any:
    return new_table(*args, properties={"write.update.mode": mode, "format-version": str(version)}, **kwargs)


def by_id(table: Any, *columns: str) -> dict[int, Any]:
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return {row["id"]: tuple(row[name] for name in columns or ("kind", "value")) for row in found}


@MODES
@pytest.mark.spec("COMMIT-10")
def test_matching_rows_get_the_values_and_all_others_stay(mode: str) -> None:
    table = updatable("kind", mode=mode)
    table.append(pa.concat_tables([rows([1, 2, 3], "a"), rows([4], "b"), rows([5], None)]))
    result = table.update("id >= 2 and kind = 'a'", {"value": 7.0})
    assert result.rows_updated == 2
    assert by_id(table) == {1: ("a", 1.0), 2: ("a", 7.0), 3: ("a", 7.0), 4: ("b", 1.0), 5: (None, 1.0)}
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert orphans(table) == set()


@MODES
def test_a_row_for_which_the_filter_is_unknown_stays(mode: str) -> None:
    table = updatable(mode=mode)
    table.append(pa.concat_tables([rows([1], "a"), rows([2], None)]))
    assert table.update("kind != 'z'", {"value": 0}).rows_updated == 1
    assert by_id(table) == {1: ("a", 0.0), 2: (None, 1.0)}


@MODES
def test_values_may_be_literals_expressions_and_functions_of_the_rows_as_they_were(mode: str) -> None:
    table = updatable(mode=mode)
    table.append(pa.concat_tables([rows([1], "a", 1.0), rows([2], "b", 2.0), rows([3], "c", 3.0)]))
    seen: list[list[int]] = []

    def doubled(batch: pa.RecordBatch) -> pa.Array:
        assert batch.schema.names == ["id", "kind", "value"]
        seen.append(batch["id"].to_pylist())
        return pc.multiply(batch["id"], 2)

    table.update("id > 1", {"id": doubled, "kind": "new", "value": pc.field("value") * 10 + pc.field("id")})
    assert by_id(table) == {1: ("a", 1.0), 4: ("new", 22.0), 6: ("new", 33.0)}
    assert [2, 3] in seen


@MODES
def test_a_row_may_move_to_another_partition(mode: str) -> None:
    table = updatable("kind", mode=mode)
    table.append(rows([1, 2], "a"))
    table.update("id = 2", {"kind": "z"})
    assert ids(table, "kind = 'z'") == [2]
    assert {task.file.partition for task in table.scan("kind = 'z'").plan_files()} == {("z",)}


@MODES
def test_fields_of_structs_are_set_by_their_full_names(mode: str) -> None:
    inner = StructType(
        NestedField(4, "x", parse_type("int")), NestedField(5, "y", StructType(NestedField(6, "z", parse_type("long"))))
    )
    schema = Schema(NestedField(1, "id", parse_type("long")), NestedField(2, "s", inner))
    table = updatable(mode=mode, schema=schema)
    table.append(
        pa.Table.from_pylist(
            [
                {"id": 1, "s": {"x": 1, "y": {"z": 1}}},
                {"id": 2, "s": {"x": 2, "y": None}},
                {"id": 3, "s": None},
                {"id": 4, "s": {"x": 4, "y": {"z": 4}}},
            ],
            schema=table.scan().to_arrow().schema,
        )
    )
    table.update("id < 4", {"s.y.z": 9, "s.x": pc.field("s", "x") + 1})
    assert by_id(table, "s") == {
        1: ({"x": 2, "y": {"z": 9}},),
        2: ({"x": 3, "y": {"z": 9}},),
        3: ({"x": None, "y": {"z": 9}},),
        4: ({"x": 4, "y": {"z": 4}},),
    }
    table.update("id = 1", {"s": {"x": 0, "y": None}})
    table.update("id = 4", {"s": None})
    assert by_id(table, "s")[1] == ({"x": 0, "y": None},)
    assert by_id(table, "s")[4] == (None,)


@MODES
def test_a_struct_with_required_fields_may_become_null(mode: str) -> None:
    inner = StructType(NestedField(3, "x", "int", required=True), NestedField(4, "y", "string", required=True))
    table = updatable(schema=Schema(NestedField(1, "id", "long"), NestedField(2, "s", inner)), mode=mode)
    given = pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    table.append(pa.table({"id": [1, 2, 3], "s": given}))
    table.update("id = 1", {"s": None})
    table.update("id = 2", {"s.x": pc.field("s", "x") + 5})
    assert by_id(table, "s") == {1: (None,), 2: ({"x": 7, "y": "b"},), 3: (None,)}


def test_literals_are_what_python_writes_for_the_type() -> None:
    names = ["decimal(9, 2)", "date", "timestamp", "timestamptz", "uuid", "binary", "fixed[2]", "time", "float"]
    fields = [NestedField(number + 2, f"c{number}", parse_type(name)) for number, name in enumerate(names)]
    table = updatable(schema=Schema(NestedField(1, "id", parse_type("long")), *fields))
    table.append(pa.table({"id": [1, 2]}))
    given = [
        Decimal("1.5"), dt.date(2020, 2, 29), "2020-01-01T00:00:00", dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        uuid.UUID(int=5), b"abc", b"ab", dt.time(1, 2), 1,
    ]  # fmt: skip
    table.update("id = 2", {f"c{number}": value for number, value in enumerate(given)})
    before, found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [before[f"c{number}"] for number in range(len(names))] == [None] * len(names)
    assert found["c0"] == Decimal("1.50")
    assert found["c2"] == dt.datetime(2020, 1, 1)
    assert (found["c5"], found["c6"], found["c7"], found["c8"]) == (b"abc", b"ab", dt.time(1, 2), 1.0)


REFUSED: list[tuple[Any, str]] = [
    ({}, "name the columns to set"),
    ({"nothing": 1}, "no column is named 'nothing'"),
    ({"value": "text"}, "column 'value' cannot be set to 'text'"),
    ({"id": None}, "column 'id' is required"),
    ({"id": 2**70}, "column 'id' cannot be set to 1180591620717411303424"),
    ({"s": {"x": 1}, "s.x": 2}, "column 's.x' is set twice, once through 's'"),
    ({"l.element": 1}, "is in a list or map"),
    ({"id": lambda batch: pa.array([1, 2])}, "a value for each of [01] rows, not 2 values"),
    ({"id": lambda batch: 5}, "not int"),
    ({"id": lambda batch: pa.nulls(batch.num_rows, pa.int64())}, "column 'id' cannot be written: it is required"),
    ({"small": pc.field("id") * 2**40}, "column 'small' cannot be written: a value does not fit int"),
    ({"value": pc.field("kind")}, "column 'value' cannot be written: Arrow's string"),
    ({"value": pc.field("missing")}, "'value' cannot be computed by missing"),
]


@MODES
@pytest.mark.parametrize(("values", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_a_column_cannot_hold_is_refused_and_nothing_is_left_behind(mode: str, values: Any, message: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("kind", pa.string()),
            ("value", pa.float64()),
            ("small", pa.int32()),
            ("s", pa.struct([("x", pa.int32())])),
            ("l", pa.list_(pa.int32())),
        ]
    )
    table = updatable(mode=mode, schema=schema)
    table.append(pa.Table.from_pylist([{"id": 1}, {"id": 2}], schema=schema))
    before = stored_files(table)
    with pytest.raises(InvalidArgument, match=message):
        table.update("id = 2", values)
    assert stored_files(table) == before


@MODES
def test_an_update_of_no_row_changes_nothing(mode: str) -> None:
    table = updatable(mode=mode)
    table.append(rows([1, 3]))
    before, files = table.metadata_location, stored_files(table)
    assert table.update("id = 2", {"value": 5}).rows_updated == 0
    assert (table.refresh().metadata_location, stored_files(table)) == (before, files)


@MODES
@pytest.mark.spec("COMMIT-24")
def test_an_update_changes_what_its_transaction_added_and_what_was_committed_meanwhile(mode: str) -> None:
    table = updatable(mode=mode)
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([2])), lambda other: other.update("id = 1", {"kind": "m"}))
    with holder.transaction() as tx:
        tx.append(rows([3]))
        result = tx.update("id > 0", {"value": pc.field("value") + 1})
    assert result.rows_updated == 3
    assert by_id(holder) == {1: ("m", 2.0), 2: ("a", 2.0), 3: ("a", 2.0)}
    assert orphans(table) == set()


@MODES
def test_names_may_be_matched_without_regard_to_case(mode: str) -> None:
    table = updatable(mode=mode)
    table.append(rows([1]))
    table.update("ID = 1", {"VALUE": 3}, case_sensitive=False)
    assert by_id(table) == {1: ("a", 3.0)}


@MODES
@pytest.mark.spec("ROW-06")
def test_an_updated_row_keeps_its_id_and_was_last_changed_by_this_commit(mode: str) -> None:
    table = updatable("kind", mode=mode, version=3)
    table.append(rows([1, 2, 3], "a"))
    before = lineage(table)
    table.update("id = 2", {"value": 5.0})
    sequence = table.current_snapshot().sequence_number
    assert lineage(table) == {**before, 2: (before[2][0], sequence)}
    table.update("id = 3", {"kind": "b"})
    assert lineage(table) == {**before, 2: (before[2][0], sequence), 3: (before[3][0], sequence + 1)}
    table.append(rows([4]))
    assert len({row_id for row_id, _ in lineage(table).values()}) == 4


def lineage(table: Any) -> dict[int, tuple[int, int]]:
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    found = table.scan(selected_fields=columns).to_arrow().to_pylist()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found}
