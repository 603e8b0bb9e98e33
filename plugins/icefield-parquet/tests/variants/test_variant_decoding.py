import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.types import DecimalType, IntegerType, StringType, TimestampType
from icefield_parquet.variants.decoding import VariantLeaf, variant_bounds_from_bytes, variant_to_python
from outcomes import counted_outcomes

outcomes = counted_outcomes()


def metadata(names, size=1):
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    numbers = [len(names), *ends]
    return bytes([1 | (size - 1) << 6]) + b"".join(n.to_bytes(size, "little") for n in numbers) + b"".join(texts)


def primitive(kind, data=b""):
    return bytes([kind << 2]) + data


def encode(value, names, size=2, large=False):
    """A plain encoder: every name in ``names``, offsets of ``size`` bytes."""
    count_size = 4 if large else 1
    if isinstance(value, dict):
        items = [encode(item, names, size, large) for item in value.values()]
        head = bytes([2 | (size - 1) << 2 | (size - 1) << 4 | large << 6]) + len(items).to_bytes(count_size, "little")
        head += b"".join(names.index(name).to_bytes(size, "little") for name in value)
    elif isinstance(value, list):
        items = [encode(item, names, size, large) for item in value]
        head = bytes([3 | (size - 1) << 2 | large << 4]) + len(items).to_bytes(count_size, "little")
    elif value is None:
        return primitive(0)
    elif isinstance(value, bool):
        return primitive(1 if value else 2)
    elif isinstance(value, int):
        return primitive(6, struct.pack("<q", value))
    elif isinstance(value, float):
        return primitive(7, struct.pack("<d", value))
    elif len(value.encode()) < 64 and not large:
        return bytes([1 | len(value.encode()) << 2]) + value.encode()
    else:
        return primitive(16, struct.pack("<I", len(value.encode())) + value.encode())
    ends = [sum(map(len, items[:i])) for i in range(len(items) + 1)]
    return head + b"".join(end.to_bytes(size, "little") for end in ends) + b"".join(items)


NAMES = ["a", "b", "über", ""]
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=9)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner), max_leaves=12
)


@pytest.mark.spec("TYP-23")
@given(TREES, st.integers(2, 4), st.booleans())
def test_objects_arrays_and_leaves_are_read_in_every_width(tree, size, large):
    assert variant_to_python(metadata(NAMES, size), encode(tree, NAMES, size, large)) == tree


@pytest.mark.spec("TYP-23")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (primitive(3, b"\xff"), -1), (primitive(4, b"\0\x80"), -32768), (primitive(5, struct.pack("<i", 7)), 7),
        (primitive(8, b"\2" + struct.pack("<i", -128)), Decimal("-1.28")),
        (primitive(9, b"\0" + struct.pack("<q", 5)), Decimal("5")),
        (primitive(10, b"\x26" + (10**37).to_bytes(16, "little")), Decimal("0.1")),
        (primitive(11, struct.pack("<i", 1)), date(1970, 1, 2)), (primitive(14, struct.pack("<f", 0.5)), 0.5),
        (primitive(12, struct.pack("<q", 1)), datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (primitive(13, struct.pack("<q", 1)), datetime(1970, 1, 1, 0, 0, 0, 1)),
        (primitive(17, struct.pack("<q", 1)), time(0, 0, 0, 1)),
        (primitive(18, struct.pack("<q", 1)), np.datetime64(1, "ns")),
        (primitive(19, struct.pack("<q", 1)), np.datetime64(1, "ns")),
        (primitive(15, b"\2\0\0\0ab"), b"ab"), (primitive(20, bytes(15) + b"\1"), uuid.UUID(int=1)),
    ],
    ids=lambda part: repr(part)[:30],
)  # fmt: skip
def test_every_primitive_of_a_variant_is_read(data, shown):
    assert variant_to_python(metadata([]), data) == shown


@pytest.mark.spec("SVS-21")
def test_bounds_of_a_variant_are_primitives_by_path():
    names = ["$", "$['a']['b']", "$['ts']", "$['d']"]
    fields = [primitive(5, struct.pack("<i", 3)), b"\x0dxyz", primitive(13, struct.pack("<q", 9))]
    fields.append(primitive(8, b"\2" + struct.pack("<i", 1420)))
    ends = [sum(map(len, fields[:i])) for i in range(5)]
    value = bytes([2, 4, 0, 1, 2, 3, *ends]) + b"".join(fields)
    assert variant_bounds_from_bytes(metadata(names) + value) == {
        "$": VariantLeaf(IntegerType(), 3),
        "$['a']['b']": VariantLeaf(StringType(), "xyz"),
        "$['ts']": VariantLeaf(TimestampType(), 9),
        "$['d']": VariantLeaf(DecimalType(9, 2), Decimal("14.20")),
    }


@pytest.mark.spec("SVS-21")
@pytest.mark.parametrize("value", [encode([1], []), encode(1, []), encode({"a": [1]}, ["a"]), b"", b"\2"])
def test_bounds_that_are_no_object_of_primitives_are_refused(value):
    with pytest.raises(InvalidArgument):
        variant_bounds_from_bytes(metadata(["a"]) + value)


@pytest.mark.parametrize(
    ("meta", "value"),
    [
        (b"", b"\0"), (b"\2\0\0", b"\0"), (b"\1\5\0", b"\0"), (b"\1\1\0\5a", b"\0"), (b"\1\2\1\0\1a", b"\0"),
        (b"\1\1\0\1\xff", b"\0"), (b"\1\0\0", b""), (b"\1\0\0", primitive(5, b"\0")), (b"\1\0\0", primitive(63)),
        (b"\1\0\0", b"\x0dab"), (b"\1\0\0", primitive(15, b"\xff\xff\xff\xff")), (b"\1\0\0", bytes([2, 1, 0, 0, 1, 0])),
        (b"\1\0\0", bytes([3, 200])), (b"\1\0\0", b"\x05\xff"), (b"\1\0\0", primitive(8, b"\x0a" + bytes(4))),
        (b"\1\0\0", primitive(8, b"\0" + struct.pack("<i", 10**9))), (b"\1\0\0", primitive(17, b"\xff" * 8)),
    ],
    ids=repr,
)  # fmt: skip
def test_bytes_that_are_no_variant_are_refused(meta, value):
    with pytest.raises(InvalidArgument):
        variant_to_python(meta, value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (primitive(11, struct.pack("<i", 2**31 - 1)), r"Python has no date for \+5881580-07-11"),
        (primitive(11, struct.pack("<i", -(2**31))), "Python has no date for -5877641-06-23"),
        (primitive(13, struct.pack("<q", -(2**63))), "microseconds from 1970"),
        (primitive(19, struct.pack("<q", -(2**63))), "numpy means null"),
    ],
    ids=repr,
)
def test_a_day_that_python_lacks_is_a_typed_error(data, words):
    with pytest.raises(InvalidArgument, match=words):
        variant_to_python(metadata([]), data)


def test_deep_and_self_referring_variants_are_refused():
    deep = primitive(0)
    for _ in range(101):
        deep = b"\x0f\1" + bytes(4) + len(deep).to_bytes(4, "little") + deep
    with pytest.raises(InvalidArgument, match="deeper"):
        variant_to_python(b"\1\0\0", deep)
    doubling = primitive(0)
    for _ in range(60):
        doubling = bytes([3, 2, 0, 0, 0]) + doubling
    with pytest.raises(InvalidArgument, match="itself"):
        variant_to_python(b"\1\0\0", doubling)


@given(TREES, st.data())
def test_a_damaged_variant_is_refused_or_read_but_never_crashes(outcomes, tree, data):
    value = encode(tree, NAMES)
    at = data.draw(st.integers(0, len(value) - 1))
    broken = value[:at] + data.draw(st.binary(max_size=2)) + value[at + 1 :]
    with outcomes.of("damaged", InvalidArgument):
        variant_to_python(metadata(NAMES), broken)


def test_another_implementation_reads_the_same_variants():
    peer = pytest.importorskip("pyspark.sql.variant_utils").VariantUtils
    tree = {"a": [1, None, True, {"b": "x" * 70}], "b": {"über": 2.5}, "": "short"}
    names = sorted(NAMES)
    ordered = dict(sorted(tree.items()))
    value, meta = encode(ordered, names, 4, True), metadata(names, 4)
    assert peer.to_python(value, meta) == variant_to_python(meta, value) == tree
