"""Metrics that are gathered batch by batch, compared with counts in Python and with Parquet's own statistics."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata.metrics import Metrics, MetricsCollector
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from icefield.types.values import GeoPoint, to_arrow_array, to_internal
from icefield.types.values.wkb import wkt_to_wkb
from vectors import VECTORS


def collected(kind: IcebergType, *batches: list[Any]) -> Metrics:
    return collected_from(kind, *(to_arrow_array(kind, batch) for batch in batches))


def collected_from(kind: IcebergType, *arrays: pa.Array) -> Metrics:
    schema = schema_to_arrow(Schema(NestedField(1, "x", kind)))
    collector = MetricsCollector(schema)
    for array in arrays:
        collector.update(pa.RecordBatch.from_arrays([array], schema=schema))
    return collector.metrics()


def signed(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


DOUBLES = st.floats() | st.sampled_from([0.0, -0.0, math.nan])
KINDS: dict[IcebergType, tuple[st.SearchStrategy[Any], Any]] = {
    BooleanType(): (st.booleans(), None),
    IntegerType(): (st.integers(-(2**31), 2**31 - 1), None),
    LongType(): (st.integers(-(2**63), 2**63 - 1), None),
    FloatType(): (st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan]), signed),
    DoubleType(): (DOUBLES, signed),
    DecimalType(9, 2): (st.decimals(-100, 100, places=2), None),
    DateType(): (st.integers(-(2**31), 2**31 - 1), None),
    TimeType(): (st.integers(0, 86_399_999_999), None),
    TimestampType(): (st.integers(-(2**63), 2**63 - 1), None),
    TimestamptzType(): (st.integers(-(2**63), 2**63 - 1), None),
    TimestampNanoType(): (st.integers(-(2**63), 2**63 - 1), None),
    StringType(): (st.text(max_size=5), lambda text: text.encode()),
    UUIDType(): (st.binary(min_size=16, max_size=16), None),
    FixedType(3): (st.binary(min_size=3, max_size=3), None),
    BinaryType(): (st.binary(max_size=5), None),
}


@pytest.mark.spec("MET-01", "MET-02", "MET-03", "MET-07", "MET-08", "MET-09", "MET-11", "MET-12")
@settings(max_examples=300)
@given(st.data())
def test_counts_are_exact_and_bounds_are_the_least_and_greatest_value(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    strategy, key = KINDS[kind]
    batches = data.draw(st.lists(st.lists(st.none() | strategy, max_size=8), max_size=4))
    metrics = collected(kind, *batches)
    values = [value for batch in batches for value in batch]
    present = [value for value in values if value is not None]
    assert metrics.record_count == len(values)
    assert metrics.value_counts == {1: len(values)}
    assert metrics.null_value_counts == {1: len(values) - len(present)}
    if isinstance(kind, FloatType | DoubleType):
        assert metrics.nan_value_counts == {1: sum(map(math.isnan, present))}
        present = [value for value in present if not math.isnan(value)]
    else:
        assert metrics.nan_value_counts == {}
    if not present:
        assert metrics.lower_bounds == metrics.upper_bounds == {}
        return
    lower, upper = metrics.lower_bounds[1], metrics.upper_bounds[1]
    key = key or (lambda value: value)
    assert key(lower) == min(map(key, present))
    assert key(upper) == max(map(key, present))
    assert type(lower) is type(upper) is type(present[0])


@pytest.mark.spec("MET-08", "MET-09", "MET-12")
@pytest.mark.parametrize("vector", VECTORS["float_bounds"], ids=lambda vector: str(vector["values"]))
@pytest.mark.parametrize("split", [False, True])
def test_the_vectors_of_floats_have_the_bounds_that_are_printed(vector: dict[str, Any], split: bool) -> None:
    values = [None if value is None else float(value) for value in vector["values"]]
    batches = [[value] for value in values] if split else [values]
    metrics = collected(DoubleType(), *batches)
    assert metrics.value_counts[1] == vector["value_count"]
    assert metrics.null_value_counts[1] == vector["null_count"]
    assert metrics.nan_value_counts[1] == vector["nan_count"]
    for name, bounds in (("lower", metrics.lower_bounds), ("upper", metrics.upper_bounds)):
        if vector[name] is None:
            assert bounds == {}
        else:
            assert signed(bounds[1]) == signed(float(vector[name]))
            if f"{name}_hex" in vector:
                assert struct.pack("<d", bounds[1]).hex() == vector[f"{name}_hex"]


@pytest.mark.spec("MET-12")
def test_a_zero_that_is_not_there_is_no_bound() -> None:
    for values, lower, upper in (
        ([-0.0, -1.0], -1.0, -0.0),
        ([0.0, 1.0], 0.0, 1.0),
        ([-0.0], -0.0, -0.0),
        ([0.0, -0.0, math.nan], -0.0, 0.0),
    ):
        for order in (values, values[::-1]):
            metrics = collected(FloatType(), order)
            assert signed(metrics.lower_bounds[1]) == signed(lower)
            assert signed(metrics.upper_bounds[1]) == signed(upper)


@pytest.mark.filterwarnings("error")
@pytest.mark.spec("MET-09")
def test_infinities_and_strange_nans_raise_no_warning() -> None:
    strange = np.array([0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF], np.uint64).view(np.float64)
    array = pa.array(np.concatenate([strange, [math.inf, -math.inf]]), from_pandas=False)
    metrics = collected_from(DoubleType(), array)
    assert metrics.nan_value_counts == {1: 2}
    assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (-math.inf, math.inf)
    assert collected_from(DoubleType(), pa.array(strange, from_pandas=False)).lower_bounds == {}


@pytest.mark.spec("MET-11")
@pytest.mark.parametrize("kind", list(KINDS), ids=str)
def test_a_column_of_nulls_has_counts_and_no_bounds(kind: IcebergType) -> None:
    metrics = collected(kind, [None, None], [None])
    assert metrics.value_counts == metrics.null_value_counts == {1: 3}
    assert metrics.lower_bounds == metrics.upper_bounds == {}


@pytest.mark.spec("MET-07")
def test_string_and_uuids_are_ordered_by_unsigned_bytes() -> None:
    # In the order of UTF-16 units, the third string would come before the second.
    text = collected(StringType(), ["a", "\uffff", "\U0001f600"])
    assert (text.lower_bounds[1], text.upper_bounds[1]) == ("a", "\U0001f600")
    high, low = bytes([0xFF]) + bytes(15), bytes([0x7F]) + bytes([0xFF]) * 15
    uuids = collected(UUIDType(), [high, low, bytes(8) + b"\xff" * 8, None])
    assert (uuids.lower_bounds[1], uuids.upper_bounds[1]) == (bytes(8) + b"\xff" * 8, high)


NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(
        2,
        "person",
        StructType(
            NestedField(3, "name", StringType()),
            NestedField(4, "home", StructType(NestedField(5, "zip", IntegerType()))),
        ),
    ),
    NestedField(6, "scores", ListType(7, DoubleType())),
    NestedField(8, "counts", MapType(9, StringType(), 10, StructType(NestedField(11, "n", LongType())))),
    NestedField(12, "nothing", UnknownType()),
    NestedField(13, "any", VariantType()),
    NestedField(14, "shape", GeometryType()),
    NestedField(15, "empty", StructType()),
)


def nested_batch() -> pa.RecordBatch:
    arrow = schema_to_arrow(NESTED)
    rows: dict[str, list[Any]] = {
        "id": [1, 2, 3, 4],
        "person": [
            {"name": "b", "home": {"zip": 7}},
            None,
            {"name": None, "home": None},
            {"name": "a", "home": {"zip": None}},
        ],
        "scores": [[1.0, math.nan], None, [], [None, 2.0, 3.0]],
        "counts": [[("k", {"n": 5})], None, [("l", None), ("m", {"n": None})], []],
        "nothing": [None] * 4,
        "any": [{"metadata": b"\x01", "value": b"\x02"}, None, None, {"metadata": b"\x01", "value": b"\x03"}],
        "shape": [b"\x01\x02", None, b"\x09", None],
        "empty": [{}, None, {}, {}],
    }
    return pa.RecordBatch.from_arrays([pa.array(rows[f.name], f.type) for f in arrow], schema=arrow)


@pytest.mark.spec("MET-01", "MET-03", "MET-13")
@pytest.mark.parametrize("start", [0, 1])
def test_leaves_are_counted_by_their_own_ids_and_null_structs_are_nulls_in_them(start: int) -> None:
    collector = MetricsCollector(schema_to_arrow(NESTED))
    collector.update(nested_batch().slice(start))
    metrics = collector.metrics()
    rows = 4 - start
    assert metrics.record_count == rows
    whole = {1: rows, 3: rows, 5: rows, 7: 5, 9: 3, 11: 3, 12: rows, 13: rows, 14: rows}
    nulls = {1: 0, 3: 2, 5: 3, 7: 1, 9: 0, 11: 2, 12: rows, 13: 2, 14: 2}
    if start == 1:
        whole |= {7: 3, 9: 2, 11: 2}
        nulls |= {11: 2}
    assert metrics.value_counts == whole
    assert metrics.null_value_counts == nulls
    assert metrics.nan_value_counts == {7: 1 - start}
    # Fields inside lists and maps, and columns of unknown, variant and geometry types, have no bounds.
    first = {1: 1, 3: "a", 5: 7} if start == 0 else {1: 2, 3: "a"}
    last = {1: 4, 3: "b", 5: 7} if start == 0 else {1: 4, 3: "a"}
    assert metrics.lower_bounds == first
    assert metrics.upper_bounds == last


def test_omitted_leaves_have_no_metrics_at_any_depth() -> None:
    omitted = {1, 2, 5, 7, 11, 12, 13, 14}
    whole, some = MetricsCollector(schema_to_arrow(NESTED)), MetricsCollector(schema_to_arrow(NESTED), omitted)
    for collector in (whole, some):
        collector.update(nested_batch())
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        kept = {id_: value for id_, value in getattr(whole.metrics(), name).items() if id_ not in omitted}
        assert getattr(some.metrics(), name) == kept
    assert some.metrics().value_counts.keys() == {3, 9}


@pytest.mark.spec("MET-02", "MET-03")
def test_what_is_below_a_null_struct_is_neither_counted_nor_a_bound() -> None:
    schema = Schema(NestedField(1, "s", StructType(NestedField(2, "x", LongType()))))
    arrow = schema_to_arrow(schema)
    hidden = pa.StructArray.from_arrays(
        [pa.array([100, 5, -100])], fields=[arrow.field(0).type.field(0)], mask=pa.array([True, False, True])
    )
    collector = MetricsCollector(arrow)
    collector.update(pa.RecordBatch.from_arrays([hidden], schema=arrow))
    metrics = collector.metrics()
    assert metrics.null_value_counts == {2: 2}
    assert metrics.lower_bounds == metrics.upper_bounds == {2: 5}


@pytest.mark.spec("MET-02", "MET-07")
@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_long_columns_of_strings_have_exact_bounds(form: pa.DataType) -> None:
    rng = np.random.default_rng(3)
    texts = [None if i % 9 == 4 else f"{rng.integers(0, 10**9)}" for i in range(20_000)]
    texts[7], texts[19_993] = "~last", "!first"
    schema = pa.schema([pa.field("x", form, metadata={b"PARQUET:field_id": b"1"})])
    values = pa.array(texts).cast(form)
    collector = MetricsCollector(schema)
    for part in (values.slice(0, 9_000), values.slice(9_000), pa.nulls(10_000, form)):
        collector.update(pa.RecordBatch.from_arrays([part], schema=schema))
    metrics = collector.metrics()
    wrap = (lambda text: text) if "string" in str(form) else str.encode
    assert metrics.lower_bounds == {1: wrap("!first")}
    assert metrics.upper_bounds == {1: wrap("~last")}
    assert metrics.null_value_counts == {1: texts.count(None) + 10_000}
    # The bounds are complete even if a sample contains only nulls.
    sparse: list[str | None] = [None] * 20_000
    sparse[11] = "only"
    collector = MetricsCollector(schema)
    collector.update(pa.RecordBatch.from_arrays([pa.array(sparse).cast(form)], schema=schema))
    assert collector.metrics().lower_bounds == collector.metrics().upper_bounds == {1: wrap("only")}


def footers(table: pa.Table) -> Iterator[tuple[int, list[Any]]]:
    """The id of each column, and its statistics for each row group."""
    with pa.BufferOutputStream() as sink:
        pq.write_table(table, sink, row_group_size=3_000)
        footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    for position, column in enumerate(table.schema):
        statistics = [footer.row_group(group).column(position).statistics for group in range(footer.num_row_groups)]
        yield int(column.metadata[b"PARQUET:field_id"]), statistics


@pytest.mark.spec("MET-24", "MET-02", "MET-03")
def test_gathered_metrics_equal_the_statistics_that_parquet_keeps() -> None:
    rng = np.random.default_rng(11)
    kinds = {
        1: (LongType(), [int(n) for n in rng.integers(-(2**40), 2**40, 10_000)]),
        2: (DoubleType(), [float(x) for x in rng.normal(size=10_000)]),
        3: (StringType(), [f"user-{n}" for n in rng.integers(0, 10**6, 10_000)]),
        4: (DateType(), [int(n) for n in rng.integers(-40_000, 40_000, 10_000)]),
        5: (TimestamptzType(), [int(n) for n in rng.integers(-(2**50), 2**50, 10_000)]),
        6: (DecimalType(12, 3), [to_internal(DecimalType(12, 3), f"{n}.125") for n in rng.integers(-999, 999, 10_000)]),
        7: (BooleanType(), [bool(n) for n in rng.integers(0, 2, 10_000)]),
    }
    schema = Schema(*(NestedField(id_, f"c{id_}", kind) for id_, (kind, _) in kinds.items()))
    columns = []
    for kind, values in kinds.values():
        columns.append(to_arrow_array(kind, [None if i % 13 == 5 else value for i, value in enumerate(values)]))
    table = pa.Table.from_arrays(columns, schema=schema_to_arrow(schema))
    collector = MetricsCollector(table.schema)
    for batch in table.to_batches(max_chunksize=1_777):
        collector.update(batch)
    metrics = collector.metrics()
    for id_, statistics in footers(table):
        assert metrics.null_value_counts[id_] == sum(s.null_count for s in statistics)
        assert metrics.value_counts[id_] == sum(s.num_values + s.null_count for s in statistics)
        kind = kinds[id_][0]
        assert metrics.lower_bounds[id_] == to_internal(kind, min(s.min for s in statistics))
        assert metrics.upper_bounds[id_] == to_internal(kind, max(s.max for s in statistics))


def test_columns_without_an_id_are_passed_over() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64(), metadata={b"PARQUET:field_id": b"4"})])
    collector = MetricsCollector(schema)
    collector.update(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], schema=schema))
    assert collector.metrics() == Metrics(1, {}, {4: 1}, {4: 0}, {}, {4: 2}, {4: 2})


def test_dictionary_columns_are_counted_by_their_values() -> None:
    schema = pa.schema([pa.field("a", pa.dictionary(pa.int32(), pa.string()), metadata={b"PARQUET:field_id": b"4"})])
    collector = MetricsCollector(schema)
    encoded = pa.DictionaryArray.from_arrays(pa.array([1, None, 1], pa.int32()), pa.array(["unused", "b"]))
    collector.update(pa.RecordBatch.from_arrays([encoded], schema=schema))
    assert collector.metrics() == Metrics(3, {}, {4: 3}, {4: 1}, {}, {4: "b"}, {4: "b"})


def test_a_batch_of_another_width_is_refused() -> None:
    collector = MetricsCollector(schema_to_arrow(Schema(NestedField(1, "a", LongType()))))
    with pytest.raises(InvalidArgument, match="2 columns where 1"):
        collector.update(pa.RecordBatch.from_pydict({"a": [1], "b": [2]}))


@pytest.mark.spec("MET-04", "MET-05")
def test_what_was_not_gathered_is_absent_and_not_zero() -> None:
    metrics = MetricsCollector(pa.schema([])).metrics()
    assert metrics == Metrics(0)
    assert (metrics.value_counts, metrics.null_value_counts, metrics.lower_bounds, metrics.column_sizes) == (
        {},
        {},
        {},
        {},
    )
    untouched = MetricsCollector(schema_to_arrow(NESTED)).metrics()
    assert untouched.value_counts[1] == 0
    assert untouched.lower_bounds == {}


def points(*texts: str | None) -> Metrics:
    return collected(GeometryType(), [None if text is None else wkt_to_wkb(text) for text in texts])


@pytest.mark.spec("MET-21")
def test_points_are_bounded_by_the_corners_of_their_box() -> None:
    metrics = points("POINT (1 20)", None, "POINT (-3 40)")
    assert metrics.value_counts == {1: 3}
    assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (GeoPoint(-3.0, 20.0), GeoPoint(1.0, 40.0))
    high = points("POINT Z (1 2 3)", "POINT Z (4 0 -1)")
    assert (high.lower_bounds[1], high.upper_bounds[1]) == (GeoPoint(1.0, 0.0, -1.0), GeoPoint(4.0, 2.0, 3.0))
    measured = points("POINT M (1 2 3)", "POINT M (4 0 -1)")
    assert measured.lower_bounds[1] == GeoPoint(1.0, 0.0, None, -1.0)
    assert points("POINT ZM (1 2 3 4)").upper_bounds[1] == GeoPoint(1.0, 2.0, 3.0, 4.0)


@pytest.mark.spec("MET-21")
def test_nan_coordinates_are_skipped_and_without_x_or_y_there_is_no_box() -> None:
    def point(x: float, y: float) -> bytes:
        return struct.pack("<BIdd", 1, 1, x, y)

    metrics = collected(GeometryType(), [point(1, math.nan), point(3, 7), point(math.nan, 5)], [point(2, 6)])
    assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (GeoPoint(1.0, 5.0), GeoPoint(3.0, 7.0))
    for nothing in ([point(1, math.nan)], [point(math.nan, math.nan)], [None], []):
        assert collected(GeometryType(), nothing).lower_bounds == {}


@pytest.mark.spec("MET-21")
def test_shapes_other_than_points_have_counts_and_no_bounds() -> None:
    for texts in (
        ("LINESTRING (0 0, 5 5)",),
        ("POINT (1 1)", "LINESTRING (0 0, 5 5)"),
        ("POINT (1 1)", "POINT Z (1 1 1)"),
        ("MULTIPOINT ((1 1))", "POINT (1 1)"),
    ):
        metrics = points(*texts)
        assert metrics.lower_bounds == metrics.upper_bounds == {}
        assert metrics.value_counts == {1: len(texts)}
    # After bounds were given up, a later batch does not bring back bounds of a part of the rows.
    broken = [b"", b"\x01", wkt_to_wkb("POINT (1 1)")[:-1], b"\x00" + wkt_to_wkb("POINT (1 1)")[1:]]
    for shape in broken:
        metrics = collected(GeometryType(), [shape], [wkt_to_wkb("POINT (1 1)")])
        assert metrics.lower_bounds == {}
