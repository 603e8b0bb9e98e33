"""The metrics in a manifest, and the truncation and encoding of bounds."""

from __future__ import annotations

import math
import pickle
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.catalog import load_catalog
from icefield.errors import InvalidArgument
from icefield.metadata.metrics import (
    Metrics,
    MetricsCollector,
    MetricsConfig,
    apply_modes,
    parse_mode,
    truncate_lower,
    truncate_upper,
)
from icefield.metadata.metrics.modes import COUNTS, DEFAULT_MODE, FULL, NONE
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icefield.types.values import GeoPoint, geo_point_from_bytes, value_from_bytes
from pyiceberg.utils.truncate import truncate_upper_bound_text_string
from vectors import VECTORS

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "raw", BinaryType()),
    NestedField(4, "key", UUIDType()),
    NestedField(5, "code", FixedType(20)),
    NestedField(6, "at", StructType(NestedField(7, "city", StringType()))),
    NestedField(8, "tags", ListType(9, StringType())),
    NestedField(10, "score", DoubleType()),
)
PLAIN = MetricsConfig()


def bounded(value: Any, field_id: int, mode: str = "truncate(16)") -> tuple[Any, Any]:
    """The bounds in a manifest for a column with only that value."""
    kind = SCHEMA.id_to_field[field_id].field_type
    encoded = apply_modes(
        Metrics(1, lower_bounds={field_id: value}, upper_bounds={field_id: value}),
        MetricsConfig(parse_mode(mode)),
        SCHEMA,
    )
    return tuple(
        value_from_bytes(kind, bounds[field_id]) if field_id in bounds else None
        for bounds in (encoded.lower_bounds, encoded.upper_bounds)
    )  # type: ignore[return-value]


@pytest.mark.spec("MET-18", "MET-19")
@pytest.mark.parametrize("vector", VECTORS["bounds_truncation"], ids=lambda v: f"{v['value']} {v['length']}")
def test_the_vectors_are_cut_as_printed(vector: dict[str, Any]) -> None:
    kind = StringType() if vector["type"] == "string" else BinaryType()
    read = (lambda text: text) if vector["type"] == "string" else lambda text: text and bytes.fromhex(text)
    value, length = read(vector["value"]), vector["length"]
    assert truncate_lower(kind, value, length) == read(vector["lower"])
    assert truncate_upper(kind, value, length) == read(vector["upper"])
    assert bounded(value, 2 if vector["type"] == "string" else 3, f"truncate({length})") == (
        read(vector["lower"]),
        read(vector["upper"]),
    )


# Characters near the surrogates and the last code point are the hardest to increment.
CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from("\ud7ff\ue000\U0010fffe\U0010ffff\x00\x7f")


@pytest.mark.spec("MET-02", "MET-18", "MET-19")
@given(st.text(CHARACTERS, max_size=8), st.integers(1, 6))
def test_cut_string_still_bounds_the_string(value: str, length: int) -> None:
    lower, upper = truncate_lower(StringType(), value, length), truncate_upper(StringType(), value, length)
    assert len(lower) <= length
    assert lower.encode() <= value.encode()
    if upper is None:
        assert value[:length] == "\U0010ffff" * length
        assert len(value) > length
    else:
        assert len(upper) <= length
        assert upper.encode() >= value.encode()
        assert (upper == value) == (len(value) <= length)


@pytest.mark.spec("MET-02", "MET-18", "MET-19")
@given(st.binary(max_size=8) | st.lists(st.sampled_from([0, 1, 0xFE, 0xFF]), max_size=8).map(bytes), st.integers(1, 6))
def test_cut_bytes_still_bound_the_bytes(value: bytes, length: int) -> None:
    lower, upper = truncate_lower(BinaryType(), value, length), truncate_upper(BinaryType(), value, length)
    assert len(lower) <= length
    assert lower <= value
    if upper is None:
        assert value[:length] == b"\xff" * length
    else:
        assert len(upper) <= length
        assert upper >= value
        assert upper == value or upper[:-1] == value[: len(upper) - 1]


@pytest.mark.spec("MET-19")
@given(st.text(st.characters(codec="ascii", exclude_characters="\x7f"), max_size=8), st.integers(1, 6))
def test_cut_ascii_is_cut_as_pyiceberg_does(value: str, length: int) -> None:
    assert truncate_upper(StringType(), value, length) == truncate_upper_bound_text_string(value, length)


@pytest.mark.spec("MET-16")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("counts", COUNTS),
        ("full", FULL),
        ("truncate(16)", DEFAULT_MODE),
        (" Truncate( 16 ) ", DEFAULT_MODE),
    ],
)
def test_modes_are_read_and_written(text: str, mode: Any) -> None:
    assert parse_mode(text) == mode
    assert parse_mode(str(mode)) == mode


@pytest.mark.parametrize(
    "text",
    ["", "some", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "truncate(9999999999)"],
)
def test_no_other_mode_is_read(text: str) -> None:
    with pytest.raises(InvalidArgument, match="metrics are none"):
        parse_mode(text)
    for name in ("write.metadata.metrics.default", "write.metadata.metrics.column.id"):
        with pytest.raises(InvalidArgument, match=name):
            MetricsConfig.from_properties({name: text}, SCHEMA)


METRICS = Metrics(
    record_count=10,
    column_sizes={1: 80, 2: 90},
    value_counts={1: 10, 2: 10, 7: 10, 9: 30, 10: 10},
    null_value_counts={1: 0, 2: 3, 7: 10, 9: 1, 10: 0},
    nan_value_counts={10: 2},
    lower_bounds={1: -5, 2: "a" * 20, 10: 0.5},
    upper_bounds={1: 5, 2: "b" * 20, 10: 1.5},
)


@pytest.mark.spec("MET-16")
@pytest.mark.parametrize("mode", ["none", "counts", "truncate(4)", "full"])
def test_each_mode_keeps_what_it_says(mode: str) -> None:
    config = MetricsConfig.from_properties({"write.metadata.metrics.column.name": mode}, SCHEMA)
    encoded = apply_modes(METRICS, config, SCHEMA)
    assert encoded.record_count == 10
    assert encoded.column_sizes == {1: 80, 2: 90}
    assert (2 in encoded.value_counts) == (2 in encoded.null_value_counts) == (mode != "none")
    expected = {"truncate(4)": (b"aaaa", b"bbbc"), "full": (b"a" * 20, b"b" * 20)}.get(mode)
    found = encoded.lower_bounds.get(2), encoded.upper_bounds.get(2)
    assert found == (expected or (None, None))
    # The metrics of the other columns are unchanged.
    assert encoded.value_counts.keys() >= {1, 7, 9, 10}
    assert encoded.nan_value_counts == {10: 2}
    assert value_from_bytes(LongType(), encoded.lower_bounds[1]) == -5


@pytest.mark.spec("MET-16")
def test_the_default_mode_cuts_to_sixteen() -> None:
    encoded = apply_modes(METRICS, MetricsConfig.from_properties({}, SCHEMA), SCHEMA)
    assert encoded.lower_bounds[2] == b"a" * 16
    assert encoded.upper_bounds[2] == b"b" * 15 + b"c"
    without = apply_modes(
        METRICS, MetricsConfig.from_properties({"write.metadata.metrics.default": "none"}, SCHEMA), SCHEMA
    )
    assert without.value_counts == without.lower_bounds == without.nan_value_counts == {}
    assert without.column_sizes == METRICS.column_sizes


@pytest.mark.spec("MET-16")
def test_only_so_many_columns_have_metrics_by_default_those_nearest_the_root_first() -> None:
    deep = NestedField(1, "s", StructType(NestedField(2, "x", LongType()), NestedField(3, "y", LongType())))
    schema = Schema(deep, *(NestedField(i, f"c{i}", LongType()) for i in range(10, 14)))
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "5"}
    config = MetricsConfig.from_properties(limit, schema)
    assert {id_ for id_ in schema.field_ids if config.mode(id_) == NONE} == {3}
    named = MetricsConfig.from_properties({**limit, "write.metadata.metrics.column.s.y": "full"}, schema)
    assert named.mode(3) == FULL
    chosen = MetricsConfig.from_properties({**limit, "write.metadata.metrics.default": "truncate(16)"}, schema)
    assert {chosen.mode(id_) for id_ in schema.field_ids} == {DEFAULT_MODE}
    wide = Schema(*(NestedField(i, f"c{i}", LongType()) for i in range(1, 131)))
    many = MetricsConfig.from_properties({}, wide)
    assert [many.mode(i) for i in (1, 100, 101, 130)] == [DEFAULT_MODE, DEFAULT_MODE, NONE, NONE]


@pytest.mark.spec("MET-16")
def test_columns_that_files_are_sorted_by_have_bounds_unless_they_are_named() -> None:
    counts = {"write.metadata.metrics.default": "counts"}
    assert MetricsConfig.from_properties(counts, SCHEMA, sorted_ids=[1]).mode(1) == DEFAULT_MODE
    assert MetricsConfig.from_properties(counts, SCHEMA, sorted_ids=[1]).mode(2) == COUNTS
    named = {**counts, "write.metadata.metrics.column.id": "none"}
    assert MetricsConfig.from_properties(named, SCHEMA, sorted_ids=[1]).mode(1) == NONE
    full = {"write.metadata.metrics.default": "full"}
    assert MetricsConfig.from_properties(full, SCHEMA, sorted_ids=[1]).mode(1) == FULL


def test_a_property_of_a_column_that_is_gone_is_passed_over() -> None:
    config = MetricsConfig.from_properties({"write.metadata.metrics.column.gone": "full"}, SCHEMA)
    assert config.modes == {}
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.spec("MET-17")
def test_only_strings_and_binaries_are_cut() -> None:
    uuid, code = bytes(range(16)), bytes(range(20))
    assert bounded(uuid, 4, "truncate(2)") == (uuid, uuid)
    assert bounded(code, 5, "truncate(2)") == (code, code)
    assert bounded(2**40, 1, "truncate(2)") == (2**40, 2**40)
    assert bounded("abcdef", 2, "truncate(2)") == ("ab", "ac")
    assert bounded(b"abcdef", 3, "truncate(2)") == (b"ab", b"ac")
    assert bounded("abcdef", 7, "truncate(2)") == ("ab", "ac")


@pytest.mark.spec("MET-19")
def test_an_upper_bound_that_cannot_be_cut_is_left_out() -> None:
    assert bounded("\U0010ffff" * 17, 2) == ("\U0010ffff" * 16, None)
    assert bounded(b"\xff" * 17, 3) == (b"\xff" * 16, None)
    assert bounded(b"\xff" * 16, 3) == (b"\xff" * 16, b"\xff" * 16)


@pytest.mark.spec("MET-10")
def test_a_bound_that_is_nan_is_treated_as_missing() -> None:
    foreign = Metrics(3, lower_bounds={10: math.nan}, upper_bounds={10: 2.0})
    encoded = apply_modes(foreign, PLAIN, SCHEMA)
    assert encoded.lower_bounds == {}
    assert value_from_bytes(DoubleType(), encoded.upper_bounds[10]) == 2.0


@pytest.mark.spec("MET-13")
def test_bounds_inside_lists_and_maps_are_left_out_and_their_counts_are_kept() -> None:
    schema = Schema(
        NestedField(1, "l", ListType(2, StructType(NestedField(3, "x", IntegerType())))),
        NestedField(4, "m", MapType(5, StringType(), 6, IntegerType())),
    )
    bounds: dict[int, Any] = {3: 1, 5: "k", 6: 2}
    encoded = apply_modes(
        Metrics(1, value_counts={3: 4, 5: 2}, lower_bounds=bounds, upper_bounds=bounds), PLAIN, schema
    )
    assert encoded.lower_bounds == encoded.upper_bounds == {}
    assert encoded.value_counts == {3: 4, 5: 2}


def test_ids_that_the_schema_lacks_are_left_out() -> None:
    encoded = apply_modes(Metrics(1, {99: 1}, {99: 1}, {99: 1}, {99: 1}, {99: 1}, {99: 1}), PLAIN, SCHEMA)
    assert encoded == apply_modes(Metrics(1), PLAIN, SCHEMA)


@pytest.mark.spec("MET-04", "MET-05")
def test_nothing_known_stays_nothing() -> None:
    encoded = apply_modes(Metrics(7), MetricsConfig(FULL), SCHEMA)
    assert encoded.record_count == 7
    for known in (
        encoded.column_sizes,
        encoded.value_counts,
        encoded.null_value_counts,
        encoded.nan_value_counts,
        encoded.lower_bounds,
        encoded.upper_bounds,
    ):
        assert known == {}
    one_side = apply_modes(Metrics(7, upper_bounds={1: 3}), PLAIN, SCHEMA)
    assert one_side.lower_bounds == {}
    assert value_from_bytes(LongType(), one_side.upper_bounds[1]) == 3


@pytest.mark.spec("MET-02", "MET-07", "MET-23")
def test_bounds_are_encoded_in_the_type_they_were_written_in() -> None:
    written = Schema(NestedField(1, "n", IntegerType()), NestedField(2, "d", DecimalType(9, 2)))
    arrow = schema_to_arrow(written)
    collector = MetricsCollector(arrow)
    prices = pa.array([Decimal("-1.28"), Decimal("0.00"), Decimal("1.28")], pa.decimal128(9, 2))
    collector.update(pa.RecordBatch.from_arrays([pa.array([-7, 3, 9], pa.int32()), prices], schema=arrow))
    encoded = apply_modes(collector.metrics(), PLAIN, written)
    assert encoded.lower_bounds == {1: (-7).to_bytes(4, "little", signed=True), 2: bytes.fromhex("80")}
    assert encoded.upper_bounds == {1: (9).to_bytes(4, "little"), 2: bytes.fromhex("0080")}
    # After promotion the four bytes are read as the longer type.
    assert value_from_bytes(LongType(), encoded.lower_bounds[1]) == -7
    assert value_from_bytes(DecimalType(20, 2), encoded.upper_bounds[2]) == Decimal("1.28")


@pytest.mark.spec("MET-21")
def test_shapes_are_bounded_by_points_and_by_nothing_else() -> None:
    schema = Schema(NestedField(1, "g", GeometryType()))
    corners = Metrics(2, lower_bounds={1: GeoPoint(1.0, 2.0)}, upper_bounds={1: GeoPoint(3.0, 4.0)})
    encoded = apply_modes(corners, PLAIN, schema)
    assert geo_point_from_bytes(encoded.lower_bounds[1]) == GeoPoint(1.0, 2.0)
    assert geo_point_from_bytes(encoded.upper_bounds[1]) == GeoPoint(3.0, 4.0)
    raw = apply_modes(Metrics(2, lower_bounds={1: b"\x01"}, upper_bounds={1: b"\x02"}), PLAIN, schema)
    assert raw.lower_bounds == raw.upper_bounds == {}


def test_bounds_are_cut_to_one_character_at_least():
    assert str(parse_mode("truncate(1)")) == "truncate(1)"
    with pytest.raises(InvalidArgument, match="at least 1"):
        parse_mode("truncate(0)")


@pytest.mark.spec("MET-16")
@pytest.mark.parametrize(("default", "counted"), [("counts", [1, 2, 3, 4]), ("none", [1, 2])])
def test_files_of_a_sorted_table_have_bounds_of_the_columns_whose_order_they_keep(
    default: str, counted: list[int]
) -> None:
    catalog = load_catalog("test", type="directory", warehouse=f"memory://{uuid.uuid4().hex}")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        pa.schema([("id", pa.int64()), ("name", pa.string()), ("kind", pa.int64()), ("other", pa.int64())]),
        sort_order=["truncate[2](name)", "id", "bucket[4](kind)"],
        properties={"write.metadata.metrics.default": default},
    )
    table.append(pa.table({"id": [1, 5], "name": ["a", "b"], "kind": [1, 2], "other": [3, 4]}))
    (file,) = table.inspect.files().to_pylist()
    assert [id_ for id_, _ in file["value_counts"]] == counted
    assert [id_ for id_, _ in file["lower_bounds"]] == [1, 2]
