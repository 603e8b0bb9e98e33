"""Footers that claim very much, or hold very many small things: a typed error, soon, and little memory."""

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import bounded
from icefield.errors import IcefieldError, UnsupportedFeature
from parquet_files import read, reader_of
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint

VERSION = b"\x15\x02"
LIST = 9
MOST = 2**31 - 1


def listed(field, count, data=b"", kind=STRUCT):
    """A list with a claimed number of items, as the field that is so many numbers after the one before."""
    return bytes([field << 4 | LIST, 0xF0 | kind]) + varint(count) + data


def file(footer, length=None):
    claimed = len(footer) if length is None else length
    return b"PAR1" + bytes(10) + footer + struct.pack("<I", claimed) + b"PAR1"


def column(number, **more):
    return Struct().i32(1, 2).i32(3, 0).text(4, f"c{number}").i32(9, number + 1).encode()


def schema(*elements):
    return VERSION + listed(1, len(elements), b"".join(elements)) + b"\x16\0"


ROOT = Struct().text(4, "schema").i32(5, 1).encode()
ONE = schema(ROOT, column(0))
PAIR = Struct().text(1, "k").text(2, "v").encode()


def claimed(rows=5, values=5, unpacked=10, packed=10, place=4):
    """A file of one column chunk whose description says that."""
    chunk = Struct().i32(1, 2).list(2, I32, [0]).list(3, BINARY, [b"c0"]).i32(4, 0).i64(5, values)
    chunk.i64(6, unpacked).i64(7, packed).i64(9, place)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, 10).i64(3, rows).encode()
    return file(VERSION + listed(1, 2, ROOT + column(0)) + b"\x16" + signed(rows) + listed(1, 1, group) + b"\0")


def signed(value):
    return varint((value << 1) ^ (value >> 63))


def wide(columns):
    root = Struct().text(4, "schema").i32(5, columns).encode()
    return file(schema(root, *map(column, range(columns))) + listed(1, 0) + b"\0")


def deep(levels):
    inside = Struct().i32(3, 0).text(4, "a").i32(5, 1).encode()
    return file(schema(ROOT, *[inside] * levels, column(0)) + listed(1, 0) + b"\0")


HOSTILE = {
    "a footer of 4 GiB": lambda: file(VERSION, 2**32 - 1),
    "a schema of very many elements": lambda: file(VERSION + listed(1, MOST, bytes(100))),
    "a schema of a million elements of no byte": lambda: file(VERSION + listed(1, 1 << 20, bytes(1 << 20)) + b"\0"),
    "16 million row groups of no byte": lambda: file(ONE + listed(1, 1 << 24, bytes(1 << 24)) + b"\0"),
    "4 million pairs": lambda: file(ONE + listed(1, 0) + listed(1, 1 << 22, PAIR * (1 << 22)) + b"\0"),
    "a map without end in an unknown field": lambda: file(ONE + listed(1, 0) + b"\x6b" + varint(MOST) + b"\x22\0"),
    "a million columns": lambda: file(
        VERSION + listed(1, 1_000_001, Struct().text(4, "s").i32(5, 1_000_000).encode() + column(0) * 1_000_000) + b"\0"
    ),
    "a thousand levels": lambda: deep(1_000),
    "a hundred thousand levels": lambda: deep(90_000),
    "children without number": lambda: file(
        schema(Struct().text(4, "schema").i32(5, -1).encode(), column(0)) + listed(1, 0) + b"\0"
    ),
    "more children than there are": lambda: file(
        schema(Struct().text(4, "schema").i32(5, MOST).encode(), column(0)) + listed(1, 0) + b"\0"
    ),
    "less than no value": lambda: claimed(values=-1),
    "less than no row": lambda: claimed(rows=-5),
    "more values than there can be": lambda: claimed(values=2**62, rows=2**62),
    "the most rows": lambda: claimed(values=2**63 - 1, rows=2**63 - 1),
    "less than no byte": lambda: claimed(packed=-1),
    "more bytes than there are": lambda: claimed(packed=2**62),
    "pages before the file": lambda: claimed(place=-5),
    "pages behind the file": lambda: claimed(place=2**62),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_footer_that_claims_very_much_is_refused_soon(name):
    data = HOSTILE[name]()
    with bounded(), pytest.raises(IcefieldError, match="memory://parquet/file"):
        read(data)


def test_a_schema_of_many_levels_is_refused_before_pyarrow_reads_it():
    with pytest.raises(IcefieldError, match="more than 400 levels"):
        read(deep(401))


@pytest.mark.parametrize("rows", [2**45, 2**62])
def test_rows_without_columns_are_no_more_than_a_file_can_hold(rows):
    with bounded(), pytest.raises(IcefieldError, match=r"memory://parquet/file.* claim to be"):
        read(claimed(values=rows, rows=rows), columns=pa.schema([]))


def test_five_thousand_columns_are_read_in_bounded_time():
    columns = 5_000
    table = wide(columns)
    with bounded():
        assert read(table).num_columns == columns
        with reader_of(table) as reader:
            assert reader.metrics().record_count == 0


def test_columns_that_are_encrypted_below_a_plain_footer_are_refused():
    encryption = pytest.importorskip("pyarrow.parquet.encryption")
    sink = pa.BufferOutputStream()

    class Keys(encryption.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return key

        def unwrap_key(self, key, _):
            return key

    factory = encryption.CryptoFactory(Keys)
    for plain_footer in (True, False):
        sink = pa.BufferOutputStream()
        settings = encryption.EncryptionConfiguration(
            footer_key="k", column_keys={"c": ["a"]}, plaintext_footer=plain_footer
        )
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
        with pq.ParquetWriter(sink, pa.schema([("a", "int64")]), encryption_properties=properties) as writer:
            writer.write_table(pa.table({"a": [1, 2]}))
        with pytest.raises(UnsupportedFeature, match=r"memory://parquet/file.* encrypted"):
            read(sink.getvalue().to_pybytes())
