"""Columns of manifests: the types of other writers, and limits on their values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from icefield.base.limits import MAX_LOCATION_LENGTH
from icefield.errors import InvalidMetadata
from icefield.manifest.columns import MAP_TYPES, check_locations, conform, conform_partition, flatten, select_fields
from icefield.manifest.schemas import DATA_FILE, FILE_PATH, LOWER_BOUNDS, RECORD_COUNT, STATUS, VALUE_COUNTS
from icefield.manifest.statistics import as_map, check_map, map_column, map_dicts

ID = b"PARQUET:field_id"


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={ID: str(number)})


@pytest.mark.parametrize(
    ("values", "source", "target", "wanted"),
    [
        ([1], pa.int32(), pa.int64(), [1]),
        ([date(1970, 1, 3)], pa.date32(), pa.int32(), [2]),
        ([2], pa.int32(), pa.date32(), [date(1970, 1, 3)]),
        ([2], pa.int64(), pa.date32(), [date(1970, 1, 3)]),
        ([2_000_000], pa.int64(), pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 2)]),
        ([datetime(1970, 1, 2)], pa.timestamp("us", "UTC"), pa.timestamp("us"), [datetime(1970, 1, 2)]),
        ([1.5], pa.float32(), pa.float64(), [1.5]),
        ([Decimal("1.50")], pa.decimal128(4, 2), pa.decimal128(9, 2), [Decimal("1.50")]),
        ([[1]], pa.list_(pa.field("item", pa.int64())), pa.list_(pa.field("element", pa.int64())), [[1]]),
        ([[(1, 2)]], pa.map_(pa.int32(), pa.int32()), pa.map_(pa.int32(), pa.int64()), [[(1, 2)]]),
        (["a"], pa.string(), pa.binary(), [b"a"]),
        ([b"ab"], pa.binary(2), pa.binary(), [b"ab"]),
        ([None], pa.null(), pa.bool_(), [None]),
    ],
)  # fmt: skip
def test_older_and_narrower_types_are_cast(values: Any, source: Any, target: Any, wanted: Any) -> None:
    column = conform(pa.array(values, source), target, "x", "a.avro")
    assert column.type == target
    assert column.to_pylist() == wanted


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.string(), pa.int64()), (pa.float64(), pa.int64()), (pa.string(), pa.date32()),
        (pa.int64(), pa.float64()), (pa.decimal128(4, 1), pa.decimal128(9, 2)), (pa.int64(), pa.decimal128(9, 0)),
        (pa.map_(pa.int32(), pa.int32()), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.map_(pa.int32(), pa.int32())),
        (pa.int32(), pa.bool_()), (pa.int64(), pa.string()), (pa.bool_(), pa.binary()),
    ],
)  # fmt: skip
def test_types_that_no_version_had_are_refused(source: Any, target: Any) -> None:
    with pytest.raises(InvalidMetadata, match=r"a\.avro: x has type"):
        conform(pa.array([], source), target, "x", "a.avro")


def test_values_that_do_not_fit_their_type_are_refused() -> None:
    with pytest.raises(InvalidMetadata, match="x does not hold int32"):
        conform(pa.array([1 << 40]), pa.int32(), "x", "a.avro")


def test_a_location_has_a_longest_length_and_a_path_is_not_empty() -> None:
    long = "a" * MAX_LOCATION_LENGTH
    for column in (
        pa.array([long]),
        pa.array([long, "b", None]),
        pa.array(["", None]),
        pa.array([long + "b", "c"])[1:],
    ):
        check_locations(column, "file_path", "a.avro")
    check_locations(pa.array(["", "a"]), "file_format", "a.avro")
    with pytest.raises(InvalidMetadata, match="file_path is empty"):
        check_locations(pa.array(["a", ""]), "file_path", "a.avro")
    with pytest.raises(InvalidMetadata, match=f"file_path has {MAX_LOCATION_LENGTH + 1:,} bytes"):
        check_locations(pa.array(["c", long + "b"])[1:], "file_path", "a.avro")


def test_partition_fields_are_found_by_id_and_then_by_name() -> None:
    stored = pa.StructArray.from_arrays(
        [pa.array([1]), pa.array([2]), pa.array([3])],
        fields=[with_id("a", pa.int64(), 1000), pa.field("b", pa.int64()), with_id("c", pa.int64(), 1002)],
    )
    target = pa.struct(
        [
            with_id("b", pa.int64(), 1002),
            with_id("other", pa.int64(), 1000),
            with_id("missing", pa.int32(), 1003),
            pa.field("b", pa.string()),
        ]
    )
    found = conform_partition(stored, target, "a.avro")
    assert [found.field(number).to_pylist() for number in range(4)] == [[3], [1], [None], ["2"]]
    assert [field.type for field in found.type] == [pa.int64(), pa.int64(), pa.int32(), pa.string()]
    with pytest.raises(InvalidMetadata, match="partition is int64, not a struct"):
        conform_partition(pa.array([1]), target, "a.avro")
    with pytest.raises(InvalidMetadata, match="partition field a has type"):
        conform_partition(stored, pa.struct([with_id("a", pa.bool_(), 1000)]), "a.avro")


def test_columns_are_chosen_in_the_entry_and_in_its_data_file() -> None:
    file = pa.struct([with_id("file_path", pa.string(), FILE_PATH), with_id("record_count", pa.int64(), RECORD_COUNT)])
    schema = pa.schema([with_id("status", pa.int32(), STATUS), with_id("data_file", file, DATA_FILE)])
    both = select_fields(schema, [STATUS, FILE_PATH], "a.avro")
    assert [(field.name, getattr(field.type, "names", None)) for field in both] == [
        ("status", None),
        ("data_file", ["file_path"]),
    ]
    assert select_fields(schema, [STATUS], "a.avro").names == ["status"]
    without = pa.schema([with_id("status", pa.int32(), STATUS), with_id("data_file", pa.struct([]), DATA_FILE)])
    with pytest.raises(InvalidMetadata, match=f"no field file_path \\({FILE_PATH}\\)"):
        select_fields(without, [STATUS, FILE_PATH], "a.avro")
    with pytest.raises(InvalidMetadata, match="data_file is int32, not a struct"):
        select_fields(pa.schema([with_id("data_file", pa.int32(), DATA_FILE)]), [STATUS], "a.avro")
    batches = [
        pa.record_batch([pa.array([1], pa.int32()), pa.array([row], file)], schema=both.set(1, schema.field(1)))
        for row in ({"file_path": "a", "record_count": 5}, {"file_path": "b", "record_count": 6})
    ]
    columns = flatten(batches, "a.avro")
    assert {number: column.to_pylist() for number, column in columns.items()} == {
        STATUS: [1, 1],
        FILE_PATH: ["a", "b"],
        RECORD_COUNT: [5, 6],
    }
    lost = pa.record_batch([pa.array([1], pa.int32()), pa.array([None], file)], schema=both.set(1, schema.field(1)))
    with pytest.raises(InvalidMetadata, match="an entry without a data file"):
        flatten([lost], "a.avro")


COUNTS, BOUNDS = MAP_TYPES[VALUE_COUNTS], MAP_TYPES[LOWER_BOUNDS]


def pairs(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("k", key), ("v", value)]))


@pytest.mark.parametrize(
    ("rows", "source", "target"),
    [
        ([[(1, 5)], None], COUNTS, COUNTS),
        ([[(1, 5)], None], pa.map_(pa.int64(), pa.int32()), COUNTS),
        ([[(1, b"a")], []], pa.map_(pa.int32(), pa.large_binary()), BOUNDS),
        ([[(1, b"ab")], []], pa.map_(pa.int32(), pa.binary(2)), BOUNDS),
    ],
)
def test_statistics_of_other_integer_and_binary_types_are_cast(rows: Any, source: Any, target: Any) -> None:
    check_map(source, target, "value_counts", "a.avro")
    column = as_map(pa.array(rows, source), target)
    assert column.type == target
    assert column.to_pylist() == rows


def test_statistics_in_lists_of_pairs_are_maps() -> None:
    column = pa.array([[{"k": 1, "v": 5}, {"k": 2, "v": 6}], [{"k": 2, "v": 7}]], pairs(pa.int32(), pa.int64()))
    check_map(column.type, COUNTS, "value_counts", "a.avro")
    maps = as_map(column, COUNTS)
    assert maps.to_pylist() == [[(1, 5), (2, 6)], [(2, 7)]]
    found = map_column(maps, 2)
    assert found is not None
    assert found.to_pylist() == [6, 7]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (pa.int64(), COUNTS),
        (pa.binary(), BOUNDS),
        (pa.list_(pa.int64()), COUNTS),
        (pa.list_(pa.struct([("k", pa.int32())])), COUNTS),
        (pairs(pa.string(), pa.int64()), COUNTS),
        (pairs(pa.int32(), pa.string()), COUNTS),
        (pa.map_(pa.int32(), pa.binary()), COUNTS),
        (pa.map_(pa.int32(), pa.int64()), BOUNDS),
        (pa.map_(pa.int32(), pa.string()), BOUNDS),
    ],
)
def test_statistics_of_any_other_type_are_refused(kind: Any, target: Any) -> None:
    with pytest.raises(InvalidMetadata, match=r"a\.avro: value_counts has type"):
        check_map(kind, target, "value_counts", "a.avro")


def test_each_map_is_a_dict_or_none() -> None:
    maps = pa.array([[(9, 9)], [(1, 5), (2, 6)], None, [], [(3, 7)]], COUNTS)
    assert map_dicts(maps[1:]) == [{1: 5, 2: 6}, None, {}, {3: 7}]
    assert map_dicts(maps[3:]) == [{}, {3: 7}]
    assert map_dicts(maps[:0]) == []
