"""Strings of a megabyte that a page of a few bytes repeats, in files made by hand: few rows at once, and all."""

import io
import struct

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded
from icefield.abc import ReadRequest
from icefield.errors import UnsupportedFeature
from icefield.toolkit import as_input_file
from icefield_parquet.parquet_format import ParquetFormat
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint

LONG = 1 << 20
UNCOMPRESSED, SNAPPY, ZSTD, LZ4_RAW = 0, 1, 6, 7
CODECS = {SNAPPY: "snappy", ZSTD: "zstd", LZ4_RAW: "lz4_raw"}
NUMBERS = 8
LIST = 3  # the old annotation


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


def file(pages, rows, codec=UNCOMPRESSED, *, announced=True, lists=None):
    """A column of texts whose first page is a dictionary, which the footer may announce.

    They may be the elements of so many ``lists``, of which each is a row.
    """
    body = b"PAR1" + b"".join(pages)
    size = len(body) - 4
    path = [b"t"] if lists is None else [b"t", b"list", b"element"]
    chunk = Struct().i32(1, 6).list(2, I32, [0, 3, 8]).list(3, BINARY, path).i32(4, codec).i64(5, rows)
    chunk.i64(6, max(size, LONG + 64)).i64(7, size).i64(9, 4 + len(pages[0]) if announced else 4)
    if announced:
        chunk.i64(11, 4)
    rows = rows if lists is None else lists
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, rows)
    elements = [Struct().text(4, "schema").i32(5, 1)]
    if lists is None:
        elements.append(Struct().i32(1, 6).i32(3, 0).text(4, "t").i32(6, 0).i32(9, 1))
    else:
        elements.append(Struct().i32(3, 0).text(4, "t").i32(5, 1).i32(6, LIST).i32(9, 1))
        elements.append(Struct().i32(3, 2).text(4, "list").i32(5, 1))
        elements.append(Struct().i32(1, 6).i32(3, 0).text(4, "element").i32(6, 0).i32(9, 2))
    footer = Struct().i32(1, 1).list(2, STRUCT, elements).i64(3, rows).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def repeated(rows, codec=UNCOMPRESSED, *, more=(), announced=True):
    """A long text and a short one; a hundred rows have the short one, then ``rows`` the long one, then some others."""
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


def levels(*runs):
    """Runs of one level each, of a bit."""
    data = b"".join(varint(count << 1) + bytes([level]) for count, level in runs)
    return struct.pack("<I", len(data)) + data


def in_lists(*lengths, long, codec=UNCOMPRESSED, more=0):
    """Lists of so many texts, of which the first ``long`` ones are long; ``more`` rows have one short text each."""
    total = sum(lengths)
    before = levels(*[run for length in lengths for run in ((1, 0), (length - 1, 1)) if run[0]]) + levels((total, 1))
    words = b"\1" + varint(long << 1) + b"\0" + (varint((total - long) << 1) + b"\1" if total > long else b"")
    pages = [page(plain(b"x" * LONG, b"short"), codec, entries=2), page(before + words, codec, values=total)]
    if more:
        pages.append(page(levels((more, 0)) + levels((more, 1)) + numbers(1, more), codec, values=more))
    return file(pages, total + more, codec, lists=len(lengths) + more)


@FAR
@pytest.mark.parametrize("codec", [UNCOMPRESSED, ZSTD])
@pytest.mark.parametrize("values", [20_000, 1_000_000])
@pytest.mark.parametrize("more", [0, 1_000_000])
def test_a_row_of_a_list_that_repeats_a_long_text_is_refused_soon(values, codec, more, far):
    data = in_lists(values, long=values, codec=codec, more=more)
    with bounded(megabytes=200), pytest.raises(UnsupportedFeature, match=r"memory://parquet/file.* a row whose lists"):
        list(batches(data, far=far))


@FAR
@pytest.mark.parametrize("values", [5_000, 50_000])
def test_a_list_with_one_long_text_among_very_many_short_ones_is_read(values, far):
    data = in_lists(values, values, long=2)
    with bounded(megabytes=200):
        found = pa.Table.from_batches(batches(data, far=far)).column("t").combine_chunks()
    assert pc.list_value_length(found).to_pylist() == [values, values]
    assert pc.binary_length(found.flatten()).to_pylist() == [LONG, LONG, *[5] * (2 * values - 2)]


@FAR
def test_lists_that_repeat_long_texts_come_a_few_rows_at_a_time(far):
    data, seen = in_lists(*[8] * 2_000, long=16_000), 0
    with bounded(megabytes=800):
        for batch in batches(data, far=far):
            assert set(pc.binary_length(batch.column("t").flatten()).to_pylist()) == {LONG}
            seen += batch.num_rows
            if seen > 100:
                return
    raise AssertionError("fewer rows than there are")
