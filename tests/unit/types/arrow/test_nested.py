"""Rebuilding nested arrays without copying their values."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.types.arrow.nested import (
    list_parts,
    map_entries,
    may_be_unsettled,
    null_array,
    parts_below,
    retype,
    settled,
    times_as_numbers,
    unwrap,
    validity_buffer,
)

LEAF = st.none() | st.integers(-9, 9)
ROW = st.none() | st.fixed_dictionaries(
    {
        "x": LEAF,
        "l": st.none() | st.lists(st.none() | st.fixed_dictionaries({"y": LEAF}), max_size=3),
        "m": st.none() | st.lists(st.tuples(st.text(max_size=1), LEAF), max_size=3),
    }
)
HELD = pa.struct(
    [
        ("x", pa.int32()),
        ("l", pa.list_(pa.struct([("y", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.int8())),
    ]
)
OTHER = pa.struct(
    [
        pa.field("renamed", pa.int32(), nullable=False),
        pa.field("l", pa.list_(pa.field("e", pa.struct([pa.field("z", pa.int64(), nullable=False)])))),
        pa.field("m", pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int8(), nullable=False))),
    ]
)


def renamed(row):
    if row is None:
        return None
    items = row["l"] and [item and {"z": item["y"]} for item in row["l"]]
    return {"renamed": row["x"], "l": items, "m": row["m"]}


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROW, min_size=1, max_size=12), data=st.data())
def test_any_slice_of_any_array_keeps_its_values_under_another_type(rows, data):
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start, len(rows)))
    array = pa.array(rows, HELD).slice(start, stop - start)
    made = retype(array, OTHER)
    made.validate(full=True)
    assert made.type.equals(OTHER, check_metadata=True)
    assert made.to_pylist() == [renamed(row) for row in rows[start:stop]]


@settings(max_examples=80, deadline=None)
@given(values=st.lists(LEAF, min_size=1, max_size=40), start=st.integers(0, 39))
def test_validity_is_counted_from_the_first_value_of_a_slice(values, start):
    array = pa.array(values, pa.int32()).slice(start)
    buffer = validity_buffer(array)
    if array.null_count == 0:
        assert buffer is None
        return
    bits = pa.Array.from_buffers(pa.bool_(), len(array), [None, buffer])
    assert bits.to_pylist() == [value is not None for value in values[start:]]


@settings(max_examples=80, deadline=None)
@given(values=st.lists(st.none() | st.lists(LEAF, max_size=3), max_size=12), start=st.integers(0, 11))
def test_the_parts_of_a_list_are_those_of_its_slice(values, start):
    array = pa.array(values, pa.list_(pa.int32())).slice(start)
    validity, offsets, first, last = list_parts(array)
    inner = array.values.slice(first, last - first)
    made = pa.Array.from_buffers(array.type, len(array), [validity, offsets], array.null_count, children=[inner])
    made.validate(full=True)
    assert made.to_pylist() == values[start:]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.array([bytes(16), None], pa.uuid()),
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["a", None])),
    ],
    ids=lambda array: str(array.type),
)
def test_what_wraps_an_array_is_taken_off(array):
    plain = unwrap(array)
    assert isinstance(plain, pa.StringArray | pa.FixedSizeBinaryArray)
    assert len(plain) == len(array)
    assert [value is None for value in plain.to_pylist()] == [value is None for value in array.to_pylist()]


def test_nothing_is_copied():
    array = pa.array([{"x": 1, "l": [{"y": 2}], "m": [("k", 3)]}, None], HELD)
    before = {buffer.address for buffer in array.buffers() if buffer}
    after = {buffer.address for buffer in retype(array, OTHER).buffers() if buffer}
    assert after <= before


@pytest.mark.parametrize(
    "kind",
    [pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")],
    ids=str,
)
def test_times_are_numbers_at_any_depth(kind):
    most = 2**31 - 1 if kind.bit_width == 32 else 2**63 - 1
    times = pa.array([1, None, most, 2], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    maps = pa.MapArray.from_arrays([0, 1, 2], times.take([0, 2]), pa.array(["a", None]))
    lists = pa.ListArray.from_arrays([0, 2, 3, 4], times)
    whole = pa.StructArray.from_arrays([lists.slice(0, 2), maps, pa.array([1.5, None])], ["l", "m", "n"])
    found = times_as_numbers(pa.concat_arrays([whole, pa.nulls(1, whole.type)]).slice(1))
    assert found.to_pylist() == [{"l": [most], "m": [(most, None)], "n": None}, None]
    assert times_as_numbers(times.slice(2)).to_pylist() == [most, 2]


def required(name, kind):
    return pa.field(name, kind, nullable=False)


POINT = pa.struct([required("x", pa.int32()), pa.field("y", pa.string())])
DEEP = pa.struct(
    [
        required("p", POINT),
        required("l", pa.list_(required("element", POINT))),
        pa.field("m", pa.map_(pa.string(), POINT)),
        required("n", pa.map_(pa.string(), required("value", pa.decimal128(9, 2)))),
        pa.field("o", pa.list_(pa.field("element", pa.struct([required("b", pa.bool_())])))),
    ]
)
POINTS = st.fixed_dictionaries({"x": st.integers(-9, 9), "y": st.none() | st.text(max_size=2)})
KEYS = st.text("ab", min_size=1, max_size=2)
DEEP_ROWS = st.none() | st.fixed_dictionaries(
    {
        "p": POINTS,
        "l": st.lists(POINTS, max_size=2),
        "m": st.none() | st.dictionaries(KEYS, st.none() | POINTS, max_size=2).map(lambda held: list(held.items())),
        "n": st.dictionaries(KEYS, st.decimals(-9, 9, places=2), max_size=2).map(lambda held: list(held.items())),
        "o": st.none() | st.lists(st.none() | st.fixed_dictionaries({"b": st.booleans()}), max_size=2),
    }
)


def with_nulls_below(array):
    """The array with each null repeated in all nested arrays, in the way of Arrow's own functions."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [with_nulls_below(child) for child in array.flatten()]
        return pa.Array.from_buffers(kind, len(array), [validity_buffer(array)], children=children)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        below = array.values if pa.types.is_list(kind) else map_entries(array).values
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(kind, len(array), buffers, -1, array.offset, [with_nulls_below(below)])
    return array


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(DEEP_ROWS, max_size=8), data=st.data())
def test_a_settled_array_has_the_same_values_and_parquet_takes_it(rows, data):
    start = data.draw(st.integers(0, len(rows)))
    array = with_nulls_below(pa.array(rows, DEEP)).slice(start)
    made = settled(array)
    made.validate(full=True)
    assert made.type.equals(DEEP, check_metadata=True)
    assert made.to_pylist() == array.to_pylist() == rows[start:]
    sink = io.BytesIO()
    pq.write_table(pa.table([made], ["c"]), sink)
    assert pq.read_table(sink)["c"].to_pylist() == rows[start:]


def test_a_settled_array_is_given_back_as_it_is():
    array = pa.array([{"p": {"x": 1, "y": None}, "l": [], "m": None, "n": [], "o": None}], DEEP)
    assert settled(array) is array


def test_a_required_null_whose_parent_is_not_null_stays_to_be_refused():
    parents = [True, False, True]
    lacking = pa.array([1, None, None], pa.int32())
    kind = pa.struct([required("x", pa.int32())])
    array = pa.Array.from_buffers(kind, 3, [pa.array(parents).buffers()[1]], children=[lacking])
    assert settled(array).to_pylist() == [{"x": 1}, None, {"x": None}]


def test_elements_below_a_null_list_are_left_out():
    kind = pa.list_(required("element", pa.int32()))
    lists = pa.ListArray.from_arrays([0, 2, 4], pa.array([None, None, 3, 4], pa.int32()), mask=pa.array([True, False]))
    made = settled(retype(lists, kind))
    assert made.to_pylist() == [None, [3, 4]]
    assert made.values.to_pylist() == [3, 4]


@pytest.mark.parametrize("kind", [DEEP, POINT, pa.map_(pa.string(), POINT), pa.int32(), pa.list_(POINT)], ids=str)
def test_an_array_of_nulls_is_settled(kind):
    made = null_array(kind, 3)
    assert made.to_pylist() == [None] * 3
    assert settled(made) is made


def test_only_a_required_field_inside_another_can_be_unsettled():
    assert not may_be_unsettled(pa.int32())
    assert not may_be_unsettled(pa.struct([("x", pa.struct([("y", pa.int32())]))]))
    assert may_be_unsettled(pa.list_(required("element", pa.int32())))
    assert may_be_unsettled(pa.struct([("x", pa.struct([required("y", pa.int32())]))]))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.string()])
def test_encoded_views_are_taken_apart_in_slices_too(kind):
    plain = pa.binary() if kind == pa.binary_view() else pa.string()
    given = pa.array(["no", "long enough to be outside of a view", None, "c"], plain)
    held = given.cast(kind).slice(1)
    codes = pa.array([0, None, 2, 1, 0], pa.uint32())
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int32()), held)
    texts = given.slice(1).to_pylist()
    as_codes, as_runs = [texts[0], None, texts[2], None, texts[0]], [texts[0], texts[0], None, texts[2], texts[2]]
    for encoded, values in ((pa.DictionaryArray.from_arrays(codes, held), as_codes), (runs, as_runs)):
        for start, length in ((0, 5), (1, 3), (3, 2), (4, 0)):
            found = unwrap(encoded.slice(start, length))
            found.validate(full=True)
            assert found.to_pylist() == values[start : start + length]


def test_the_parts_of_lists_whose_offsets_fall_are_refused():
    buffers = [None, pa.array([0, 2, 1], pa.int32()).buffers()[1]]
    lists = pa.Array.from_buffers(pa.list_(pa.int8()), 2, buffers, children=[pa.array([1, 2, 3], pa.int8())])
    with pytest.raises(pa.ArrowInvalid, match="fall"):
        list(parts_below(lists))
