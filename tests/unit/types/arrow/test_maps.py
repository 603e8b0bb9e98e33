"""Keys that come more than once in a row of a map."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.types.arrow.maps import has_repeated_keys, last_of_each_key

KEYS = {
    pa.string(): st.sampled_from(["", "a", "b", "blå"]),
    pa.int64(): st.integers(-2, 2),
    pa.binary(2): st.sampled_from([b"aa", b"ab", b"\xff\xff"]),
    pa.float64(): st.sampled_from([0.5, -1.0, 2.0]),
    pa.bool_(): st.booleans(),
}


def expected(pairs):
    """The expected pairs: the last pair of each key, in the order of these pairs."""
    if pairs is None:
        return None
    return [pair for at, pair in enumerate(pairs) if all(pair[0] != later[0] for later in pairs[at + 1 :])]


@st.composite
def columns(draw):
    key = draw(st.sampled_from(sorted(KEYS, key=str)))
    pair = st.tuples(KEYS[key], st.none() | st.integers(0, 9))
    rows = draw(st.lists(st.none() | st.lists(pair, max_size=6), max_size=8))
    start = draw(st.integers(0, len(rows)))
    return rows[start:], pa.array(rows, pa.map_(key, pa.int64())).slice(start)


@pytest.mark.spec("PLT-59")
@given(columns())
def test_the_last_pair_of_each_key_is_left_in_its_place(column):
    rows, array = column
    made = last_of_each_key(array)
    made.validate(full=True)
    assert made.to_pylist() == [expected(row) for row in rows]
    assert has_repeated_keys(array) is (made.to_pylist() != rows)
    assert not has_repeated_keys(made)
    if made.to_pylist() == rows:
        assert made is array, "nothing is copied where nothing is repeated"


@pytest.mark.spec("PLT-59")
@given(
    st.lists(st.none() | st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=4), max_size=3))
)
def test_maps_are_found_at_any_depth(rows):
    inner = pa.map_(pa.int32(), pa.int64())
    outer = pa.struct([("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)), ("n", pa.int8())])
    values = [
        row if row is None else {"l": row, "m": [(f"k{at % 2}", held) for at, held in enumerate(row)], "n": 1}
        for row in rows
    ]
    array = pa.array(values, outer)
    wanted = [
        row if row is None else {
            "l": [expected(held) for held in row["l"]],
            "m": [(key, expected(held)) for key, held in expected(row["m"])],
            "n": 1,
        }
        for row in values
    ]  # fmt: skip
    made = last_of_each_key(array)
    made.validate(full=True)
    assert made.to_pylist() == wanted
    assert has_repeated_keys(array) is (wanted != values)


def test_pairs_below_a_null_map_mean_nothing():
    keys, items = pa.array(["a", "a", "b"]), pa.array([1, 2, 3])
    array = pa.MapArray.from_arrays(pa.array([0, None, 3], pa.int32()), keys, items)
    hidden = pa.Array.from_buffers(
        array.type, 2, [pa.py_buffer(b"\x02"), pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0")], 1,
        children=[pa.StructArray.from_arrays([keys, items], fields=[array.type.key_field, array.type.item_field])],
    )  # fmt: skip
    assert hidden.to_pylist() == [None, [("b", 3)]]
    assert not has_repeated_keys(hidden)
    assert last_of_each_key(hidden).to_pylist() == [None, [("b", 3)]]


@pytest.mark.parametrize("length", [2, 31, 32, 33, 200])
def test_rows_of_any_length_are_looked_at(length):
    kind = pa.map_(pa.int64(), pa.int64())
    fine = [[(key, 0) for key in range(length, 0, -1)], [(key, 1) for key in range(length)]]
    assert last_of_each_key(array := pa.array(fine, kind)) is array
    wrong = [[*fine[0], (length, 7)], [*fine[1], (0, 8)], fine[0]]
    assert last_of_each_key(pa.array(wrong, kind)).to_pylist() == [expected(row) for row in wrong]


def test_columns_without_maps_are_passed_over():
    for array in (
        pa.array([1]),
        pa.array([["a", "a"]]),
        pa.array([{"x": 1}]),
        pa.array(["a", "a"]).dictionary_encode(),
    ):
        assert last_of_each_key(array) is array
        assert not has_repeated_keys(array)


def test_nested_keys_are_left_alone():
    kind = pa.map_(pa.struct([("x", pa.int32())]), pa.int64())
    array = pa.array([[({"x": 1}, 1), ({"x": 1}, 2)]], kind)
    assert last_of_each_key(array) is array


def test_many_rows_of_keys_in_any_order_are_stated_apart():
    rows = [[(f"key{at}", at) for at in sorted({number % 7, number % 11, number % 13})] for number in range(20_000)]
    array = pa.array(rows, pa.map_(pa.string(), pa.int64()))
    assert last_of_each_key(array) is array
    shuffled = [list(itertools.chain(row[1:], row[:1])) for row in rows]
    array = pa.array(shuffled, pa.map_(pa.string(), pa.int64()))
    assert last_of_each_key(array) is array


def test_maps_whose_keys_ascend_in_each_row_are_not_compared_pair_by_pair(monkeypatch):
    def compared(*_):
        raise AssertionError("pairs were compared")

    monkeypatch.setattr("icefield.types.arrow.maps._followed", compared)
    array = pa.array([[(1, 1), (2, 2), (9, 3)], [(1, 4), (3, 5)], []], pa.map_(pa.int64(), pa.int64()))
    assert last_of_each_key(array) is array
