"""The transforms against PyIceberg's own and its Rust core."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyiceberg.transforms as peer
import pyiceberg.types as peer_types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.partitioning.transforms import Transform, parse_transform
from icefield.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.values import from_arrow_array, to_arrow_array
from pyiceberg_core import transform as core

MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
SOURCES: dict[IcebergType, tuple[peer_types.PrimitiveType, st.SearchStrategy[Any]]] = {
    IntegerType(): (peer_types.IntegerType(), st.integers(-(2**31) + 100, 2**31 - 1)),
    LongType(): (peer_types.LongType(), st.integers(-(2**63) + 100, 2**63 - 1)),
    DecimalType(18, 3): (peer_types.DecimalType(18, 3), st.decimals(-(10**14), 10**14, places=3)),
    DateType(): (peer_types.DateType(), st.integers(-719_162, 2_932_896)),
    TimeType(): (peer_types.TimeType(), st.integers(0, 86_399_999_999)),
    TimestampType(): (peer_types.TimestampType(), MICROS),
    TimestamptzType(): (peer_types.TimestamptzType(), MICROS),
    TimestampNanoType(): (peer_types.TimestampNanoType(), st.integers(-(2**62), 2**62)),
    StringType(): (peer_types.StringType(), st.text(max_size=40)),
    UUIDType(): (peer_types.UUIDType(), st.binary(min_size=16, max_size=16)),
    FixedType(7): (peer_types.FixedType(7), st.binary(min_size=7, max_size=7)),
    BinaryType(): (peer_types.BinaryType(), st.binary(max_size=40)),
}
TEXTS = ["identity", "bucket[16]", "bucket[1000003]", "truncate[7]", "year", "month", "day", "hour", "void"]


def pairs() -> list[Any]:
    return [
        pytest.param(parse_transform(text), kind, id=f"{text} {kind}")
        for text in TEXTS
        for kind in SOURCES
        if parse_transform(text).can_transform(kind)
    ]


@pytest.mark.spec("TRN-01", "TRN-06", "TRN-10", "TRN-12", "TRN-13", "TRN-16", "TRN-17", "TRN-18", "TRN-19")
@pytest.mark.parametrize(("transform", "kind"), pairs())
def test_values_are_transformed_as_pyiceberg_does(transform: Transform, kind: IcebergType) -> None:
    their_kind, values = SOURCES[kind]
    theirs = peer.parse_transform(str(transform))
    assert theirs.can_transform(their_kind)

    @settings(max_examples=30)
    @given(st.lists(st.none() | values, min_size=1, max_size=8))
    def check(column: list[Any]) -> None:
        function = theirs.transform(their_kind)
        expected = [function(value) for value in column]
        assert [transform.apply_value(value, kind) for value in column] == expected

    check()


CORE = {
    "bucket[16]": lambda array: core.bucket(array, 16),
    "truncate[7]": lambda array: core.truncate(array, 7),
    "year": core.year,
    "month": core.month,
    "day": core.day,
    "hour": core.hour,
}
# The Rust core rounds nanoseconds towards zero before hashing, where the spec's value for -1 is rounded down. It has no
# hour transform of nanoseconds.
KINDS = {
    "bucket[16]": [kind for kind in SOURCES if not isinstance(kind, TimestampNanoType)],
    "truncate[7]": [IntegerType(), LongType(), DecimalType(18, 3), StringType(), BinaryType()],
    "year": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "month": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "day": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "hour": [TimestampType(), TimestamptzType()],
}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for text, kinds in KINDS.items() for kind in kinds], ids=str)
def test_columns_are_transformed_as_the_rust_core_does(text: str, kind: IcebergType) -> None:
    transform, result = parse_transform(text), parse_transform(text).result_type(kind)

    @settings(max_examples=30)
    @given(st.lists(st.none() | SOURCES[kind][1], max_size=20))
    def check(column: list[Any]) -> None:
        array = to_arrow_array(kind, column)
        ours = transform.apply(array, kind)
        theirs = CORE[text](array)
        assert from_arrow_array(result, ours) == from_arrow_array(result, theirs)

    check()


def test_a_slice_is_transformed_like_a_copy_of_it() -> None:
    array = pa.array([None if i % 5 == 2 else f"value {i}" for i in range(100)])
    for start, length in ((1, 98), (7, 8), (99, 1), (100, 0)):
        part = array.slice(start, length)
        copy = pa.array(part.to_pylist(), pa.string())
        for text in ("bucket[16]", "truncate[3]", "identity", "void"):
            transform = parse_transform(text)
            assert transform.apply(part, StringType()).to_pylist() == transform.apply(copy, StringType()).to_pylist()
