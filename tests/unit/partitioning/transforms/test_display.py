"""The strings of partition values for people, against PyIceberg's."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyiceberg.transforms as peer_transforms
import pyiceberg.types as peer_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)


@given(st.integers(-700_000, 2_900_000))
def test_times_read_as_pyiceberg_writes_them(days: int) -> None:
    for ours, theirs, kind, value in (
        (DayTransform(), peer_transforms.DayTransform(), DateType(), days),
        (HourTransform(), peer_transforms.HourTransform(), IntegerType(), days),
        (MonthTransform(), peer_transforms.MonthTransform(), IntegerType(), days // 31),
        (YearTransform(), peer_transforms.YearTransform(), IntegerType(), days // 366),
    ):
        assert ours.to_display(kind, value) == theirs.to_human_string(peer_types.TimestampType(), value)


IDENTITIES: list[tuple[IcebergType, peer_types.PrimitiveType, Any]] = [
    (BooleanType(), peer_types.BooleanType(), True),
    (IntegerType(), peer_types.IntegerType(), -7),
    (DateType(), peer_types.DateType(), -1),
    (TimeType(), peer_types.TimeType(), 81_068_000_001),
    (TimeType(), peer_types.TimeType(), 81_068_000_000),
    (TimestampType(), peer_types.TimestampType(), -1),
    (TimestampType(), peer_types.TimestampType(), 1510871468000000),
    (TimestamptzType(), peer_types.TimestamptzType(), 1510871468000001),
    (StringType(), peer_types.StringType(), "a/b=ü"),
    (BinaryType(), peer_types.BinaryType(), b"\x00\xff\x10"),
    (DecimalType(9, 2), peer_types.DecimalType(9, 2), Decimal("-14.20")),
]


@pytest.mark.parametrize(("kind", "peer", "value"), IDENTITIES, ids=str)
def test_values_read_as_pyiceberg_writes_them(kind: IcebergType, peer: Any, value: Any) -> None:
    assert IdentityTransform().to_display(kind, value) == peer_transforms.IdentityTransform().to_human_string(
        peer, value
    )


def test_what_pyiceberg_cannot_write_reads_well_too() -> None:
    identity = IdentityTransform()
    assert identity.to_display(UUIDType(), bytes(range(16))) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert identity.to_display(TimestampNanoType(), 1510871468000000001) == "2017-11-16T22:31:08.000000001"
    assert identity.to_display(TimestamptzNanoType(), -1_000_000_000) == "1969-12-31T23:59:59+00:00"
    assert identity.to_display(DateType(), 2932897) == "10000-01-01"
    assert identity.to_display(DecimalType(38, 10), Decimal("0E-10")) == "0.0000000000"
    assert BucketTransform(4).to_display(IntegerType(), 3) == "3"
    assert TruncateTransform(2).to_display(BinaryType(), b"ab") == "YWI="


@pytest.mark.parametrize(
    "transform", [IdentityTransform(), BucketTransform(3), DayTransform(), YearTransform(), VoidTransform()], ids=str
)
def test_null_reads_null(transform: Any) -> None:
    assert transform.to_display(IntegerType(), None) == "null"
