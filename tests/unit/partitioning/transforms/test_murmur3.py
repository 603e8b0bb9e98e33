"""The hash of values and of arrays, against the vectors, mmh3 and each other."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.partitioning.transforms import murmur3, murmur3_steps
from icefield.partitioning.transforms.murmur3 import hash_array, hash_value
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    parse_type,
)
from icefield.types.values import to_arrow_array, to_internal
from vectors import VECTORS


def vector_type(text: str) -> IcebergType:
    return parse_type(text.replace("fixed(", "fixed[").replace(")", "]") if text.startswith("fixed(") else text)


def vector_value(kind: IcebergType, vector: dict[str, Any]) -> Any:
    if vector.get("internal") is not None:
        return vector["internal"]
    value = vector["value"]
    if isinstance(kind, BinaryType | FixedType):
        return bytes.fromhex(value)
    return to_internal(kind, value)


@pytest.mark.spec(
    *("HASH-01", "HASH-03", "HASH-04", "HASH-05", "HASH-06", "HASH-07", "HASH-08", "HASH-09", "HASH-10"),
    *("HASH-11", "HASH-12", "HASH-13", "HASH-14", "HASH-15", "HASH-16", "HASH-17"),
)
@pytest.mark.parametrize("vector", VECTORS["hash"], ids=lambda v: f"{v['type']} {v['value'] or v.get('internal')}")
def test_the_hash_of_every_vector_is_the_printed_one(vector: dict[str, Any]) -> None:
    kind = vector_type(vector["type"])
    value = vector_value(kind, vector)
    assert hash_value(kind, value) == vector["hash"]
    if "input_hex" in vector:
        assert mmh3.hash(bytes.fromhex(vector["input_hex"])) == vector["hash"]
    column = hash_array(to_arrow_array(kind, [value]), kind)
    assert column.dtype == np.int32
    assert column.tolist() == [vector["hash"] or 0]


def test_all_vectors_of_one_type_hash_alike_as_one_column() -> None:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for vector in VECTORS["hash"]:
        by_type.setdefault(vector["type"], []).append(vector)
    for text, vectors in by_type.items():
        kind = vector_type(text)
        array = to_arrow_array(kind, [vector_value(kind, vector) for vector in vectors])
        assert hash_array(array, kind).tolist() == [vector["hash"] or 0 for vector in vectors], text


@pytest.mark.spec("HASH-06")
def test_a_date_is_hashed_over_eight_bytes_and_not_four() -> None:
    days = 17486
    assert hash_value(DateType(), days) == -653330422
    assert hash_value(DateType(), days) != mmh3.hash(struct.pack("<i", days)) == 1087118125


byte_strings = st.lists(st.none() | st.binary(max_size=70), max_size=200)


@pytest.mark.spec("HASH-02", "HASH-11", "HASH-13")
@settings(max_examples=60)
@given(byte_strings, st.integers(0, 20), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_a_column_of_byte_strings_hashes_as_mmh3_does(
    values: list[bytes | None], start: int, form: pa.DataType
) -> None:
    array = pa.array(values, form).slice(start)
    expected = [0 if value is None else mmh3.hash(value) for value in values[start:]]
    assert hash_array(array, BinaryType()).tolist() == expected


@given(st.lists(st.none() | st.text(max_size=30), max_size=60))
def test_a_column_of_string_hashes_its_utf8(values: list[str | None]) -> None:
    expected = [0 if value is None else mmh3.hash(value.encode()) for value in values]
    for form in (pa.string(), pa.large_string(), pa.string_view()):
        assert hash_array(pa.array(values, form), StringType()).tolist() == expected


def test_long_short_and_few_strings_of_one_length_all_hash_as_mmh3_does() -> None:
    rng = np.random.default_rng(5)
    lengths = [*range(200), *([17] * 500), *([0] * 40), *range(1000, 1100, 7), 5000, 70_000, 300_000, *([1024] * 40)]
    values = [rng.bytes(length) for length in lengths]
    rng.shuffle(values)
    assert hash_array(pa.array(values), BinaryType()).tolist() == [mmh3.hash(value) for value in values]
    # The buffer ends with the last string, so reading past it would fail.
    tight = pa.array([b"abcdefg"] * 40 + [b"x" * 9])
    assert hash_array(tight, BinaryType()).tolist() == [mmh3.hash(b"abcdefg")] * 40 + [mmh3.hash(b"x" * 9)]


def test_chunks_of_any_size_give_the_same_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    strings = pa.array([None if i % 11 == 3 else f"{rng.integers(0, 10**9)}" * (i % 4) for i in range(3000)])
    numbers = pa.array(rng.integers(-(2**62), 2**62, 3000))
    fixed = pa.array([rng.bytes(7) for _ in range(3000)], pa.binary(7))
    columns = ((strings, StringType()), (numbers, LongType()), (fixed, FixedType(7)))
    whole = [hash_array(array, kind).tolist() for array, kind in columns]
    monkeypatch.setattr(murmur3_steps, "_CHUNK", 257)
    monkeypatch.setattr(murmur3_steps, "_STRINGS", 129)
    assert [hash_array(array, kind).tolist() for array, kind in columns] == whole


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 11, 16, 33, 1100])
def test_fixed_columns_of_any_width_hash_as_mmh3_does(width: int) -> None:
    rng = np.random.default_rng(width)
    values = [None if i == 3 else rng.bytes(width) for i in range(60)]
    array = pa.array(values, pa.binary(width))
    expected = [0 if value is None else mmh3.hash(value) for value in values]
    assert hash_array(array, FixedType(width)).tolist() == expected
    assert hash_array(array.slice(2, 30), FixedType(width)).tolist() == expected[2:32]


@pytest.mark.spec("HASH-05", "HASH-19", "HASH-20")
@settings(max_examples=150)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-70_000, 70_000), max_size=40))
def test_a_decimal_hashes_its_fewest_bytes_whatever_its_scale_and_storage(unscaled: list[int]) -> None:
    expected = []
    for number in unscaled:
        size = 1
        while not -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            size += 1
        expected.append(mmh3.hash(number.to_bytes(size, "big", signed=True)))
    for scale in (0, 2, 38):
        kind = DecimalType(38, scale)
        values = [Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)) for number in unscaled]
        assert hash_array(to_arrow_array(kind, values), kind).tolist() == expected
        assert [hash_value(kind, value) for value in values] == expected
    small = [number for number in unscaled if abs(number) < 10**9]
    narrow = to_arrow_array(DecimalType(9, 2), [Decimal(number).scaleb(-2) for number in small])
    wide = narrow.cast(pa.decimal128(38, 2))
    assert hash_array(narrow, DecimalType(9, 2)).tolist() == hash_array(wide, DecimalType(38, 2)).tolist()


@pytest.mark.parametrize("bits", range(1, 127))
def test_decimals_at_every_power_of_two_take_the_right_number_of_bytes(bits: int) -> None:
    kind = DecimalType(38, 0)
    edge = 1 << bits
    values = [n for n in (edge - 1, edge, edge + 1, -edge - 1, -edge, -edge + 1) if abs(n) < 10**38]
    array = to_arrow_array(kind, [Decimal(n) for n in values])
    assert hash_array(array, kind).tolist() == [hash_value(kind, Decimal(n)) for n in values]


@pytest.mark.spec("HASH-15", "HASH-16")
@given(st.lists(st.floats(width=32), max_size=30))
def test_floats_hash_as_doubles_with_one_nan_and_one_zero(values: list[float]) -> None:
    expected = [hash_value(DoubleType(), value) for value in values]
    assert [hash_value(FloatType(), value) for value in values] == expected
    assert hash_array(pa.array(values, pa.float64()), DoubleType()).tolist() == expected
    assert hash_array(pa.array(values, pa.float32()), FloatType()).tolist() == expected


@pytest.mark.spec("HASH-16")
def test_every_bit_pattern_of_nan_hashes_alike() -> None:
    patterns = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF], np.uint64)
    nans = pa.array(patterns.view(np.float64), from_pandas=False)
    assert hash_array(nans, DoubleType()).tolist() == [1428788237] * 4
    assert {hash_value(DoubleType(), value) for value in patterns.view(np.float64).tolist()} == {1428788237}


@pytest.mark.spec("HASH-02", "HASH-17")
def test_null_is_never_hashed() -> None:
    for kind in (IntegerType(), StringType(), DecimalType(9, 2), UUIDType(), UnknownType()):
        assert hash_value(kind, None) is None
        assert hash_array(pa.nulls(3, to_arrow_array(kind, []).type), kind).tolist() == [0, 0, 0]
    # The value under a null does not affect the hash.
    data = pa.array([5, 6]).buffers()[1]
    masked = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), data])
    assert hash_array(masked, LongType()).tolist() == [0, hash_value(LongType(), 6)]


@pytest.mark.spec("HASH-18")
@pytest.mark.parametrize("kind", [VariantType(), StructType(), ListType(1, IntegerType())], ids=str)
def test_variant_and_nested_types_have_no_hash(kind: IcebergType) -> None:
    for value in (None, ()):
        with pytest.raises(InvalidArgument, match="no hash"):
            hash_value(kind, value)
    with pytest.raises(InvalidArgument, match="no hash"):
        hash_array(pa.array([], pa.int32()), kind)


def test_a_dictionary_is_hashed_once_for_each_of_its_values() -> None:
    words = pa.array(["a", None, "bcd", "a", "", "bcd"])
    encoded = words.dictionary_encode()
    assert hash_array(encoded, StringType()).tolist() == hash_array(words, StringType()).tolist()
    assert (
        hash_array(encoded.slice(1, 3), StringType()).tolist() == hash_array(words.slice(1, 3), StringType()).tolist()
    )
    null_inside = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array(["x", None]))
    assert hash_array(null_inside, StringType()).tolist() == [mmh3.hash("x"), 0, 0, 0]


def test_many_repeated_strings_hash_as_they_do_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    few = pa.array([f"a rather long customer name {i}" for i in range(90)] + [None])
    rows = few.take(pa.array(np.random.default_rng(1).integers(0, 91, 70_000)))
    looked_up = hash_array(rows, StringType())
    monkeypatch.setattr(murmur3, "_DICTIONARY_ROWS", 10**9)
    assert looked_up.tolist() == hash_array(rows, StringType()).tolist()


@pytest.mark.spec("HASH-03", "HASH-04", "HASH-06", "HASH-07", "HASH-08", "HASH-09", "HASH-10", "HASH-14")
@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=40))
def test_all_counted_types_hash_the_same_eight_bytes(values: list[int | None]) -> None:
    expected = [0 if value is None else mmh3.hash(struct.pack("<q", value)) for value in values]
    for kind in (IntegerType(), LongType(), DateType(), TimestampType(), TimestamptzType()):
        assert (
            hash_array(to_arrow_array(LongType(), values).cast(_stored(kind)).view(_arrow(kind)), kind).tolist()
            == expected
        )
    nanos = [None if value is None else value * 1000 + 999 for value in values]
    for kind in (TimestampNanoType(), TimestamptzNanoType()):
        assert hash_array(pa.array(nanos, pa.int64()).view(_arrow(kind)), kind).tolist() == expected
    clock = [None if value is None else value % 86_400_000_000 for value in values]
    assert hash_array(pa.array(clock, pa.int64()).view(pa.time64("us")), TimeType()).tolist() == [
        0 if value is None else mmh3.hash(struct.pack("<q", value)) for value in clock
    ]
    flags = [None if value is None else value > 0 for value in values]
    assert hash_array(pa.array(flags, pa.bool_()), BooleanType()).tolist() == [
        0 if flag is None else mmh3.hash(struct.pack("<q", flag)) for flag in flags
    ]


def _arrow(kind: IcebergType) -> pa.DataType:
    return to_arrow_array(kind, []).type


def _stored(kind: IcebergType) -> pa.DataType:
    return pa.int32() if isinstance(kind, IntegerType | DateType) else pa.int64()


def test_an_array_of_another_type_is_refused_or_converted_but_never_misread() -> None:
    with pytest.raises(InvalidArgument, match="does not hold"):
        hash_array(pa.array([True]), DateType())
    milliseconds = pa.array([1510871468000], pa.timestamp("ms"))
    assert hash_array(milliseconds, TimestampType()).tolist() == [-2047944441]
    elsewhere = pa.array([1510871468000000], pa.timestamp("us", "America/New_York"))
    assert hash_array(elsewhere, TimestamptzType()).tolist() == [-2047944441]
