import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.types.values.wkb import wkb_to_wkt, wkt_to_wkb
from outcomes import counted_outcomes

outcomes = counted_outcomes()

TEXTS = [
    "POINT (30 10)",
    "POINT (-1.5 2e-07)",
    "POINT EMPTY",
    "POINT Z (1 2 3)",
    "POINT M (1 2 4)",
    "POINT ZM (1 2 3 4)",
    "LINESTRING (30 10, 10 30, 40 40)",
    "LINESTRING EMPTY",
    "POLYGON ((35 10, 45 45, 15 40, 10 20, 35 10), (20 30, 35 35, 30 20, 20 30))",
    "POLYGON EMPTY",
    "MULTIPOINT ((10 40), (40 30))",
    "MULTIPOINT ((10 40), EMPTY)",
    "MULTILINESTRING Z ((10 10 1, 20 20 2), (40 40 3, 30 30 4))",
    "MULTIPOLYGON (((30 20, 45 40, 10 40, 30 20)), ((15 5, 40 10, 10 20, 5 10, 15 5)))",
    "GEOMETRYCOLLECTION (POINT (40 10), LINESTRING (10 10, 20 20), GEOMETRYCOLLECTION EMPTY)",
]


@pytest.mark.spec("SVJ-16", "SVS-22")
@pytest.mark.parametrize("text", TEXTS)
def test_every_kind_of_shape_survives_its_binary(text):
    assert wkb_to_wkt(wkt_to_wkb(text)) == text


@pytest.mark.spec("SVS-22")
def test_the_binary_is_that_of_the_standard():
    assert wkt_to_wkb("POINT (30 10)").hex() == "01010000000000000000003e400000000000002440"
    line = struct.pack("<BIIdddd", 1, 2, 2, 1, 2, 3, 4)
    assert wkt_to_wkb("LINESTRING(1 2,3 4)") == line
    assert wkt_to_wkb("POINT Z (1 2 3)") == struct.pack("<BIddd", 1, 1001, 1, 2, 3)
    assert wkt_to_wkb("pointzm(1 2 3 4)") == struct.pack("<BIdddd", 1, 3001, 1, 2, 3, 4)


def test_big_endian_binary_is_read():
    assert wkb_to_wkt(struct.pack(">BIdd", 0, 1, 30, 10)) == "POINT (30 10)"
    assert wkb_to_wkt(struct.pack(">BIIdd", 0, 2, 1, 30, 10)) == "LINESTRING (30 10)"


def test_points_of_a_multipoint_need_no_parentheses():
    assert wkt_to_wkb("MULTIPOINT (1 2, 3 4)") == wkt_to_wkb("MULTIPOINT ((1 2), (3 4))")


@pytest.mark.parametrize(
    "text",
    ["", "POINT", "POINT (1)", "POINT (1 2", "POINT (1 2) x", "CIRCLE (1 2)", "POINT (1 2 3)", "POINT (a b)", "(1 2)",
     "POINT (1 2);", "LINESTRING ((1 2))", "GEOMETRYCOLLECTION (" * 50, "POINT Z (1 2)", "7"],
)  # fmt: skip
def test_what_is_no_string_of_a_shape_is_refused(text):
    with pytest.raises(InvalidArgument):
        wkt_to_wkb(text)


@given(st.sampled_from(TEXTS).map(wkt_to_wkb), st.data())
def test_a_damaged_binary_is_refused_or_read_but_never_crashes(outcomes, data, draw):
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    for broken in (damaged, data[:at], data + b"\0"):
        with outcomes.of("damaged", InvalidArgument):
            wkb_to_wkt(broken)
            assert broken is damaged


def test_a_count_that_claims_gigabytes_allocates_none():
    with pytest.raises(InvalidArgument, match="early"):
        wkb_to_wkt(struct.pack("<BII", 1, 2, 2**32 - 1))
    deep = struct.pack("<BII", 1, 7, 1) * 100_000
    with pytest.raises(InvalidArgument, match="deeper"):
        wkb_to_wkt(deep)


@pytest.mark.parametrize("code", [0, 8, 4001, 1_000_001])
def test_a_binary_has_one_of_seven_shapes_in_one_of_four_layouts(code):
    with pytest.raises(InvalidArgument, match=f"unexpected shape of code {code} "):
        wkb_to_wkt(struct.pack("<BI", 1, code) + bytes(64))
    assert wkb_to_wkt(struct.pack("<BI4d", 1, 3001, 1, 2, 3, 4)) == "POINT ZM (1 2 3 4)"
