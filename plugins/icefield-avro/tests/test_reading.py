"""Reading parts of a file: by columns, by byte range, by codec."""

import bz2
import itertools
import lzma
import random
import zlib

import pyarrow as pa
import pytest
from avro_files import SYNC, container, deflate, encode, open_file, read_file, write_file
from icefield.abc import ReadRequest, Split
from icefield.errors import InvalidArgument, InvalidFile, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import BytesInput, as_input_file, field_id
from icefield.types import DateType, LongType, NestedField, StringType, StructType
from icefield_avro import reader as reader_module
from icefield_testing import entry_schema

SCHEMA = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "a", "type": "long", "field-id": 1},
        {"name": "b", "type": ["null", "string"], "field-id": 2},
        {"name": "c", "type": {"type": "fixed", "name": "f", "size": 3}, "field-id": 3},
    ],
}


def rows(count):
    return [(i, None if i % 3 == 0 else f"value {i}", b"abc") for i in range(count)]


def file_of(count, each=40, **how):
    records = [encode(SCHEMA, row) for row in rows(count)]
    return container(SCHEMA, [records[i : i + each] for i in range(0, count, each)], **how)


# -- columns


@pytest.mark.spec("AVRO-26", "PRJ-18")
def test_columns_come_in_the_order_asked_for():
    data = file_of(100)
    schema = open_file(data).schema
    wanted = pa.schema([schema.field("c"), schema.field("a")])
    got = read_file(data, wanted)
    assert got.schema.equals(wanted, check_metadata=True)
    assert got.column("a").to_pylist() == list(range(100))


def test_no_column_at_all_still_counts_the_rows():
    data = file_of(100)
    batches = list(open_file(data).read(ReadRequest(pa.schema([]))))
    assert sum(batch.num_rows for batch in batches) == 100
    only = list(open_file(data).read(ReadRequest(pa.schema([]), positions=True)))
    assert [p for batch in only for p in batch.column("_pos").to_pylist()] == list(range(100))


@pytest.mark.parametrize(
    "field",
    [
        pa.field("missing", pa.int64()),
        pa.field("a", pa.int32()),
        pa.field("a", pa.struct([pa.field("x", pa.int64())])),
        pa.field("b", pa.list_(pa.string())),
    ],
)
def test_a_column_that_the_file_has_not_is_an_error_of_the_caller(field):
    with pytest.raises(InvalidArgument, match=field.name):
        read_file(file_of(3), pa.schema([field]))


def test_a_column_asked_for_twice_is_an_error_of_the_caller():
    field = open_file(file_of(3)).schema.field("a")
    with pytest.raises(InvalidArgument, match="twice"):
        read_file(file_of(3), pa.schema([field, field]))
    with pytest.raises(InvalidArgument, match="batch_rows"):
        read_file(file_of(3), batch_rows=0)


def test_columns_of_one_name_are_distinguished_by_their_ids():
    fields = [
        {"name": "x", "type": "long", "field-id": 1},
        {"name": "y", "type": "long", "field-id": 2, "iceberg-field-name": "x"},
    ]
    schema = {"type": "record", "name": "t", "fields": fields}
    data = container(schema, [[encode(schema, (1, 2))]])
    second = open_file(data).schema.field(1)
    assert read_file(data, pa.schema([second])).column(0).to_pylist() == [2]


@pytest.mark.spec("PRJ-18", "MAN-02", "MAN-25")
def test_a_manifest_of_shuffled_fields_and_a_foreign_one_is_read_by_id():
    partition = StructType(NestedField(1000, "day", DateType()))
    ours = schema_to_arrow(entry_schema(2, partition))
    entry = {
        "type": "record",
        "name": "anything",
        "fields": [
            {"name": "later", "type": ["null", "string"], "field-id": 999},
            {
                "name": "data_file",
                "field-id": 2,
                "type": {
                    "type": "record",
                    "name": "whatever",
                    "fields": [
                        {"name": "record_count", "type": "long", "field-id": 103},
                        {"name": "odd", "type": {"type": "array", "items": "double"}, "field-id": 9999},
                        {"name": "file_path", "type": "string", "field-id": 100},
                    ],
                },
            },
            {"name": "status", "type": "int", "field-id": 0},
        ],
    }
    values = [("x", (i, [0.5] * (i % 3), f"s3://b/{i}"), 1) for i in range(60)]
    data = container(entry, [[encode(entry, value) for value in values]])
    found = open_file(data).schema
    file = found.field("data_file")
    parts = [file.type.field("file_path"), file.type.field("record_count")]
    wanted = pa.schema([found.field("status"), file.with_type(pa.struct(parts))])
    got = read_file(data, wanted)
    assert got.column("data_file").to_pylist() == [{"file_path": v[1][2], "record_count": v[1][0]} for v in values]
    status = ours.field("status")
    assert field_id(got.schema.field("status")) == field_id(status)


# -- byte ranges


@pytest.mark.spec("AVRO-28", "SCAN-29")
@pytest.mark.parametrize("seed", range(6))
def test_splits_of_any_size_read_each_row_once_at_its_position(seed):
    rng = random.Random(seed)
    count = rng.choice((1, 40, 700))
    data = file_of(count, rng.choice((1, 7, 100)), codec="deflate", pack=deflate)
    cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(rng.choice((0, 3, 30))))})
    found = []
    for start, end in itertools.pairwise(cuts):
        for positions in (True, False):
            table = read_file(data, split=Split(start, end - start), positions=positions)
            if positions:
                assert table.column("_pos").to_pylist() == table.column("a").to_pylist()
            else:
                found += table.column("a").to_pylist()
    assert found == list(range(count))


@pytest.mark.spec("AVRO-28", "SCAN-29")
def test_a_split_takes_the_blocks_that_start_inside_it():
    data = file_of(200, 50)
    blocks = [i + 16 for i in range(len(data)) if data[i : i + 16] == SYNC][:-1]
    for index, start in enumerate(blocks):
        end = blocks[index + 1] if index + 1 < len(blocks) else len(data)
        expected = list(range(index * 50, index * 50 + 50))
        assert read_file(data, split=Split(start, end - start)).column("a").to_pylist() == expected
        assert read_file(data, split=Split(start, 1)).column("a").to_pylist() == expected
        assert read_file(data, split=Split(start + 1, end - start - 1)).num_rows == 0


def test_large_files_are_read_in_chunks(monkeypatch):
    from icefield_avro import container as module

    monkeypatch.setattr(module, "_WHOLE", 100)
    monkeypatch.setattr(module, "_CHUNK", 700)
    data = file_of(900, 30)
    assert read_file(data).column("a").to_pylist() == list(range(900))
    found = []
    for start in range(0, len(data), 1111):
        found += read_file(data, split=Split(start, 1111), positions=True).column("_pos").to_pylist()
    assert found == list(range(900))
    wide = container(SCHEMA, [[encode(SCHEMA, (1, "x" * 5000, b"abc"))]], metadata={"big": bytes(5000)})
    assert read_file(wide).num_rows == 1


def test_a_file_shorter_than_it_is_said_to_be_is_refused():

    from avro_files import FORMAT

    data = file_of(10)
    with pytest.raises(InvalidFile, match="instead of"):
        FORMAT.open_reader(BytesInput(data), "memory://x", size=len(data) + 5)


def test_groups_of_blocks_make_no_difference(monkeypatch):
    from icefield_avro import reader

    data = file_of(2000, 25)
    whole = read_file(data, positions=True)
    monkeypatch.setattr(reader, "GROUP_BYTES", 900)
    assert read_file(data, positions=True).equals(whole)
    monkeypatch.setattr(reader, "GROUP_ROWS", 1)
    assert read_file(data, positions=True).equals(whole)


def test_chunks_of_rows_make_no_difference(monkeypatch):
    from icefield_avro.vectorized import decoder

    data = file_of(2000, 500)
    whole = read_file(data)
    monkeypatch.setattr(decoder, "CHUNK_ROWS", 33)
    assert read_file(data).equals(whole)
    single = file_of(400, 1)
    assert read_file(single).column("a").to_pylist() == list(range(400))


@pytest.mark.parametrize("limit", [1, 3000, 1 << 20])
def test_what_is_inflated_ahead_is_read_once_and_read_again(limit, monkeypatch):
    monkeypatch.setattr(reader_module, "_WORTH_A_THREAD", 100)
    data = file_of(400)
    with open_file(data) as reader:
        reader.prepare(limit)
        reader.prepare(limit)
        for _ in range(2):
            table = pa.Table.from_batches(reader.read(ReadRequest(reader.schema)))
            assert table.column("a").to_pylist() == list(range(400))
        reader.prepare(limit)
        half = pa.Table.from_batches(reader.read(ReadRequest(reader.schema, split=Split(0, len(data) // 2))))
        assert 0 < half.num_rows < 400
        whole = pa.Table.from_batches(reader.read(ReadRequest(reader.schema, positions=True)))
        assert whole.column("_pos").to_pylist() == whole.column("a").to_pylist() == list(range(400))


def test_a_damaged_block_is_found_when_it_is_inflated_ahead(monkeypatch):
    monkeypatch.setattr(reader_module, "_WORTH_A_THREAD", 100)
    data = file_of(400, codec="deflate", pack=deflate)
    data = data[:-200] + b"\xff" * 184 + data[-16:]  # all of the last block but its first bytes
    with pytest.raises(InvalidFile, match="block at byte"):
        open_file(bytes(data)).prepare(1 << 20)


def one_a_block(count, codec="null"):
    pack = deflate if codec == "deflate" else None
    return container(SCHEMA, [[encode(SCHEMA, row)] for row in rows(count)], codec=codec, pack=pack)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("group_bytes", [1, 1000, 1 << 20])
def test_blocks_of_one_record_are_read_together_and_at_their_positions(group_bytes, codec, monkeypatch):
    monkeypatch.setattr(reader_module, "GROUP_BYTES", group_bytes)
    data = one_a_block(300, codec=codec)
    table = read_file(data, positions=True)
    assert table.column("_pos").to_pylist() == table.column("a").to_pylist() == list(range(300))
    assert table.column("b").to_pylist() == [row[1] for row in rows(300)]


def test_a_sync_marker_inside_a_block_does_not_end_it():
    schema = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "bytes", "field-id": 1}]}
    values = [b"short", b"before" + SYNC + b"behind", SYNC, b"last"]
    data = container(schema, [[encode(schema, (value,))] for value in values], codec="null")
    assert read_file(data).column("a").to_pylist() == values


def test_a_damaged_block_of_one_record_is_named_by_its_place():
    data = one_a_block(50)
    starts = [at for at in range(len(data)) if data.startswith(SYNC, at)]
    place = starts[20] + len(SYNC)
    damaged = bytearray(data)
    damaged[place + 2 : starts[21]] = b"\xff" * (starts[21] - place - 2)
    with pytest.raises(InvalidFile, match=f"block at byte {place:,}"):
        read_file(bytes(damaged))
    empty = data[:place] + b"\x02\x00" + data[starts[21] :]
    with pytest.raises(InvalidFile, match=f"block at byte {place:,}.* claims 1 records? in 0 bytes"):
        read_file(empty)
    with pytest.raises(InvalidFile):
        read_file(data[:-1])
    with pytest.raises(InvalidFile):
        read_file(data + b"\x02")


def test_empty_blocks_are_passed_over():
    records = [encode(SCHEMA, row) for row in rows(3)]
    data = container(SCHEMA, [[], records[:1], [], [], records[1:], []])
    assert read_file(data, positions=True).column("_pos").to_pylist() == [0, 1, 2]


def test_metrics_count_the_records_of_a_foreign_file():
    with open_file(file_of(123, 10)) as reader:
        metrics = reader.metrics()
    assert metrics.record_count == 123
    assert metrics.value_counts == metrics.column_sizes == metrics.lower_bounds == {}


# -- codecs


def snappy(data):
    return pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


def streamed_zstandard(data):
    """Frames that do not state their size, two of them."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKS = {
    "null": bytes,
    "deflate": deflate,
    "snappy": snappy,
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.spec("AVRO-24")
@pytest.mark.parametrize("codec", PACKS)
def test_every_codec_is_read(codec):
    data = file_of(300, codec=codec, pack=PACKS[codec])
    assert read_file(data).column("a").to_pylist() == list(range(300))


@pytest.mark.spec("AVRO-24")
def test_zstandard_without_a_size_and_a_file_without_a_codec_are_read():
    assert read_file(file_of(300, codec="zstandard", pack=streamed_zstandard)).num_rows == 300
    records = [encode(SCHEMA, row) for row in rows(5)]
    named = container(SCHEMA, [records])
    assert b"avro.codec" in named
    from avro_files import long, sized

    unnamed = named.replace(long(2) + sized(b"avro.schema"), long(1) + sized(b"avro.schema"), 1)
    unnamed = unnamed.replace(sized(b"avro.codec") + sized(b"null"), b"", 1)
    assert read_file(unnamed).num_rows == 5


@pytest.mark.spec("AVRO-24")
@pytest.mark.parametrize("codec", [codec for codec in PACKS if codec != "null"])
def test_a_damaged_or_swollen_block_of_any_codec_is_refused(codec, monkeypatch):
    from icefield_avro import codecs

    def refused(pack, reason):
        with pytest.raises(InvalidFile, match=reason):
            read_file(file_of(300, 300, codec=codec, pack=pack))

    refused(lambda data: PACKS[codec](data)[:-7], "block")
    refused(lambda data: b"\xff" * 50, "block")
    refused(lambda data: b"", "block")
    monkeypatch.setattr(codecs, "MAX_INFLATED", 1000)
    refused(PACKS[codec], "more than|impossible")


def test_a_snappy_checksum_that_does_not_match_is_refused():
    def wrong(data):
        return snappy(data)[:-1] + b"\0"

    with pytest.raises(InvalidFile, match="checksum"):
        read_file(file_of(300, codec="snappy", pack=wrong))


def test_an_unknown_codec_is_named():
    with pytest.raises(UnsupportedFeature, match=r"file\.avro.*'brotli'"):
        open_file(file_of(3, codec="brotli"))


def test_a_closed_reader_has_closed_its_input():

    from avro_files import FORMAT

    source = BytesInput(file_of(3))
    with FORMAT.open_reader(source, "memory://x"):
        assert not source.closed
    assert source.closed


def test_an_input_that_is_no_avro_file_is_closed():

    from avro_files import FORMAT

    source = BytesInput(b"junk")
    with pytest.raises(InvalidFile):
        FORMAT.open_reader(source, "memory://x")
    assert source.closed


def test_the_plugin_is_found_by_the_name_in_manifests():
    from avro_files import FORMAT
    from icefield import Plugins

    assert type(Plugins.installed().file_format("avro")) is type(FORMAT)


def test_pyarrow_inputs_are_read():
    from avro_files import FORMAT

    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
    written = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}, schema=schema_to_arrow(schema))
    data = write_file(schema, [written])
    with FORMAT.open_reader(as_input_file(pa.BufferReader(data)), "memory://x") as reader:
        (batch,) = reader.read(ReadRequest(reader.schema))
    assert batch.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
