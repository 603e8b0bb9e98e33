"""Files damaged by the hundred, read in a process of their own, and is that are worth telling one by one."""

import gc
import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import fuzz
from icefield.abc import ReadRequest
from icefield.errors import InvalidFile
from icefield.expressions import bind, parse
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import as_input_file
from icefield.types import NestedField, VariantType
from icefield_parquet.guard.raw_statistics import check_statistics
from icefield_parquet.parquet_format import ParquetFormat
from icefield_testing import sample_tables
from parquet_files import read, reader_of, write
from parquet_forge import forge
from variant_bytes import PRIMITIVES, variant

CODECS = ("uncompressed", "gzip", "snappy", "zstd", "lz4_raw", "brotli")


def whole_files():
    """Files of every type, shape and codec, with several row groups and pages each."""
    tables = sample_tables()
    files = {f"flat, {codec}": file(*tables["flat"], codec) for codec in CODECS}
    for codec in ("uncompressed", "zstd"):
        files |= {f"{name}, {codec}": file(*tables[name], codec) for name in ("nested", "types")}
        files[f"pages, {codec}"] = file(*flat_table(900), codec, {"write.parquet.page-version": "v2"})
        files[f"shredded, {codec}"] = file(*variants(), codec, {"write.parquet.shred-variants": "true"})
    return files


def flat_table(rows):
    return sample_tables(rows)["flat"]


def variants():
    """Variants of every primitive, in objects and lists."""
    schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "n", "int"))
    rows = [
        {"v": variant({**PRIMITIVES, "l": [at, str(at)], "o": {"k": at}} if at % 7 else at), "n": at}
        for at in range(150)
    ]  # fmt: skip
    return schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))


def file(schema, table, codec, more=None):
    properties = {
        "write.parquet.compression-codec": codec,
        "write.parquet.row-group-size-bytes": "40000",
        "write.parquet.page-size-bytes": "2000",
        **(more or {}),
    }
    return write(schema, table, batch_rows=200, properties=properties)[0]


@pytest.mark.counted
@pytest.mark.slow
def test_damaged_files_give_rows_or_one_typed_error_and_never_end_the_process():
    outcome = fuzz("icefield_parquet.parquet_format:ParquetFormat", whole_files())
    assert outcome.counts["rows"] > 20
    assert outcome.counts["InvalidFile"] > 200
    assert outcome.counts.keys() <= {"rows", "InvalidFile", "UnsupportedFeature"}
    assert outcome.memory < 2 << 30


@pytest.mark.parametrize("codec", [8, 63, -1])
@pytest.mark.parametrize("wanted", ["rows", "metrics"])
def test_a_codec_that_no_version_knows_does_not_end_the_process(codec, wanted):
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), sink, compression="zstd", row_group_size=1)
    data = sink.getvalue()
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    # A field of 32 bits, the codec, before one of 64, the number of values.
    known, unknown = (b"\x15%c\x16" % ((number << 1 ^ number >> 31) & 0xFF) for number in (6, codec))
    assert data[footer:].count(known) == 4
    before, _, after = data[footer:].rpartition(known)
    with reader_of(data[:footer] + before + unknown + after) as reader:
        asked = reader.metrics if wanted == "metrics" else lambda: list(reader.read(ReadRequest(reader.schema)))
        with pytest.raises(InvalidFile, match=f"codec {codec}"):
            asked()


class TestStatistics:
    """pyarrow ends the process where Python looks at statistics that are shorter than their type."""

    @pytest.mark.parametrize(
        ("kind", "value", "bound"),
        [
            ("int32", 1, b"\1"),
            ("int64", 1, b""),
            ("float", 1.0, b"abc"),
            ("double", 1.0, b"1234567"),
            ("boolean", True, b""),
            ("fixed_len_byte_array(4)", b"abcd", b"abc"),
        ],
    )
    @pytest.mark.parametrize("names", [("min_value", "max_value"), ("min", "max")])
    def test_bounds_that_are_too_short_are_not_handed_to_the_library(self, kind, value, bound, names):
        data = forge(f"required {kind} v = 1;", [{"v": value}], statistics={"v": dict.fromkeys(names, bound)})
        with reader_of(data) as reader, pytest.raises(InvalidFile, match="a bound of"):
            reader.metrics()
        condition = bind(Schema(NestedField(1, "v", "int", required=True)), parse("v = 7"))
        if "min" in names or kind.startswith("fixed"):
            assert read(data, row_filter=condition).column("v").to_pylist() == [value]
            return
        with pytest.raises(InvalidFile):  # pyarrow does not read such a column at all
            read(data, row_filter=condition)

    def test_a_chunk_of_another_type_than_its_column_is_damage(self):
        data = forge("required int64 v = 1;", [{"v": 1}], statistics={"v": {"min_value": bytes(8)}})
        start = data.index(b"\x1c\x15\x04")  # the description of the chunk, which begins with the type
        hostile = data[: start + 2] + b"\x0c" + data[start + 3 :]
        with reader_of(hostile) as reader, pytest.raises(InvalidFile, match="another type"):
            reader.metrics()

    @pytest.mark.parametrize("rows", [1, 40])
    @pytest.mark.parametrize("more", [{}, {"write_page_index": True}, {"write_statistics": ["n", "deep.list.element"]}])
    def test_footers_of_any_shape_are_walked_to_their_end(self, rows, more):
        table = pa.table(
            {
                "n": range(rows),
                "a string whose bounds are long": ["x" * (number * 9) for number in range(rows)],
                "deep": [[number / 2] * (number % 4) for number in range(rows)],
                "bytes": pa.array([bytes([number] * 3) for number in range(rows)], pa.binary(3)),
                "flag": [True] * rows,
            }
        )
        out = pa.BufferOutputStream()
        pq.write_table(table, out, row_group_size=7, **more)
        data = bytes(out.getvalue())
        footer = data[-8 - struct.unpack("<I", data[-8:-4])[0] :]
        schema = pq.ParquetFile(pa.BufferReader(data)).schema
        check_statistics(footer, schema)
        # Each cut is noticed, so that nothing was passed over.
        for end in range(0, len(footer) - 9, max(1, len(footer) // 60)):
            with pytest.raises(ValueError, match=r"footer|statistics"):
                check_statistics(footer[:end], schema)

    def test_a_bound_that_is_too_short_is_found_in_each_chunk(self):
        """What is alike from chunk to chunk is passed over by its bytes, and the bounds are none of it."""
        numbers = [number * 0x0101010101 for number in range(1, 13)]
        table = pa.table({"a": numbers, "b": pa.array([-n for n in numbers]), "c": [n << 20 for n in numbers]})
        out = pa.BufferOutputStream()
        pq.write_table(table, out, row_group_size=3)
        data = bytes(out.getvalue())
        footer = data[-8 - struct.unpack("<I", data[-8:-4])[0] :]
        schema = pq.ParquetFile(pa.BufferReader(data)).schema
        check_statistics(footer, schema)
        found = 0
        for value in (each for column in table.columns for each in column.to_pylist()):
            bound = b"\x08" + value.to_bytes(8, "little", signed=True)
            for at in (at for at in range(len(footer)) if footer.startswith(bound, at)):
                found += 1
                with pytest.raises(ValueError, match="a bound of 5 bytes"):
                    check_statistics(footer[:at] + b"\x05" + footer[at + 1 :], schema)
        assert found == 4 * 3 * 4, "two minima and two maxima of three columns in four row groups"


class TestValues:
    @pytest.mark.parametrize("text", [b"\xff", b"abc\xc3", b"\xed\xa0\x80"])
    def test_a_string_that_is_not_utf_8_is_damage(self, text):
        for message, row in (
            ("required binary v (UTF8) = 1;", {"v": text}),
            ("optional group l (LIST) = 1 { repeated group list { required binary element (UTF8) = 2; } }",
             {"l": {"list": [{"element": b"fine"}, {"element": text}]}}),
            ("optional group m (MAP) = 1 { repeated group key_value { required binary key (UTF8) = 2; "
             "required int32 value = 3; } }", {"m": {"key_value": [{"key": text, "value": 1}]}}),
            ("optional group s = 1 { required binary t (UTF8) = 2; }", {"s": {"t": text}}),
        ):  # fmt: skip
            with pytest.raises(InvalidFile, match=r"memory://parquet/file.*UTF8"):
                read(forge(message, [row]))

    def test_strings_of_every_script_are_read(self):
        words = ["", "plain", "ünïcödé", "日本語", "😀", None] * 5
        data, _ = write(Schema(NestedField(1, "v", "string")), pa.table({"v": words}).cast(ONE_TEXT))
        assert read(data).column("v").to_pylist() == words
        assert read(data, batch_rows=4).column("v").to_pylist() == words

    @pytest.mark.parametrize(
        ("message", "value"),
        [
            ("required int32 v (DECIMAL(3,1)) = 1;", 1_000),
            ("required fixed_len_byte_array(16) v (DECIMAL(38,0)) = 1;", b"\x80" + bytes(15)),
            ("required int64 v (TIME_MICROS) = 1;", 86_400_000_000),
            ("required int64 v (TIME_MICROS) = 1;", -1),
        ],
    )
    def test_a_number_beyond_what_its_type_holds_is_damage(self, message, value):
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            read(forge(message, [{"v": value}]))


ONE_TEXT = schema_to_arrow(Schema(NestedField(1, "v", "string")))


def test_a_file_that_was_closed_is_let_go():
    """What pyarrow keeps of a failed read, and what that keeps, is out of sight of Python's collector."""
    schema, table = flat_table(50)
    data, _ = write(schema, table)

    def objects():
        for _ in range(20):
            with reader_of(data) as reader:
                list(reader.read(ReadRequest(reader.schema)))
        gc.collect()
        return len(gc.get_objects())

    objects()
    assert objects() - objects() < 20
    first = objects()
    assert objects() - first < 20


def test_a_page_that_claims_more_than_it_holds_is_damage():
    table = pa.table({"v": [7] * 50}).cast(schema_to_arrow(Schema(NestedField(1, "v", "long"))))
    data = write(Schema(NestedField(1, "v", "long")), table)[0]
    size = data.index(b"\x15")  # the type of the first page, then its size
    for lie in (b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f"):
        hostile = data[: size + 3] + lie + data[size + 4 :]
        with pytest.raises(InvalidFile):
            read(hostile[: len(data) - 8 + 4] + hostile[-8:])


class TestChecksums:
    def test_every_page_has_one(self):
        for codec in ("uncompressed", "zstd"):
            data = file(*flat_table(500), codec)
            pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()
            for at in self.inside_of_pages(data):
                hostile = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                with pytest.raises(OSError, match="CRC checksum verification failed"):
                    pq.ParquetFile(pa.BufferReader(hostile), page_checksum_verification=True).read()

    def test_a_bit_that_turned_on_the_way_is_noticed(self):
        data = file(*flat_table(500), "uncompressed")
        for at in self.inside_of_pages(data):
            hostile = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            remote = as_input_file(io.BytesIO(hostile), is_remote=True)
            opened = ParquetFormat().open_reader(remote, "memory://parquet/file")
            with opened as reader, pytest.raises(InvalidFile, match=r"memory://parquet/file.*CRC"):
                list(reader.read(ReadRequest(reader.schema)))

    def inside_of_pages(self, data):
        """The last byte of each column chunk, which is the last of a page."""
        footer = pq.ParquetFile(pa.BufferReader(data)).metadata
        for group in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(group).column(column)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                yield start + chunk.total_compressed_size - 1
