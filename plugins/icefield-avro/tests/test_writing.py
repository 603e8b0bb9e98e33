"""What a writer writes besides rows: blocks, header, metrics, split offsets; and blocks that are taken over."""

import itertools
import json
import random

import pyarrow as pa
import pytest
from avro_files import FORMAT, Sink, open_file, read_file, write_file
from hypothesis import given, settings
from icefield.abc import Split
from icefield.errors import InvalidArgument
from icefield.schema import Schema, schema_from_json, schema_to_arrow
from icefield.types import (
    DecimalType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)
from icefield_avro.container import parse_header
from icefield_testing import entry_schema, manifest_list_schema, tables

SCHEMA = Schema(
    NestedField(1, "n", LongType(), required=True),
    NestedField(2, "s", StringType()),
    NestedField(3, "l", ListType(4, LongType())),
)
ARROW = schema_to_arrow(SCHEMA)


def batch(start, count):
    columns = {
        "n": range(start, start + count),
        "s": [f"text {i}" if i % 4 else None for i in range(count)],
        "l": [[i] * (i % 3) if i % 5 else None for i in range(count)],
    }
    return pa.RecordBatch.from_pydict(columns, schema=ARROW)


def blocks_of(data):
    with open_file(data) as reader:
        return list(reader._container.blocks())


@pytest.mark.spec("AVRO-24")
@pytest.mark.parametrize(
    ("properties", "codec"),
    [
        ({}, "deflate"),
        ({"write.avro.compression-codec": "gzip"}, "deflate"),
        ({"write.avro.compression-codec": "GZIP", "write.avro.compression-level": "9"}, "deflate"),
        ({"write.avro.compression-codec": "zstd"}, "zstandard"),
        ({"write.avro.compression-codec": "zstd", "write.avro.compression-level": "19"}, "zstandard"),
        ({"write.avro.compression-codec": "snappy", "write.avro.compression-level": "19"}, "snappy"),
        ({"write.avro.compression-codec": "uncompressed"}, "null"),
        ({"write.avro.compression-codec": "bzip2"}, "bzip2"),
        ({"write.avro.compression-codec": "bzip2", "write.avro.compression-level": "1"}, "bzip2"),
        ({"write.avro.compression-codec": "xz"}, "xz"),
        ({"write.avro.compression-codec": "xz", "write.avro.compression-level": "0"}, "xz"),
    ],
)
def test_the_codec_is_the_one_asked_for(properties, codec):
    data = write_file(SCHEMA, [batch(0, 500)], properties)
    assert open_file(data).metadata["avro.codec"] == codec.encode()
    assert read_file(data).column("n").to_pylist() == list(range(500))


@pytest.mark.parametrize(
    "properties",
    [
        {"write.avro.compression-codec": "lzo"},
        {"write.avro.compression-level": "10"},
        {"write.avro.compression-level": "high"},
        {"write.avro.compression-codec": "zstd", "write.avro.compression-level": "23"},
        {"write.avro.compression-codec": "bzip2", "write.avro.compression-level": "0"},
        {"write.avro.compression-codec": "xz", "write.avro.compression-level": "10"},
        {"avro.block-size": "0"},
        {"avro.block-size": "many"},
        {"write.avro.block-size-bytes": "-1"},
    ],
)
def test_properties_that_make_no_sense_are_refused(properties):
    with pytest.raises(InvalidArgument, match=r"avro\."):
        FORMAT.open_writer(Sink(), SCHEMA, properties=properties)


@pytest.mark.parametrize("size", [1, 300, 5000, 1 << 20])
def test_blocks_are_about_as_large_as_asked(size):
    batches = [batch(start, 700) for start in range(0, 7000, 700)]
    data = write_file(SCHEMA, batches, {"avro.block-size": str(size), "write.avro.compression-codec": "uncompressed"})
    blocks = blocks_of(data)
    assert sum(block.records for block in blocks) == 7000
    sizes = [len(block.payload) for block in blocks]
    assert all(size <= one < size + 60 for one in sizes[:-1])
    assert read_file(data).column("n").to_pylist() == list(range(7000))


def test_a_row_larger_than_a_block_has_its_own():
    values = [{"n": i, "s": "x" * (100_000 * (i % 2)), "l": None} for i in range(6)]
    rows = pa.RecordBatch.from_pylist(values, schema=ARROW)
    data = write_file(SCHEMA, [rows], {"avro.block-size": "1000"})
    assert [block.records for block in blocks_of(data)] == [2, 2, 2]
    assert read_file(data).column("s").to_pylist() == rows.column("s").to_pylist()


def test_rows_that_take_no_bytes_are_cut_into_blocks(monkeypatch):
    from icefield_avro import writer

    monkeypatch.setattr(writer, "_MOST_ROWS", 1000)
    schema = Schema(NestedField(1, "u", UnknownType()))
    nothing = pa.RecordBatch.from_arrays([pa.nulls(40_000)], schema=schema_to_arrow(schema))
    data = write_file(schema, [nothing])
    assert len(blocks_of(data)) > 1
    assert read_file(data).num_rows == 40_000


@pytest.mark.spec("AVRO-25")
def test_a_data_file_states_the_table_schema_in_its_header():
    metadata = open_file(write_file(SCHEMA, [], metadata={"k": "ü"})).metadata
    assert schema_from_json(json.loads(metadata["iceberg.schema"])) == SCHEMA
    assert metadata["k"] == "ü".encode()
    named = write_file(SCHEMA, [], {"avro.record-name": "manifest_entry"})
    header = open_file(named).metadata
    assert json.loads(header["avro.schema"])["name"] == "manifest_entry"
    assert "iceberg.schema" not in header


@pytest.mark.spec("MET-06", "MAN-38")
def test_metrics_have_no_column_sizes():
    with FORMAT.open_writer(Sink(), SCHEMA) as writer:
        writer.write(batch(0, 100))
        metrics = writer.close().metrics
    assert metrics.column_sizes == {}
    assert metrics.record_count == 100
    assert metrics.null_value_counts[2] == 25
    assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (0, 99)


@pytest.mark.parametrize(("properties", "collected"), [({}, True), ({"avro.record-name": "manifest_entry"}, False)])
def test_metrics_are_collected_of_data_only(properties, collected):
    for asked in (None, "true", "false"):
        given = properties if asked is None else properties | {"avro.collect-metrics": asked}
        with FORMAT.open_writer(Sink(), SCHEMA, properties=given) as writer:
            writer.write(batch(0, 10))
            metrics = writer.close().metrics
        assert bool(metrics.value_counts) == (collected if asked is None else asked == "true")
        assert metrics.record_count == 10


def test_split_offsets_are_where_the_markers_before_blocks_start(monkeypatch):
    """Readers on the JVM look for the next marker from an offset on, and begin behind it."""
    from icefield_avro import writer as module

    monkeypatch.setattr(module, "_SPLIT_EVERY", 2000)
    sink = Sink()
    with FORMAT.open_writer(sink, SCHEMA, properties={"avro.block-size": "500"}) as writer:
        writer.write(batch(0, 5000))
        written = writer.close()
    data, offsets = sink.published, written.split_offsets
    starts = [block.offset for block in blocks_of(data)]
    with open_file(data) as reader:
        marker = reader._container.header.sync
    assert len(offsets) > 3
    assert offsets == sorted(offsets)
    assert [data.find(marker, offset) for offset in offsets] == offsets
    assert offsets[0] + 16 == starts[0]
    assert {offset + 16 for offset in offsets} <= set(starts)
    pieces = zip(offsets, [*offsets[1:], len(data)], strict=True)
    found = [read_file(data, split=Split(start, end - start)) for start, end in pieces]
    assert min(piece.num_rows for piece in found) > 0
    assert pa.concat_tables(found).equals(read_file(data))


def test_a_null_in_a_required_column_is_refused():
    nullable = pa.schema([field.with_nullable(True) for field in ARROW])
    bad = pa.RecordBatch.from_pylist([{"n": None, "s": "x", "l": []}], schema=nullable)
    with pytest.raises(InvalidArgument, match="'n' is required") as caught:
        FORMAT.open_writer(Sink(), SCHEMA).write(bad)
    assert caught.value.field_id == 1


def test_batches_of_kindred_types_are_cast_and_others_refused():
    large = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 2], pa.int32()),
            pa.array(["a", None], pa.large_string()),
            pa.array([[1], None], pa.large_list(pa.int64())),
        ],
        names=["n", "s", "l"],
    )
    assert read_file(write_file(SCHEMA, [large])).to_pylist() == large.to_pylist()
    with pytest.raises(InvalidArgument, match="columns"):
        FORMAT.open_writer(Sink(), SCHEMA).write(large.select(["s", "n", "l"]))
    with pytest.raises(InvalidArgument, match="does not fit"):
        FORMAT.open_writer(Sink(), SCHEMA).write(large.set_column(0, "n", pa.array(["x", "y"])))


def nested_table(rng, rows):
    """Slices, null structs with values below them, null lists with items behind them."""
    kind = StructType(
        NestedField(11, "x", LongType()),
        NestedField(12, "y", ListType(13, StringType(), element_required=True)),
        NestedField(14, "m", MapType(15, IntegerType(), 16, DecimalType(20, 3))),
        NestedField(17, "f", FixedType(50), required=True),
    )
    schema = Schema(NestedField(1, "s", kind), NestedField(2, "l", ListType(3, LongType(), element_required=True)))
    arrow = schema_to_arrow(schema)
    struct = arrow.field("s").type
    parts = [
        pa.array([rng.choice([None, rng.getrandbits(62)]) for _ in range(rows)], pa.int64()),
        pa.array([rng.choice([None, [], ["a", "bc"]]) for _ in range(rows)], struct.field("y").type),
        pa.array([rng.choice([None, [], [(1, None), (70, 5)]]) for _ in range(rows)], struct.field("m").type),
        pa.array([rng.randbytes(50) for _ in range(rows)], pa.binary(50)),
    ]
    hidden = pa.array([rng.random() < 0.4 for _ in range(rows)])
    structs = pa.StructArray.from_arrays(parts, fields=list(struct), mask=hidden)
    offsets = pa.array(range(0, 2 * rows + 1, 2), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(range(2 * rows), pa.int64()), mask=hidden).cast(
        arrow.field("l").type
    )
    return schema, pa.RecordBatch.from_arrays([structs, lists], schema=arrow)


@pytest.mark.spec("AVRO-11", "AVRO-12", "AVRO-14")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_below_nulls_is_not_written(seed):
    rng = random.Random(seed)
    schema, whole = nested_table(rng, 300)
    piece = whole.slice(17, 200)
    got = read_file(write_file(schema, [piece, whole.slice(0, 1), piece.slice(3, 0)]))
    assert got.to_pylist() == piece.to_pylist() + whole.slice(0, 1).to_pylist()


def encoded(schema, rows, few):
    from icefield_avro import encoding
    from icefield_avro.writer import compiled

    before, encoding.FEW_ROWS = encoding.FEW_ROWS, few
    try:
        made = encoding.encode(compiled(schema)[1], rows.columns, rows.num_rows)
    finally:
        encoding.FEW_ROWS = before
    data = made.data.to_pybytes()
    return [data[start:end] for start, end in itertools.pairwise(made.starts.tolist())]


@settings(max_examples=100, deadline=None)
@given(made=tables())
def test_both_ways_of_encoding_give_the_same_bytes(made):
    schema, table = made
    for rows in table.combine_chunks().to_batches():
        assert encoded(schema, rows, 0) == encoded(schema, rows, 1 << 30)


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_of_encoding_pass_over_what_is_below_nulls(seed):
    schema, whole = nested_table(random.Random(seed), 80)
    for rows in (whole, whole.slice(5, 9), whole.slice(70), whole.slice(3, 1), whole.slice(2, 0)):
        assert encoded(schema, rows, 0) == encoded(schema, rows, 1 << 30)


def test_both_ways_of_encoding_refuse_a_null_where_none_may_be():
    nullable = pa.schema([field.with_nullable(True) for field in ARROW])
    bad = pa.RecordBatch.from_pylist([{"n": None, "s": "x", "l": []}], schema=nullable)
    for few in (0, 1 << 30):
        with pytest.raises(InvalidArgument, match="'n' is required"):
            encoded(SCHEMA, bad, few)


# -- blocks that are taken over

LIST_SCHEMA = manifest_list_schema(2)
LIST_ARROW = schema_to_arrow(LIST_SCHEMA)


def listed(numbers):
    rows = []
    for i in numbers:
        row = {field.name: 0 for field in LIST_ARROW if pa.types.is_integer(field.type)}
        rows.append(row | {"manifest_path": f"s3://b/m{i}.avro", "partitions": [{"contains_null": i % 2 == 0}]})
    return pa.RecordBatch.from_pylist(rows, schema=LIST_ARROW)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "bzip2", "xz", "uncompressed"])
def test_old_blocks_are_taken_over_byte_for_byte(codec):
    properties = {"avro.record-name": "manifest_file", "write.avro.compression-codec": codec, "avro.block-size": "3000"}
    old = write_file(LIST_SCHEMA, [listed(range(200))], properties, {"snapshot-id": "1"})
    new = FORMAT.append_blocks(old, LIST_SCHEMA, listed([200]), {"snapshot-id": "2", "more": "x"})
    assert new is not None
    assert old[parse_header(old).size :] in new
    assert read_file(new).column("manifest_path").to_pylist() == [f"s3://b/m{i}.avro" for i in range(201)]
    header = open_file(new).metadata
    assert (header["snapshot-id"], header["more"]) == (b"2", b"x")
    assert header["avro.schema"] == open_file(old).metadata["avro.schema"]
    again = FORMAT.append_blocks(new, LIST_SCHEMA, listed([]), {})
    assert read_file(again).num_rows == 201


def test_the_writers_own_schema_is_kept_whatever_its_names_and_unions():
    import fastavro

    old = write_file(LIST_SCHEMA, [listed(range(3))], {"avro.record-name": "manifest_file"})
    schema = json.loads(open_file(old).metadata["avro.schema"])
    schema["name"] = "other"
    for field in schema["fields"]:
        field["doc"] = "some text"
        if isinstance(field["type"], list):
            field["type"].reverse()
            field.pop("default", None)
    import io

    foreign = io.BytesIO()
    fastavro.writer(foreign, schema, list(fastavro.reader(io.BytesIO(old))), codec="deflate")
    new = FORMAT.append_blocks(foreign.getvalue(), LIST_SCHEMA, listed([3]), {})
    assert new is not None
    assert read_file(new).column("manifest_path").to_pylist() == [f"s3://b/m{i}.avro" for i in range(4)]
    assert len(list(fastavro.reader(io.BytesIO(new)))) == 4


def test_blocks_of_another_layout_are_not_taken_over():
    import io

    import fastavro

    old = write_file(LIST_SCHEMA, [listed(range(3))], {"avro.record-name": "manifest_file"})
    avro = json.loads(open_file(old).metadata["avro.schema"])
    rows = list(fastavro.reader(io.BytesIO(old)))

    def with_schema(change, codec="deflate"):
        other = json.loads(json.dumps(avro))
        change(other)
        sink = io.BytesIO()
        fastavro.writer(sink, other, rows, codec=codec)
        return sink.getvalue()

    def reorder(schema):
        schema["fields"].reverse()

    def drop(schema):
        schema["fields"].pop()

    def renumber(schema):
        schema["fields"][0]["field-id"] = 9999

    def widen(schema):
        next(f for f in schema["fields"] if f["type"] == "int")["type"] = "long"

    for change in (reorder, drop, renumber, widen):
        assert FORMAT.append_blocks(with_schema(change), LIST_SCHEMA, listed([3]), {}) is None
    unknown = with_schema(lambda s: None).replace(b"avro.codec\x0edeflate", b"avro.codec\x0edeflatE")
    assert FORMAT.append_blocks(unknown, LIST_SCHEMA, listed([3]), {}) is None
    appended = FORMAT.append_blocks(with_schema(lambda s: None, "bzip2"), LIST_SCHEMA, listed([3]), {})
    assert read_file(appended).num_rows == 4
    assert FORMAT.append_blocks(with_schema(lambda s: None), LIST_SCHEMA, listed([3]), {}) is not None
    assert FORMAT.append_blocks(old, manifest_list_schema(1), listed([3]), {}) is None
    for damaged in (b"", b"junk", old[:100], old[:-1]):
        assert FORMAT.append_blocks(damaged, LIST_SCHEMA, listed([3]), {}) is None


@pytest.mark.spec("MAN-01", "MAN-02", "MAN-21")
def test_pyiceberg_reads_the_entries_that_are_written(tmp_path):
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, DataFile, ManifestEntry

    schema = entry_schema(2, StructType())
    arrow = schema_to_arrow(schema)
    file = {
        "content": 0,
        "file_path": "s3://b/x.parquet",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 7,
        "file_size_in_bytes": 8,
        "value_counts": [(1, 7)],
        "lower_bounds": [(1, b"\x01"), (99, b"")],
        "split_offsets": [4],
    }
    rows = [
        {"status": 1, "snapshot_id": 2**62, "data_file": file},
        {"status": 2, "sequence_number": 3, "data_file": file},
    ]
    data = write_file(schema, [pa.RecordBatch.from_pylist(rows, schema=arrow)], {"avro.record-name": "manifest_entry"})
    path = tmp_path / "m.avro"
    path.write_bytes(data)
    source = PyArrowFileIO().new_input(str(path))
    types = {-1: ManifestEntry, 2: DataFile}
    with AvroFile(source, MANIFEST_ENTRY_SCHEMAS[2], read_types=types) as entries:
        found = list(entries)
    assert [(int(entry.status), entry.snapshot_id, entry.sequence_number) for entry in found] == [
        (1, 2**62, None),
        (2, None, 3),
    ]
    assert all(entry.data_file.file_path == "s3://b/x.parquet" for entry in found)
    assert found[0].data_file.lower_bounds == {1: b"\x01", 99: b""}
