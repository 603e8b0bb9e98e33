"""Lists that a few bytes make endless, in files made by hand."""

import struct

import pyarrow as pa
import pytest
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, NestedField
from parquet_files import read, write
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint

ENDLESS = 2**31 - 1
LIST = 3  # the old annotation
SCHEMA = Schema(NestedField(1, "l", ListType(2, "long")))


def page(values, data, *, claimed=None):
    size = len(data) if claimed is None else claimed
    header = Struct().i32(1, 0).i32(2, size).i32(3, len(data))
    return header.struct(5, Struct().i32(1, values).i32(2, 0).i32(3, 3).i32(4, 3)).encode() + data


def levels(*runs):
    """Runs of one level each, of a bit or two."""
    data = b"".join(varint(count << 1) + bytes([level]) for count, level in runs)
    return struct.pack("<I", len(data)) + data


def nulls(count, *, begins=True):
    """A page with so many nulls in a list, which begins there or goes on."""
    return page(count, levels((1, 0 if begins else 1), (count - 1, 1)) + levels((count, 2)))


def file(*pages, claimed):
    """One row, which is a list."""
    body = b"PAR1" + b"".join(pages)
    size = len(body) - 4
    path = [b"l", b"list", b"element"]
    chunk = Struct().i32(1, 2).list(2, I32, [0, 3]).list(3, BINARY, path).i32(4, 0).i64(5, claimed)
    chunk.i64(6, size).i64(7, size).i64(9, 4)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, 1)
    elements = [
        Struct().text(4, "schema").i32(5, 1),
        Struct().i32(3, 1).text(4, "l").i32(5, 1).i32(6, LIST).i32(9, 1),
        Struct().i32(3, 2).text(4, "list").i32(5, 1),
        Struct().i32(1, 2).i32(3, 1).text(4, "element").i32(9, 2),
    ]
    footer = Struct().i32(1, 2).list(2, STRUCT, elements).i64(3, 1).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def test_a_list_that_is_what_it_claims_is_read():
    for pages in ([nulls(7)], [nulls(3), nulls(4, begins=False)]):
        assert read(file(*pages, claimed=7)).column("l").to_pylist() == [[None] * 7]


@pytest.mark.parametrize("claimed", [1, 5, 1_000_000])
def test_a_page_with_more_values_than_its_chunk_claims_is_damage(claimed):
    before = pa.total_allocated_bytes()
    with pytest.raises(InvalidFile, match=r"memory://parquet/file.*more values"):
        read(file(nulls(ENDLESS), claimed=claimed))
    with pytest.raises(InvalidFile, match="more values"):
        read(file(nulls(claimed), nulls(ENDLESS, begins=False), claimed=claimed + 1))
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("claimed", [ENDLESS, 2**40])
def test_a_few_bytes_that_claim_very_many_values_are_not_believed(claimed):
    with pytest.raises(UnsupportedFeature, match=r"memory://parquet/file.*GiB"):
        read(file(nulls(ENDLESS), claimed=claimed))


@pytest.mark.parametrize("claim", [0, 2**31 - 1, -1])
def test_a_page_that_is_about_its_size_is_damage(claim):
    with pytest.raises(IcefieldError, match="memory://parquet/file"):
        read(file(page(7, nulls(7)[-12:], claimed=claim), claimed=7))


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_long_lists_over_many_pages_are_read(version, codec):
    rows = [{"l": [number] * 30_000} for number in range(3)] + [{"l": None}, {"l": []}, {"l": [None] * 9_000}]
    table = pa.Table.from_pylist(rows, schema=schema_to_arrow(SCHEMA))
    properties = {"write.parquet.page-size-bytes": "500", "write.parquet.page-version": version}
    data, _ = write(SCHEMA, table, properties={**properties, "write.parquet.compression-codec": codec})
    assert read(data).to_pylist() == rows


def test_a_page_that_leads_back_to_itself_is_damage():
    inner = Struct().i32(1, 0).i32(2, 0).i32(3, 3).i32(4, 3)
    page = Struct().i32(1, 0).i32(2, 0).i32(3, -17).struct(5, inner).encode()
    assert len(page) == 17
    with pytest.raises(InvalidFile):
        read(file(page, nulls(3), claimed=7))
