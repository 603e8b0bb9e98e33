"""The pages of files that are written, as their headers in the raw bytes state them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from parquet_files import write
from parquet_thrift import read_struct

SCHEMA = Schema(NestedField(1, "n", "long", required=True), NestedField(2, "t", "string"))
ROWS = 60_000
DATA, DICTIONARY, DATA_V2 = 0, 2, 3

# Fields of a page header.
KIND, UNCOMPRESSED, COMPRESSED, CHECKSUM, OF_DATA, OF_DICTIONARY, OF_DATA_V2 = 1, 2, 3, 4, 5, 7, 8
PLAIN, BY_DICTIONARY = 0, 8


def table(distinct):
    arrow = schema_to_arrow(SCHEMA)
    texts = [f"a string that is one of some, {number * 7 % distinct:06}" for number in range(ROWS)]
    return pa.table({"n": range(ROWS), "t": texts}).cast(arrow)


def pages(distinct=50, **properties):
    """The page headers of each column of the only row group."""
    named = {f"write.parquet.{name.replace('_', '-')}": str(value) for name, value in properties.items()}
    data, _ = write(SCHEMA, table(distinct), batch_rows=1_000, properties=named)
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    return [list(headers(data, group.column(at))) for at in range(2)]


def headers(data, chunk):
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    end = at + chunk.total_compressed_size
    while at < end:
        header, at = read_struct(data, at)
        yield header
        at += header[COMPRESSED]
    assert at == end


def rows_of(header):
    return header[OF_DATA_V2 if header[KIND] == DATA_V2 else OF_DATA][1]


@pytest.mark.spec("PARQ-24")
@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ({}, 20_000),
        ({"page_row_limit": 500}, 500),
        pytest.param({"page_row_limit": 1}, 1, marks=pytest.mark.slow),  # a page for each of many rows
    ],
)
def test_no_page_holds_more_rows_than_its_limit(limit, most):
    for column in pages(**limit):
        counts = [rows_of(header) for header in column if header[KIND] != DICTIONARY]
        assert sum(counts) == ROWS
        assert max(counts) <= most
        assert len(counts) >= ROWS / most


@pytest.mark.spec("PARQ-24")
@pytest.mark.parametrize("size", [2_000, 50_000])
def test_pages_are_about_as_large_as_asked(size):
    for column in pages(distinct=ROWS, page_size_bytes=size):
        sizes = [header[UNCOMPRESSED] for header in column if header[KIND] != DICTIONARY]
        # Sizes are compared between batches of values, of about a thousand each.
        assert max(sizes) <= size + 60_000
        assert len(sizes) >= 5


@pytest.mark.spec("PARQ-24")
@pytest.mark.parametrize(("version", "kind"), [("v1", DATA), ("v2", DATA_V2), ("V2", DATA_V2)])
def test_pages_are_of_the_version_asked_for(version, kind):
    for column in pages(page_version=version):
        assert {header[KIND] for header in column} - {DICTIONARY} == {kind}


@pytest.mark.spec("PARQ-24")
def test_a_dictionary_keeps_to_its_size():
    numbers, texts = pages(distinct=2_000)
    assert all(header[KIND] != DICTIONARY for header in numbers), "values that do not repeat"
    assert texts[0][KIND] == DICTIONARY
    assert texts[0][OF_DICTIONARY][1] == 2_000
    assert {header[OF_DATA][2] for header in texts[1:]} == {BY_DICTIONARY}
    for limit in (1_000, 20_000):
        _, texts = pages(distinct=2_000, dict_size_bytes=limit)
        held = sum(header[UNCOMPRESSED] for header in texts if header[KIND] == DICTIONARY)
        assert held <= limit + 60_000
        assert PLAIN in {header[OF_DATA][2] for header in texts if header[KIND] == DATA}


def test_each_page_has_a_checksum():
    for version in ("v1", "v2"):
        for column in pages(page_version=version):
            assert all(CHECKSUM in header for header in column)


@pytest.mark.parametrize(("codec", "level"), [("zstd", 23), ("gzip", 0), ("gzip", 10), ("brotli", 12)])
def test_a_level_that_a_codec_has_not_is_refused_before_anything_is_written(codec, level):
    with pytest.raises(InvalidArgument, match=r"write\.parquet\.compression-level.*takes"):
        pages(compression_codec=codec, compression_level=level)
