"""Single values at the edges of their ranges and layouts, in bytes and in JSON.

The expected bytes and strings are written out: little-endian IEEE 754 and two's complement, UTF-8, ISO 8601.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from format_strategies import same
from icefield.errors import InvalidArgument
from icefield.types import IcebergType, parse_type
from icefield.types.values import (
    from_arrow_array,
    from_bytes_array,
    to_arrow_array,
    to_internal,
    value_from_bytes,
    value_from_json,
    value_to_bytes,
    value_to_json,
)
from icefield_maintenance.theta.binary_values import to_bytes_array

_FRACTIONS = [
    ("float", "-0.0", "00000080", -0.0),
    ("float", 3.4028234663852886e38, "ffff7f7f", 3.4028234663852886e38),
    ("float", 1.401298464324817e-45, "01000000", 1.401298464324817e-45),
    ("double", "-0.0", "0000000000000080", -0.0),
    ("double", 1.7976931348623157e308, "ffffffffffffef7f", 1.7976931348623157e308),
    ("double", 5e-324, "0100000000000000", 5e-324),
]
_NUMBERS = [
    ("int", 2**31 - 1, "ffffff7f", 2**31 - 1),
    ("int", -(2**31), "00000080", -(2**31)),
    ("int", 255, "ff000000", 255),
    ("int", 256, "00010000", 256),
    ("long", 2**63 - 1, "ffffffffffffff7f", 2**63 - 1),
    ("long", -(2**63), "0000000000000080", -(2**63)),
    ("long", 2**31, "0000008000000000", 2**31),
    ("long", -(2**31) - 1, "ffffff7fffffffff", -(2**31) - 1),
]
_TIMES = [
    ("date", -1, "ffffffff", "1969-12-31"),
    ("date", "0001-01-01", "c606f5ff", "0001-01-01"),
    ("date", "9999-12-31", "a0c02c00", "9999-12-31"),
    ("date", "2000-02-29", "082b0000", "2000-02-29"),
    ("time", 0, "0000000000000000", "00:00:00.000000"),
    ("time", 1, "0100000000000000", "00:00:00.000001"),
    ("time", 86_399_999_999, "ff5fd71d14000000", "23:59:59.999999"),
    ("timestamp", -1, "ffffffffffffffff", "1969-12-31T23:59:59.999999"),
    ("timestamp", "0001-01-01T00:00:00", "0040d400014023ff", "0001-01-01T00:00:00.000000"),
    ("timestamp", "9999-12-31T23:59:59.999999", "ff5f73cc0c448403", "9999-12-31T23:59:59.999999"),
    ("timestamptz", -1, "ffffffffffffffff", "1969-12-31T23:59:59.999999+00:00"),
    ("timestamp_ns", -1, "ffffffffffffffff", "1969-12-31T23:59:59.999999999"),
    ("timestamp_ns", 2**63 - 1, "ffffffffffffff7f", "2262-04-11T23:47:16.854775807"),
    ("timestamp_ns", -(2**63), "0000000000000080", "1677-09-21T00:12:43.145224192"),
    ("timestamptz_ns", 2**63 - 1, "ffffffffffffff7f", "2262-04-11T23:47:16.854775807+00:00"),
]
# Each step to another number of bytes, for both signs.
_DECIMALS = [
    ("decimal(38,0)", 127, "7f", "127"),
    ("decimal(38,0)", 128, "0080", "128"),
    ("decimal(38,0)", -128, "80", "-128"),
    ("decimal(38,0)", -129, "ff7f", "-129"),
    ("decimal(38,0)", 32_767, "7fff", "32767"),
    ("decimal(38,0)", 32_768, "008000", "32768"),
    ("decimal(38,0)", -32_768, "8000", "-32768"),
    ("decimal(38,0)", -32_769, "ff7fff", "-32769"),
    ("decimal(38,0)", 2**63 - 1, "7fffffffffffffff", "9223372036854775807"),
    ("decimal(38,0)", 2**63, "008000000000000000", "9223372036854775808"),
    ("decimal(38,0)", -(2**63), "8000000000000000", "-9223372036854775808"),
    ("decimal(38,0)", 10**38 - 1, "4b3b4ca85a86c47a098a223fffffffff", "9" * 38),
    ("decimal(1,0)", 9, "09", "9"),
    ("decimal(9,9)", "0.000000001", "01", "0.000000001"),
    ("decimal(9,9)", "-0.999999999", "c4653601", "-0.999999999"),
]
# The first and the last character of each length in UTF-8, and the characters around the surrogates.
_TEXTS = [
    ("string", text, data, text)
    for text, data in (
        ("", ""),
        ("\0", "00"),
        ("\x7f", "7f"),
        ("\x80", "c280"),
        ("\u07ff", "dfbf"),
        ("\u0800", "e0a080"),
        ("\ud7ff", "ed9fbf"),
        ("\ue000", "ee8080"),
        ("\uffff", "efbfbf"),
        ("\U00010000", "f0908080"),
        ("\U0010ffff", "f48fbfbf"),
    )
]
_BYTES = [
    ("boolean", False, "00", False),
    ("boolean", True, "01", True),
    ("uuid", bytes(16), "00" * 16, "00000000-0000-0000-0000-000000000000"),
    ("uuid", b"\xff" * 16, "ff" * 16, "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    ("fixed[1]", b"\x80", "80", "80"),
    ("binary", b"", "", ""),
    ("binary", b"\0\x7f\x80\xff", "007f80ff", "007f80ff"),
]
EDGES = [*_NUMBERS, *_FRACTIONS, *_TIMES, *_DECIMALS, *_TEXTS, *_BYTES]


def value_of(kind: IcebergType, value: Any) -> Any:
    return to_internal(kind, Decimal(value) if str(kind).startswith("decimal") else value)


@pytest.mark.spec("SVS-01", "SVS-15", "SVJ-01", "SVJ-04")
@pytest.mark.parametrize(("type_", "value", "data", "json"), EDGES, ids=lambda part: ascii(part)[:40])
def test_a_value_at_an_edge_has_its_bytes_and_its_json(type_: str, value: Any, data: str, json: Any) -> None:
    kind = parse_type(type_)
    internal, stored = value_of(kind, value), bytes.fromhex(data)
    assert value_to_bytes(kind, internal) == stored
    assert same(value_from_bytes(kind, stored), internal)
    assert to_bytes_array(kind, to_arrow_array(kind, [internal, None])).to_pylist() == [stored, None]
    [found, nothing] = from_arrow_array(kind, from_bytes_array(kind, pa.array([stored, None], pa.binary())))
    assert same(found, internal)
    assert nothing is None
    assert same(value_to_json(kind, internal), json)
    assert same(value_from_json(kind, json), internal)


@pytest.mark.spec("SVS-05", "SVJ-03")
@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        ("float", float("inf"), "0000807f"),
        ("float", float("-inf"), "000080ff"),
        ("float", float("nan"), "0000c07f"),
        ("double", float("inf"), "000000000000f07f"),
        ("double", float("-inf"), "000000000000f0ff"),
        ("double", float("nan"), "000000000000f87f"),
    ],
)
def test_values_without_json_have_bytes(type_: str, value: float, data: str) -> None:
    kind = parse_type(type_)
    assert value_to_bytes(kind, value).hex() == data
    assert same(value_from_bytes(kind, bytes.fromhex(data)), value)


@pytest.mark.spec("SVS-19", "SVJ-18")
@pytest.mark.parametrize(
    ("type_", "json"),
    [
        ("int", 2**31), ("int", -(2**31) - 1), ("long", 2**63), ("long", -(2**63) - 1), ("float", 3.5e38),
        ("date", "2000-02-30"), ("date", "1900-02-29"), ("date", "2000-13-01"), ("date", "2000-00-01"),
        ("time", "24:00:00.000000"), ("time", "23:60:00.000000"), ("time", "23:59:60.000000"),
        ("timestamp_ns", "2262-04-11T23:47:16.854775808"), ("timestamp_ns", "1677-09-21T00:12:43.145224191"),
        ("decimal(9,2)", "10000000.00"), ("decimal(9,2)", "0.001"), ("decimal(38,0)", "1" + "0" * 38),
        ("uuid", "ffffffff-ffff-ffff-ffff-fffffffffff"), ("fixed[1]", ""), ("fixed[1]", "0000"), ("binary", "0"),
    ],
)  # fmt: skip
def test_json_one_step_beyond_an_edge_is_refused(type_: str, json: Any) -> None:
    with pytest.raises(InvalidArgument):
        value_from_json(parse_type(type_), json)
