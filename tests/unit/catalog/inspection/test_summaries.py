"""Bounds of partition fields in readable form, converted by whole columns and one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from icefield.catalog.inspection.manifests import _shown
from icefield.partitioning.transforms import parse_transform
from icefield.types import NestedField, parse_type
from icefield.types.values import value_from_bytes, value_to_bytes

DAYS = [0, 1, 19_000, -1, -719_162, 2_932_896]
FAR_DAYS = [0, 2_932_897]


@pytest.mark.parametrize(
    ("source", "transform", "values"),
    [
        ("string", "identity", ["a", "", "é", "a/b"]),
        ("string", "truncate[2]", ["ab", "x"]),
        ("int", "identity", [0, -7, 2**31 - 1]),
        ("long", "identity", [0, -7, 2**63 - 1]),
        ("long", "bucket[8]", [0, 7]),
        ("date", "identity", DAYS),
        ("date", "identity", FAR_DAYS),
        ("date", "day", DAYS),
        ("date", "day", FAR_DAYS),
        ("date", "month", [0, -1, 600]),
        ("timestamp", "year", [0, -1, 54]),
        ("timestamp", "hour", [0, -1, 480_000]),
        ("timestamp", "identity", [0, 1, 1_700_000_000_000_001]),
        ("timestamptz", "identity", [0, -1]),
        ("time", "identity", [0, 86_399_999_999]),
        ("boolean", "identity", [True, False]),
        ("double", "identity", [0.5, -0.0, float("inf")]),
        ("float", "identity", [0.5, -2.0]),
        ("decimal(9, 2)", "identity", [Decimal("1.50"), Decimal("-0.01")]),
        ("binary", "identity", [b"\x00\xff", b""]),
        ("fixed[3]", "identity", [b"abc"]),
        ("uuid", "identity", [UUID(int=7).bytes]),
    ],
)
def test_a_bound_is_shown_as_its_transform_shows_it(source: str, transform: str, values: list[Any]) -> None:
    made = parse_transform(transform)
    kind = made.result_type(parse_type(source))
    encoded = [None, *(value_to_bytes(kind, value) for value in values)]
    found = _shown(pa.array(encoded, pa.binary()), NestedField(1000, "p", kind), made)
    expected = [None if one is None else made.to_display(kind, value_from_bytes(kind, one)) for one in encoded]
    assert found.to_pylist() == expected
