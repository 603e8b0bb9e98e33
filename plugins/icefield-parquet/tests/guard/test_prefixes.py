"""Texts that share all with the text before, of which a small page holds gigabytes: few rows at once, or none."""

import io
import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bounded import bounded
from icefield.abc import ReadRequest
from icefield.errors import UnsupportedFeature
from icefield.toolkit import as_input_file
from icefield_parquet.guard import repeated_entries
from icefield_parquet.parquet_format import ParquetFormat
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint, zigzag

LONG = 1 << 20
UNCOMPRESSED, ZSTD = 0, 6
SHARED = 7
LIST = 3  # the old annotation
FAR = pytest.mark.parametrize("far", [False, True], ids=["near", "far"])


def differences(first, second, count):
    """``first``, and ``second`` again and again, as differences in blocks of 128 in four parts."""
    head = varint(128) + varint(4) + varint(count) + zigzag(first)
    lowest = min(0, second - first)
    width = 21
    one = [second - first - lowest] + [-lowest] * 31
    rest = [-lowest] * 32
    parts = [
        sum(value << width * at for at, value in enumerate(part)).to_bytes(4 * width, "little") for part in (one, rest)
    ]
    blocks = [zigzag(lowest) + bytes([width] * 4) + parts[0] + parts[1] * 3]
    return head + b"".join(blocks) + (zigzag(0) + bytes(4)) * ((count - 2) // 128)


def page(count, codec, version, before=b""):
    """A long text, and others that share all of it."""
    data = differences(0, LONG, count) + differences(LONG, 0, count) + b"x" * LONG
    if version == 1:
        data = before + data
    packed = pa.compress(data, "zstd", asbytes=True) if codec else data
    if version == 1:
        header = Struct().i32(1, 0).i32(2, len(data)).i32(3, len(packed))
        return header.struct(5, Struct().i32(1, count).i32(2, SHARED).i32(3, 3).i32(4, 3)).encode() + packed
    header = Struct().i32(1, 3).i32(2, len(data)).i32(3, len(packed))
    inner = Struct().i32(1, count).i32(2, 0).i32(3, count).i32(4, SHARED).i32(5, 0).i32(6, 0).boolean(7, bool(codec))
    return header.struct(8, inner).encode() + packed


def runs(count, first, others):
    data = varint(1 << 1) + bytes([first]) + varint((count - 1) << 1) + bytes([others])
    return struct.pack("<I", len(data)) + data


def file(count, codec=UNCOMPRESSED, version=1, *, is_list=False):
    """Rows of texts, or one row that is a list of them."""
    body = b"PAR1" + page(count, codec, version, runs(count, 0, 1) + runs(count, 1, 1) if is_list else b"")
    size, rows = len(body) - 4, 1 if is_list else count
    path = [b"t", b"list", b"element"] if is_list else [b"t"]
    chunk = Struct().i32(1, 6).list(2, I32, [SHARED]).list(3, BINARY, path).i32(4, codec).i64(5, count)
    chunk.i64(6, LONG + (1 << 20)).i64(7, size).i64(9, 4)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, rows)
    elements = [Struct().text(4, "schema").i32(5, 1)]
    if is_list:
        elements.append(Struct().i32(3, 0).text(4, "t").i32(5, 1).i32(6, LIST).i32(9, 1))
        elements.append(Struct().i32(3, 2).text(4, "list").i32(5, 1))
        elements.append(Struct().i32(1, 6).i32(3, 0).text(4, "element").i32(6, 0).i32(9, 2))
    else:
        elements.append(Struct().i32(1, 6).i32(3, 0).text(4, "t").i32(6, 0).i32(9, 1))
    footer = Struct().i32(1, 1).list(2, STRUCT, elements).i64(3, rows).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def batches(data, *, far):
    source = as_input_file(io.BytesIO(data), is_remote=far)
    with ParquetFormat().open_reader(source, "memory://parquet/file") as reader:
        yield from reader.read(ReadRequest(reader.schema))


@pytest.mark.slow
def test_the_file_is_what_pyarrow_reads():
    table = pq.read_table(io.BytesIO(file(300)))
    assert pc.binary_length(table["t"]).to_pylist() == [LONG] * 300


@FAR
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", [UNCOMPRESSED, ZSTD])
def test_a_page_whose_texts_share_all_comes_a_few_rows_at_a_time(codec, version, far):
    data, seen = file(100_000, codec, version), 0
    with bounded(megabytes=800):
        for batch in batches(data, far=far):
            assert set(pc.binary_length(batch.column("t")).to_pylist()) == {LONG}
            seen += batch.num_rows
            if seen > 100:
                return
    raise AssertionError("fewer rows than there are")


@FAR
@pytest.mark.parametrize("codec", [UNCOMPRESSED, ZSTD])
def test_a_list_whose_texts_share_all_is_refused(codec, far):
    data = file(100_000, codec, is_list=True)
    with bounded(), pytest.raises(UnsupportedFeature, match=r"memory://parquet/file.* strings repeat each other"):
        list(batches(data, far=far))


@FAR
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nested", [False, True])
def test_usual_texts_that_share_their_fronts_are_read_whatever_they_take(version, nested, far, monkeypatch):
    monkeypatch.setattr(repeated_entries, "MOST_BYTES", 1 << 18)
    monkeypatch.setattr(repeated_entries, "BYTES_AT_ONCE", 1 << 16)
    texts = pa.array([None if at % 7 == 0 else f"{'a common front ' * 8}{at * 7919 % 6007:06}" for at in range(6_000)])
    if nested:
        texts = pa.ListArray.from_arrays(pa.array(range(0, 6_001, 3), pa.int32()), texts)
    table, sink = pa.table({"t": texts}), io.BytesIO()
    path = "t.list.element" if nested else "t"
    pq.write_table(
        table,
        sink,
        use_dictionary=False,
        column_encoding={path: "DELTA_BYTE_ARRAY"},
        data_page_version=version,
        data_page_size=20_000,
        compression="snappy",
    )
    found = list(batches(sink.getvalue(), far=far))
    assert pa.Table.from_batches(found).column("t").to_pylist() == table["t"].to_pylist()
    assert len(found) > 2
