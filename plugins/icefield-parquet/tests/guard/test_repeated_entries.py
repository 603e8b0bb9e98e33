"""Strings of a megabyte that a page of a few bytes repeats, in files made by hand: few rows at once, and all."""

import io
import struct

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded
from icefield.abc import ReadRequest
from icefield.toolkit import as_input_file
from icefield_parquet.parquet_format import ParquetFormat
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint

LONG = 1 << 20
UNCOMPRESSED, SNAPPY, ZSTD, LZ4_RAW = 0, 1, 6, 7
CODECS = {SNAPPY: "snappy", ZSTD: "zstd", LZ4_RAW: "lz4_raw"}
NUMBERS = 8


def plain(*words):
    return b"".join(struct.pack("<I", len(word)) + word for word in words)


def page(data, codec, *, entries=0, values=0, encoding=NUMBERS):
    packed = pa.compress(data, CODECS[codec], asbytes=True) if codec in CODECS else data
    header = Struct().i32(1, 2 if entries else 0).i32(2, len(data)).i32(3, len(packed))
    if entries:
        return header.struct(7, Struct().i32(1, entries).i32(2, 0)).encode() + packed
    return header.struct(5, Struct().i32(1, values).i32(2, encoding).i32(3, 3).i32(4, 3)).encode() + packed


def numbers(number, count):
    """The same number of an entry, so many times."""
    return b"\1" + varint(count << 1) + bytes([number])


def file(pages, rows, codec=UNCOMPRESSED, *, announced=True):
    """A column of strings whose first page is a dictionary, which the footer may announce."""
    body = b"PAR1" + b"".join(pages)
    size = len(body) - 4
    chunk = Struct().i32(1, 6).list(2, I32, [0, 3, 8]).list(3, BINARY, [b"t"]).i32(4, codec).i64(5, rows)
    chunk.i64(6, max(size, LONG + 64)).i64(7, size).i64(9, 4 + len(pages[0]) if announced else 4)
    if announced:
        chunk.i64(11, 4)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, rows)
    text = Struct().i32(1, 6).i32(3, 0).text(4, "t").i32(6, 0).i32(9, 1)
    elements = [Struct().text(4, "schema").i32(5, 1), text]
    footer = Struct().i32(1, 1).list(2, STRUCT, elements).i64(3, rows).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def repeated(rows, codec=UNCOMPRESSED, *, more=(), announced=True):
    """A long string and a short one; a hundred rows have the short one, ``rows`` the long one, then some others."""
    pages = [
        page(plain(b"x" * LONG, b"short"), codec, entries=2),
        page(numbers(1, 100), codec, values=100),
        page(numbers(0, rows), codec, values=rows),
        *([page(plain(*more), codec, values=len(more), encoding=0)] if more else []),
    ]
    return file(pages, 100 + rows + len(more), codec, announced=announced)


def batches(data, *, far):
    source = as_input_file(io.BytesIO(data), is_remote=far)
    with ParquetFormat().open_reader(source, "memory://parquet/file") as reader:
        yield from reader.read(ReadRequest(reader.schema))


FAR = pytest.mark.parametrize("far", [False, True], ids=["near", "far"])


@FAR
@pytest.mark.parametrize("rows", [20_000, 1_000_000])
@pytest.mark.parametrize("more", [(), (b"new",)], ids=["all in the dictionary", "one beside it"])
@pytest.mark.parametrize("announced", [True, False])
def test_a_long_text_that_a_few_bytes_repeat_comes_a_few_rows_at_a_time(rows, more, announced, far):
    data, seen = repeated(rows, more=more, announced=announced), 0
    with bounded(seconds=3, megabytes=800):
        for batch in batches(data, far=far):
            lengths = pc.binary_length(batch.column("t")).to_pylist()
            assert lengths == ([5] * 100 + [LONG] * rows)[seen : seen + len(lengths)]
            seen += len(lengths)
            if seen > 300:
                return
    raise AssertionError("fewer rows than there are")


@FAR
@pytest.mark.parametrize("codec", [UNCOMPRESSED, SNAPPY, ZSTD, LZ4_RAW])
def test_all_rows_come_once(codec, far):
    data = repeated(1_500, codec, more=(b"new", b"newer"))
    lengths = [length for batch in batches(data, far=far) for length in pc.binary_length(batch.column("t")).to_pylist()]
    assert lengths == [5] * 100 + [LONG] * 1_500 + [3, 5]
