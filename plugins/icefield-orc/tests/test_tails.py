"""Tails that claim very much, or hold very many small things: a typed error, soon, and little memory."""

import io
import zlib

import pyarrow as pa
import pyarrow.orc as po
import pytest
from bounded import bounded
from icefield.errors import IcefieldError, UnsupportedFeature
from icefield.toolkit import BytesInput
from icefield_orc.compression import NONE, ZLIB, ZSTD, pack
from icefield_orc.protobuf import write_bytes, write_integer
from icefield_orc.schema import TypeKind, read_tree
from icefield_orc.tail import TypeEntry, read_stripe_statistics, read_tail
from orc_files import read, reader_of

MOST = 2**63
BLOCK = 256 << 10


def postscript(footer, *, codec=NONE, block=BLOCK, statistics=0):
    fields = [(1, footer), (2, codec), (3, block), (5, statistics), (6, 1)]
    message = b"".join(write_integer(number, value) for number, value in fields) + write_bytes(8000, b"ORC")
    return message + bytes([len(message)])


def file(footer, *, codec=NONE, claimed=None, **more):
    packed = footer if codec == NONE else pack(footer, codec, BLOCK)
    return b"ORC" + packed + postscript(len(packed) if claimed is None else claimed, codec=codec, **more)


def type_of(kind, children=(), names=()):
    parts = [write_integer(1, kind), *(write_integer(2, child) for child in children)]
    return write_bytes(4, b"".join([*parts, *(write_bytes(3, name) for name in names)]))


def wide(columns):
    names = [b"c%d" % number for number in range(columns)]
    return type_of(TypeKind.STRUCT, range(1, columns + 1), names) + type_of(TypeKind.LONG) * columns


def deep(levels):
    return b"".join(type_of(TypeKind.LIST, [level + 1]) for level in range(levels)) + type_of(TypeKind.LONG)


def stripe(start=3, index=0, data=10, footer=10, rows=5):
    fields = enumerate((start, index, data, footer, rows), 1)
    return write_bytes(3, b"".join(write_integer(number, value) for number, value in fields)) + write_integer(6, rows)


ONE = wide(1)
PAIR = write_bytes(5, write_bytes(1, b"k") + write_bytes(2, b"v"))

HOSTILE = {
    "a footer of 4 GiB": lambda: file(ONE, claimed=2**32),
    "a footer beyond every number": lambda: file(ONE, claimed=MOST),
    "stripe statistics beyond every number": lambda: file(ONE, statistics=MOST),
    "blocks of 2 GiB": lambda: file(ONE, codec=ZLIB, block=2**31),
    "a footer that inflates to 2 GiB": lambda: b"ORC" + BOMB + postscript(len(BOMB), codec=ZLIB, block=1 << 23),
    "very many columns": lambda: file(wide(100_100)),
    "nearly a hundred thousand levels": lambda: file(type_of(TypeKind.STRUCT, [1], [b"a"]) + deep(99_000)),
    "a million types that no column has": lambda: file(ONE + type_of(TypeKind.LONG) * 1_000_000),
    "a type with very many children": lambda: file(
        write_bytes(4, write_integer(1, TypeKind.STRUCT) + write_integer(2, 1) * 200_000)
    ),
    "a type with sixteen million names": lambda: file(write_bytes(4, write_bytes(3, b"") * (16 << 20)), codec=ZLIB),
    "a type with sixteen million packed children": lambda: file(
        write_bytes(4, write_integer(1, TypeKind.STRUCT) + write_bytes(2, bytes(16 << 20))), codec=ZLIB
    ),
    "a pair of sixteen million fields": lambda: file(write_bytes(5, write_bytes(3, b"") * (16 << 20)), codec=ZLIB),
    "a stripe of sixteen million fields": lambda: file(write_bytes(3, write_bytes(9, b"") * (16 << 20)), codec=ZLIB),
    "a thousand kinds of fields": lambda: file(
        b"".join(write_integer(number, 0) for number in range(20, 1_020)) * 10_000, codec=ZLIB
    ),
    "a hundred thousand levels": lambda: file(type_of(TypeKind.STRUCT, [1], [b"a"]) + deep(100_000)),
    "a type that is its own child": lambda: file(type_of(TypeKind.STRUCT, [0], [b"a"])),
    "a million stripes": lambda: file(ONE + write_bytes(3, b"") * 1_000_000),
    "a million pairs": lambda: file(ONE + PAIR * 1_000_000),
    "a million statistics": lambda: file(ONE + write_bytes(7, b"") * 1_000_000),
    "a million fields of no use": lambda: file(ONE + write_integer(1, 3) * 1_000_000),
    "a million fields that are not known": lambda: file(
        ONE + b"".join(write_integer(number, 0) for number in range(100, 1_000_100))
    ),
    "a stripe of 2 GiB": lambda: file(ONE + stripe(data=2**31)),
    "a stripe of very many rows": lambda: file(ONE + stripe(rows=2**62)),
    "a stripe with a footer of 2 GiB": lambda: file(ONE + stripe(footer=2**31)),
    "a stripe behind the file": lambda: file(ONE + stripe(start=2**62)),
}


def bomb():
    """Blocks of eight MiB each, in eight KiB."""
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(bytes(1 << 23)) + packer.flush()
    return (len(block) << 1).to_bytes(3, "little") + block


BOMB = bomb() * 256


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_tail_that_claims_very_much_is_refused_soon(name):
    data = HOSTILE[name]()
    with bounded(), pytest.raises(IcefieldError, match="memory://orc/file"):
        read(data)


def test_rows_without_columns_are_no_more_than_a_file_can_hold():
    with bounded(), pytest.raises(IcefieldError, match=r"memory://orc/file.* claim to be"):
        read(file(ONE + stripe(data=0, footer=0, rows=2**62)), columns=pa.schema([]))


EMPTY_STRIPE = write_bytes(3, write_integer(1, 3) + b"".join(write_integer(number, 0) for number in range(2, 6)))


@pytest.mark.parametrize(
    ("columns", "statistics", "known"),
    [
        (2_000, lambda: write_bytes(1, write_bytes(1, write_integer(1, 3)) * 2_001) * 5_000, 0),
        (10, lambda: write_bytes(1, write_bytes(2, b"") * 5_000_000) + write_bytes(1, b"") * 4_999, 5_000),
        (10, lambda: write_bytes(2, b"") * 5_000_000, 0),
    ],
    ids=["of every column", "fields that no column has", "fields that no stripe has"],
)
def test_very_many_stripe_statistics_are_passed_over_soon(columns, statistics, known):
    parts = [pack(part, ZLIB, BLOCK) for part in (statistics(), wide(columns) + EMPTY_STRIPE * 5_000)]
    data = b"ORC" + b"".join(parts) + postscript(len(parts[1]), codec=ZLIB, statistics=len(parts[0]))
    source = BytesInput(data)
    tail = read_tail(source, len(data))
    with bounded():
        assert len(read_stripe_statistics(source, tail)) == known


def test_a_thousand_columns_are_read_in_bounded_time():
    names = [f"c{number}" for number in range(1_000)]
    sink = io.BytesIO()
    po.write_table(pa.table({name: pa.array([1], pa.int64()) for name in names}), sink)
    with bounded():
        assert read(sink.getvalue()).num_columns == len(names)
    with bounded(), reader_of(sink.getvalue()) as reader:
        assert reader.metrics().record_count == 1


@pytest.mark.parametrize("codec", [NONE, ZLIB, ZSTD])
def test_a_file_with_encrypted_columns_is_refused(codec):
    sink = io.BytesIO()
    po.write_table(pa.table({"a": [1, 2]}), sink)
    data = sink.getvalue()
    assert read(data).num_rows == 2
    length = data[-1]
    message = data[-1 - length : -1]
    assert message[0] == 8  # the length of the footer comes first
    footer = reader_of(data)._tail.postscript.footer_length
    start = len(data) - 1 - length - footer
    mask = write_bytes(10, write_bytes(1, write_bytes(1, b"nullify") + write_integer(3, 1)))
    plain = data[start : start + footer] + mask
    packed = plain if codec == NONE else pack(plain, codec, BLOCK)
    with pytest.raises(UnsupportedFeature, match=r"memory://orc/file.* encrypted"):
        read(data[:start] + packed + postscript(len(packed), codec=codec))


def test_a_name_that_would_stand_in_very_many_paths_is_refused():
    count, name = 2_000, "x" * (1 << 20)
    leaf = TypeEntry(TypeKind.INT, (), (), 0, 0, {})
    inner = TypeEntry(TypeKind.STRUCT, tuple(range(2, 2 + count)), tuple(map(str, range(count))), 0, 0, {})
    types = [TypeEntry(TypeKind.STRUCT, (1,), (name,), 0, 0, {}), inner, *[leaf] * count]
    with bounded(seconds=5), pytest.raises(UnsupportedFeature, match="too long"):
        read_tree(types, {})
