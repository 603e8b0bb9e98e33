"""Pages that inflate to gigabytes, in files made by hand: a typed error, soon, and little memory."""

import io
import struct
import tracemalloc
import zlib

import pyarrow as pa
import pytest
from bounded import bounded
from icefield.abc import ReadRequest
from icefield.errors import IcefieldError
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import as_input_file
from icefield.types import NestedField
from icefield_parquet.parquet_format import ParquetFormat
from parquet_files import write
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint, zigzag

INT64, BYTES = 2, 6
GZIP, ZSTD = 2, 6
HUGE = 256 << 20
PLAIN, NUMBERS = 0, 8


def zeros(size, codec=ZSTD):
    """That many bytes, the first four of which say how long the string behind them is."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31) if codec == GZIP else None
    if packer is None:
        return pa.compress(struct.pack("<I", size - 4) + bytes(size - 4), "zstd", asbytes=True)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


def page(values, data, claimed, *, dictionary=False, encoding=PLAIN):
    header = Struct().i32(1, 2 if dictionary else 0).i32(2, claimed).i32(3, len(data))
    if dictionary:
        return header.struct(7, Struct().i32(1, values).i32(2, PLAIN)).encode() + data
    return header.struct(5, Struct().i32(1, values).i32(2, encoding).i32(3, 3).i32(4, 3)).encode() + data


def file(*pages, rows, kind=INT64, codec=ZSTD, claimed=None, dictionary=False):
    """One column of one row group."""
    body = b"PAR1" + b"".join(pages)
    size = len(body) - 4
    chunk = Struct().i32(1, kind).list(2, I32, [0, 3, 8]).list(3, BINARY, [b"l"]).i32(4, codec).i64(5, rows)
    chunk.i64(6, size if claimed is None else claimed).i64(7, size)
    chunk.i64(9, 4 + len(pages[0]) if dictionary else 4)
    if dictionary:
        chunk.i64(11, 4)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, rows)
    elements = [Struct().text(4, "schema").i32(5, 1), Struct().i32(1, kind).i32(3, 0).text(4, "l").i32(9, 1)]
    footer = Struct().i32(1, 2).list(2, STRUCT, elements).i64(3, rows).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def rows_of(data, *, far):
    source = as_input_file(io.BytesIO(data), is_remote=far)
    with ParquetFormat().open_reader(source, "memory://parquet/file") as reader:
        return sum(batch.num_rows for batch in reader.read(ReadRequest(reader.schema)))


@pytest.fixture(scope="module")
def bombs():
    """Files by what they do."""
    packed, gzipped = zeros(HUGE), zeros(HUGE, GZIP)
    medium, small = 32 << 20, pa.compress(b"\1\0", "zstd", asbytes=True)
    text = zeros(medium)
    more = varint((1 << 34) + (len(zeros(12)) << 1))
    return {
        "a page of few values": file(page(9, packed, HUGE), rows=9),
        "a page of many values": file(page(HUGE // 8, packed, HUGE), rows=HUGE // 8, claimed=HUGE),
        "gzip": file(page(9, gzipped, HUGE), rows=9, codec=GZIP),
        "a dictionary": file(
            page(HUGE // 8, packed, HUGE, dictionary=True),
            page(9, small, 2, encoding=NUMBERS),
            rows=9,
            dictionary=True,
        ),
        "a page behind one whose size has more than 32 bits": file(
            page(1, zeros(12), 12).replace(b"\x15" + zigzag(len(zeros(12))), b"\x15" + more, 1),
            page(8, packed, HUGE),
            rows=9,
        ),
        "one string": file(page(1, packed, HUGE), rows=1, kind=BYTES, claimed=HUGE),
        "one string that the footer hides": file(page(1, packed, HUGE), rows=1, kind=BYTES),
        "many strings": file(*[page(1, text, medium)] * 16, rows=16, kind=BYTES, claimed=16 * medium),
        "many strings that the footer hides": file(*[page(1, text, medium)] * 16, rows=16, kind=BYTES),
    }


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize(
    "name",
    [
        "a page of few values",
        "a page of many values",
        "gzip",
        "a dictionary",
        "a page behind one whose size has more than 32 bits",
        "one string",
        "one string that the footer hides",
        "many strings",
        "many strings that the footer hides",
    ],
)
def test_a_few_bytes_that_inflate_to_very_many_are_refused_unread(bombs, name, far):
    with bounded(seconds=1, megabytes=64), pytest.raises(IcefieldError, match=r"memory://parquet/file.* (hold|claims)"):
        rows_of(bombs[name], far=far)


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "snappy"])
@pytest.mark.parametrize("plain", ["true", "false"])
def test_values_that_are_all_alike_are_read(codec, plain, far):
    schema = Schema(NestedField(1, "n", "long"), NestedField(2, "s", "string"))
    table = pa.table({"n": [0] * 300_000, "s": ["x" * 40] * 300_000}, schema=schema_to_arrow(schema))
    properties = {"write.parquet.compression-codec": codec, "write.parquet.dict-enabled": plain}
    data, _ = write(schema, table, properties=properties)
    assert rows_of(data, far=far) == 300_000


def test_a_far_file_gives_no_byte_of_a_page_that_is_refused(bombs):
    tracemalloc.start()
    try:
        with pytest.raises(IcefieldError):
            rows_of(bombs["a page of few values"], far=True)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
