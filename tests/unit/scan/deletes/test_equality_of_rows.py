"""Equality deletes find their rows by values of any type, and by columns that changed since or are gone."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, equality_deletes
from deleted_tables import each_format, table_of
from icefield.errors import UnsupportedFeature
from icefield.scan import FileScanTask, read_tasks
from tables import ids, new_table, rows
from vectors import VECTORS


@each_format
@pytest.mark.spec("DEL-20", "DEL-22", "SCAN-42", "SCAN-41")
def test_equality_deletes_by_columns_that_are_not_selected(file_format: str) -> None:
    table = table_of(rows(range(5), "a"), rows(range(5), "b"), file_format=file_format)
    commit(
        table, equality_deletes(table, ["id", "kind"], [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}], file_format)
    )
    found = table.scan(selected_fields=("value",)).to_arrow()
    assert (found.num_rows, found.column_names) == (8, ["value"])
    assert ids(table, "kind = 'a'") == [0, 2, 3, 4]
    assert ids(table, "kind = 'b'") == [0, 1, 3, 4]
    assert table.scan("id = 1").count() == 1
    table.append(rows([1], "a"))  # newer than the delete
    assert ids(table, "kind = 'a'") == [0, 1, 2, 3, 4]


@pytest.mark.spec("DEL-20", "DEL-21")
@pytest.mark.parametrize("case", VECTORS["equality_delete_example"]["deletes"], ids=lambda case: str(case["rows"]))
def test_the_example_of_the_specification(case: dict[str, Any]) -> None:
    names = list(VECTORS["equality_delete_example"]["columns"])
    schema = pa.schema([("id", pa.int64()), ("category", pa.string()), ("name", pa.string())])
    table = new_table(schema=schema, **{"format-version": "2"})
    held = [dict(zip(names, row, strict=True)) for row in VECTORS["equality_delete_example"]["table"]]
    table.append(pa.Table.from_pylist(held, schema))
    deleted = [dict(zip(case["columns"], row, strict=True)) for row in case["rows"]]
    commit(table, equality_deletes(table, case["columns"], deleted, equality_ids=tuple(case["equality_ids"])))
    assert ids(table) == case["remaining_ids"]


def bits_of(value: float | None) -> Any:
    return None if value is None else "nan" if math.isnan(value) else struct.pack("<d", value)


FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, None]


@each_format
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.spec("DEL-21")
def test_floats_are_equal_when_their_bits_are_with_one_nan(file_format: str, kind: pa.DataType) -> None:
    held = pa.table({"id": list(range(len(FLOATS))), "x": pa.array(FLOATS, kind)})
    for value in FLOATS:
        table = new_table(schema=held.schema, **{"format-version": "2", "write.format.default": file_format})
        table.append(held)
        commit(table, equality_deletes(table, ["x"], pa.table({"x": pa.array([value], kind)}), file_format))
        kept = [place for place, other in enumerate(FLOATS) if bits_of(other) != bits_of(value)]
        assert ids(table) == kept, value


TYPES = {
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [1, -1, 2**31 - 1]),
    "long": (pa.int64(), [1, -1, 2**63 - 1, 0]),
    "decimal": (pa.decimal128(20, 2), ["1.00", "-1.00", "123456789012345678.99"]),
    "date": (pa.date32(), [0, 1, -1]),
    "time": (pa.time64("us"), [0, 1]),
    "timestamp": (pa.timestamp("us"), [0, 1, -1]),
    "timestamptz": (pa.timestamp("us", "UTC"), [0, 1, -1]),
    "string": (pa.string(), ["", "a", "aa", "b" * 100, "é"]),
    "binary": (pa.binary(), [b"", b"a", b"\0", b"\0\0"]),
    "fixed": (pa.binary(3), [b"abc", b"abd"]),
}


@pytest.mark.parametrize("name", TYPES)
@each_format
@pytest.mark.spec("DEL-20", "DEL-21", "DEL-23")
def test_equality_of_every_type(name: str, file_format: str) -> None:
    kind, values = TYPES[name]
    column = pa.array([*values, None]) if name == "decimal" else pa.array([*values, None], kind)
    column = column.cast(kind)
    held = pa.table({"id": list(range(len(column))), "x": column})
    for place in range(len(column)):
        table = new_table(schema=held.schema, **{"format-version": "2", "write.format.default": file_format})
        table.append(held)
        commit(table, equality_deletes(table, ["x"], pa.table({"x": column.slice(place, 1)}), file_format))
        assert ids(table) == [other for other in range(len(column)) if other != place]


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.struct([("x", pa.int32()), ("y", pa.string())])), ("b", pa.int64())])),
    ]
)


@each_format
@pytest.mark.spec("DEL-23", "DEL-21")
def test_nested_columns_where_a_null_struct_makes_a_null_value(file_format: str) -> None:
    held = [
        {"id": 0, "s": {"a": {"x": 1, "y": "p"}, "b": 1}},
        {"id": 1, "s": {"a": {"x": None, "y": "q"}, "b": 2}},
        {"id": 2, "s": {"a": None, "b": 3}},
        {"id": 3, "s": None},
        {"id": 4, "s": {"a": {"x": 2, "y": "r"}, "b": 4}},
    ]
    table = new_table(schema=NESTED, **{"format-version": "2", "write.format.default": file_format})
    table.append(pa.Table.from_pylist(held, NESTED))
    one = equality_deletes(table, ["s.a.x"], [{"s": {"a": {"x": 2}}}], file_format)
    commit(table, one)
    assert ids(table) == [0, 1, 2, 3]
    assert table.scan(selected_fields=("s.b",)).to_arrow()["s"].to_pylist() == [{"b": 1}, {"b": 2}, {"b": 3}, None]
    commit(table, equality_deletes(table, ["s.a.x"], [{"s": {"a": None}}], file_format))
    assert ids(table) == [0]
    assert table.scan("s.a.y = 'p'", selected_fields=("s.b",)).to_arrow()["s"].to_pylist() == [{"b": 1}]


@each_format
@pytest.mark.spec("DEL-24")
def test_a_column_that_was_dropped_still_counts(file_format: str) -> None:
    table = table_of(rows(range(3), "a"), rows(range(3, 6), "b"), file_format=file_format)
    commit(table, equality_deletes(table, ["kind"], [{"kind": "b"}], file_format))
    with table.update_schema() as update:
        update.delete_column("kind")
    assert ids(table) == [0, 1, 2]
    with table.update_schema() as update:
        update.add_column("kind", "string")
    assert ids(table) == [0, 1, 2]
    assert table.scan("id > 0").count() == 2
    assert table.scan(selected_fields=("kind",)).to_arrow()["kind"].to_pylist() == [None] * 3


@pytest.mark.spec("DEL-24")
def test_a_nested_column_that_was_dropped_still_counts() -> None:
    table = new_table(schema=NESTED, **{"format-version": "2"})
    held = [{"id": n, "s": {"a": {"x": n, "y": "p"}, "b": n}} for n in range(4)]
    table.append(pa.Table.from_pylist(held, NESTED))
    commit(table, equality_deletes(table, ["s.a.x"], [{"s": {"a": {"x": 2}}}]))
    with table.update_schema() as update:
        update.delete_column("s.a.x")
    assert ids(table) == [0, 1, 3]
    assert table.scan().to_arrow()["s"].to_pylist() == [{"a": {"y": "p"}, "b": n} for n in (0, 1, 3)]
    with table.update_schema() as update:
        update.delete_column("s")
    assert ids(table) == [0, 1, 3]


@pytest.mark.spec("DEL-25", "DEL-26")
def test_columns_that_were_added_renamed_and_promoted() -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table = new_table(schema=schema, **{"format-version": "2"})
    table.append(pa.table({"id": [0, 1, 2], "n": [7, 8, 9]}, schema))
    commit(table, equality_deletes(table, ["n"], [{"n": 8}]))
    with table.update_schema() as update:
        update.update_column("n", "long")
        update.rename_column("n", "m")
        update.add_column("late", "string")
    table.append(pa.table({"id": [3, 4], "m": [8, 9], "late": ["x", None]}))
    assert ids(table) == [0, 2, 3, 4]
    commit(table, equality_deletes(table, ["m"], [{"m": 9}]))
    assert ids(table) == [0, 3]
    commit(table, equality_deletes(table, ["late"], [{"late": None}]))
    assert ids(table) == [3]


@pytest.mark.spec("DEL-27", "SCAN-32")
def test_equality_deletes_of_one_partition_and_of_all() -> None:
    table = table_of(rows([1, 2, 3], "a"), rows([1, 2, 3], "b"), partition="kind")
    a = data_files(table, "kind = 'a'")[0]
    commit(table, equality_deletes(table, ["id"], [{"id": 1}], like=a))
    assert ids(table) == [1, 2, 2, 3, 3]
    with table.update_spec() as update:
        update.remove_field("kind")
    commit(table, equality_deletes(table, ["id"], [{"id": 2}], spec_id=table.spec().spec_id))
    assert ids(table) == [1, 3, 3]


def test_columns_that_find_no_rows() -> None:
    table = new_table(schema=pa.schema([("id", pa.int64()), ("l", pa.list_(pa.int32()))]), **{"format-version": "2"})
    table.append(pa.table({"id": [1], "l": [[1]]}))
    task = next(iter(table.scan().plan_files()))
    keys = equality_deletes(table, ["l"], [{"l": [1]}])
    with pytest.raises(UnsupportedFeature, match="of type list"):
        list(read_tasks([FileScanTask(task.file, delete_files=(keys,))], table.scan().context))
