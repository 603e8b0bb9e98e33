"""Metrics in manifests for added files that were written elsewhere: each format has the same counts and bounds."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from foreign_files import foreign_file
from icefield.types import NestedField, StructType
from icefield.types.values import value_from_bytes
from tables import memory_catalog, new_table

D = Decimal
FIELDS = (
    NestedField(1, "n", "long"),
    NestedField(2, "d", "double"),
    NestedField(3, "t", "string"),
    NestedField(4, "day", "date"),
    NestedField(5, "p", "decimal(9,2)"),
    NestedField(6, "s", StructType(NestedField(7, "x", "int"))),
    NestedField(8, "none", "int"),
)
ROWS = [
    {"n": n, "d": n / 4, "t": f"text {n}" if n % 3 else None, "day": dt.date(2020, 1, 1) + dt.timedelta(n % 40),
     "p": D(n - 50).scaleb(-2), "s": {"x": -n} if n % 10 else None, "none": None}
    for n in range(10, 210)
]  # fmt: skip
NULLS = {"n": 0, "d": 0, "t": 66, "day": 0, "p": 0, "s.x": 20, "none": 200}
BOUNDS = {
    "n": (10, 209),
    "d": (2.5, 52.25),
    "t": ("text 10", "text 98"),
    "day": (18_262, 18_301),
    "p": (D("-0.40"), D("1.59")),
    "s.x": (-209, -11),
}


def of_table(rows):
    """The rows as a pyarrow table whose fields have names and no ids."""
    types = {"n": pa.int64(), "d": pa.float64(), "t": pa.string(), "day": pa.date32(), "p": pa.decimal128(9, 2),
             "s": pa.struct([("x", pa.int32())]), "none": pa.int32()}  # fmt: skip
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def only_file(table):
    (task,) = table.scan().plan_files(include_stats=True)
    return task.file


def check(table, file, *, sizes):
    schema = table.schema()
    ids = {name: schema.find_field(name).field_id for name in NULLS}
    assert file.record_count == 200
    assert {name: file.value_counts[ids[name]] for name in ids} == dict.fromkeys(ids, 200)
    assert {name: file.null_value_counts[ids[name]] for name in ids} == NULLS
    for name, expected in BOUNDS.items():
        kind, id_ = schema.find_type(name), ids[name]
        assert (
            value_from_bytes(kind, file.lower_bounds[id_]),
            value_from_bytes(kind, file.upper_bounds[id_]),
        ) == expected, name
    assert ids["none"] not in file.lower_bounds
    assert set(file.column_sizes or {}) == (set(ids.values()) if sizes else set())
    assert file.split_offsets
    assert list(file.split_offsets) == sorted(file.split_offsets)
    for text, matches in {"n > 209": 0, "n = 100": 1, "s.x < -208": 1, "t is null": 1, "d < 2.5": 0}.items():
        assert len(list(table.scan(text).plan_files())) == matches, text


@pytest.mark.spec("MET-01", "MET-02", "MET-03")
def test_a_file_with_ids_is_described_whatever_its_format(make, file_format):
    source = make(*FIELDS)
    source.append(of_table(ROWS))
    table = new_table(catalog=memory_catalog(), schema=source.schema(), properties=source.properties)
    location = only_file(source).file_path
    table.add_files([location])
    assert table.scan().to_arrow().to_pylist() == ROWS
    check(table, only_file(table), sizes=file_format != "avro")
    assert only_file(table).split_offsets == only_file(source).split_offsets


@pytest.mark.spec("MET-01", "MET-02", "MET-03")
def test_a_file_without_ids_is_described_whatever_its_format(make, file_format):
    table = make(*FIELDS)
    table.add_files([foreign_file(file_format, of_table(ROWS))])
    assert table.scan().to_arrow().to_pylist() == ROWS
    check(table, only_file(table), sizes=False)


@pytest.mark.parametrize("rows", [[], [{"n": 1, "d": float("nan")}, {"n": 2, "d": 1.0}, {"n": 3, "d": float("nan")}]])
def test_no_bound_is_wrong_for_rows_of_nan_and_for_none(make, file_format, rows):
    source = make(NestedField(1, "n", "long"), NestedField(2, "d", "double"))
    held = pa.Table.from_pylist(rows, schema=pa.schema([("n", pa.int64()), ("d", pa.float64())]))
    table = make(NestedField(1, "n", "long"), NestedField(2, "d", "double"))
    source.append(held)
    locations = [task.file.file_path for task in source.scan().plan_files()]
    table.add_files([*locations, foreign_file(file_format, held)])
    for text, count in {"d = 1.0": 1, "d > 100.0": 0, "d is nan": 2, "d is not nan": 1, "n <= 2": 2}.items():
        found = table.scan(text).count()
        assert found == (count * (len(locations) + 1) if rows else 0), text
