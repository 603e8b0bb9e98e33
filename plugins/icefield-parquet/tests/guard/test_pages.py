"""The headers of pages: one whose shape is known gives the numbers that reading it field by field gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.toolkit import BytesInput
from icefield_parquet.guard import pages as module
from icefield_parquet.guard.pages import DATA, DATA_V2, DICTIONARY, pages
from parquet_thrift import I32, Struct, read_struct, varint, zigzag

BODY = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
SIZES = st.integers(0, 127) | st.integers(0, 1 << 20)
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
STRINGS = st.binary(max_size=9) | st.binary(min_size=120, max_size=300)


def header(kind, unpacked, packed, *, crc=None, values=20_000, encoding=0, nulls=None, bounds=(), levels=0):
    """A page header as writers make them."""
    found = Struct().i32(1, kind).i32(2, unpacked).i32(3, packed)
    if crc is not None:
        found.i32(4, crc)
    if kind not in BODY:
        return found.encode()
    inner, statistics = Struct().i32(1, values), Struct()
    if nulls is not None:
        statistics.i64(3, nulls)
    for number, bound in enumerate(bounds, 5):
        statistics.binary(number, bound)
    if kind == DATA:
        inner.i32(2, encoding).i32(3, 3).i32(4, 3).struct(5, statistics)
    elif kind == DATA_V2:
        inner.i32(2, 0).i32(3, values).i32(4, encoding).i32(5, levels).i32(6, 0).boolean(7, True).struct(8, statistics)
    else:
        inner.i32(2, encoding).boolean(3, False)
    return found.struct(BODY[kind], inner).encode()


HEADERS = st.builds(
    header,
    st.sampled_from([DATA, DATA, DATA_V2, DICTIONARY, 1]),
    SIZES,
    st.integers(0, 300),
    crc=st.none() | NUMBERS,
    values=NUMBERS,
    encoding=st.sampled_from([0, 7, 8]),
    nulls=st.none() | st.integers(0, 1 << 40),
    bounds=st.lists(STRINGS, max_size=2),
    levels=st.integers(0, 300),
)


def said(data, place):
    """What a header says, read field by field; where the page ends."""
    fields, end = read_struct(data, place)
    kind = fields[1]
    inner = fields.get(BODY.get(kind), {})
    encoding = inner.get(4 if kind == DATA_V2 else 2, -1)
    return (place, end - place, kind, fields[2], fields[3], inner.get(1, 0), encoding), end + fields[3]


def found(data, end=None):
    return [
        (page.place, page.header, page.kind, page.unpacked, page.packed, page.values, page.encoding)
        for page in pages(BytesInput(data), 0, len(data) if end is None else end)
    ]


@given(st.lists(HEADERS, max_size=12))
def test_each_page_is_what_its_header_says(headers):
    data = b"".join(each + bytes(read_struct(each)[0][3]) for each in headers)
    expected, place = [], 0
    while place < len(data):
        one, place = said(data, place)
        expected.append(one)
    assert found(data) == expected
    assert found(data) == expected  # of shapes that are known


KNOWN = [
    header(DATA, 160_000, 2, crc=7, nulls=300, bounds=[b"12345678", b"abc"]),
    header(DATA_V2, 130, 2, nulls=0, bounds=[b"", b"z"], levels=200),
    header(DICTIONARY, 40, 2, crc=-1, values=3),
]


@pytest.mark.parametrize("known", KNOWN, ids=["data", "data of version 2", "dictionary"])
def test_no_byte_makes_a_header_pass_for_one_of_a_shape_that_is_known(known):
    for at in range(len(known)):
        for byte in {known[at] ^ 1 << bit for bit in range(8)} | {0, 0x7F, 0x80, 0xFF}:
            changed = known[:at] + bytes([byte]) + known[at + 1 :] + b"\0\0"
            module._SHAPES.clear()
            unaided = found(changed, 1)
            module._SHAPES.clear()
            assert found(known + b"\0\0")
            assert found(changed, 1) == unaided


def test_a_header_that_the_file_ends_in_is_not_taken_for_a_known_one():
    data = header(DATA, 100, 0)
    assert len(found(data)) == 1
    assert found(data[:-1]) == []


def test_a_size_in_more_bytes_than_it_needs_is_what_pyarrow_takes_it_for():
    long = varint((1 << 33) + (5 << 1))
    data = bytes([0x15]) + zigzag(0) + bytes([0x15]) + zigzag(9) + bytes([0x15]) + long + b"\0" + bytes(5)
    assert [one[1:5] for one in found(data)] == [(len(data) - 5, 0, 9, 5)]
    longer = varint(1 << 63 | 5 << 1)
    data = data.replace(long, longer)
    assert [one[1:5] for one in found(data * 2)] == [(len(data) - 5, 0, 9, 5)] * 2


@pytest.mark.parametrize("size", [2, 3])
def test_pages_end_where_a_size_is_negative(size):
    good, bad = (header(DATA, *sizes) for sizes in ((4, 4), (-4, 4) if size == 2 else (4, -4)))
    assert len(found(good + bytes(4) + good + bytes(4))) == 2
    assert len(found(good + bytes(4) + bad + bytes(4))) == 1


def test_a_header_of_megabytes_is_read():
    data = header(DATA, 4, 4, bounds=[bytes(3 << 20), b""]) + bytes(4)
    assert [one[2:] for one in found(data)] == [(DATA, 4, 4, 20_000, 0)]


def test_a_later_field_of_one_number_counts_as_it_does_to_pyarrow():
    first = header(DATA, 4, 4)
    # The field 3 once more, its number written out behind the field 5.
    data = first[:-1] + bytes([I32]) + zigzag(3) + zigzag(6) + b"\0" + bytes(6)
    assert [one[2:5] for one in found(data * 2)] == [(DATA, 4, 6)] * 2


def test_few_shapes_are_kept():
    for size in range(module._KEPT + 9):
        kind = bytes([0x15]) + zigzag(size)
        found(kind + Struct().i32(1, 1).i32(2, 1).encode() + b"\0", 1)
    many = [header(DATA, 1, 1, bounds=[bytes(size)]) + b"\0" for size in range(99)]
    found(b"".join(many))
    assert len(module._SHAPES) <= module._KEPT
    assert max(map(len, module._SHAPES.values())) <= module._ALIKE
