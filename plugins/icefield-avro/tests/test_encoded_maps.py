"""Maps of integers read as their encoding, and written again without being decoded."""

import random

import pyarrow as pa
import pytest
from avro_files import (
    by_value,
    check,
    container,
    cut,
    encode,
    long,
    open_file,
    read_file,
    sized,
    vectorized_only,
    write_file,
)
from icefield.errors import InvalidArgument, InvalidFile
from icefield.schema import Schema
from icefield.types import BinaryType, IntegerType, LongType, MapType, NestedField, StringType

SCHEMA = Schema(
    NestedField(1, "n", LongType(), required=True),
    NestedField(2, "counts", MapType(3, IntegerType(), 4, LongType(), value_required=True)),
    NestedField(5, "bounds", MapType(6, IntegerType(), 7, BinaryType(), value_required=True)),
)
MANIFEST = {"avro.record-name": "manifest_entry"}


def pairs(key, value, **more):
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    return {"type": "array", "items": {"type": "record", "name": f"kv{key}{len(str(value))}", "fields": fields}, **more}


def record(counts, bounds, *, null_first=True):
    unions = [["null", kind] if null_first else [kind, "null"] for kind in (counts, bounds)]
    fields = zip(("n", "counts", "bounds"), ("long", *unions), strict=True)
    return {"type": "record", "name": "t", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def some_rows(count, seed=1):
    draw = random.Random(seed)

    def made(row):
        keys = [*range(1, draw.choice((0, 3, 9)))]
        counts = [(key, draw.getrandbits(draw.choice((3, 20, 60)))) for key in keys]
        bounds = [(key - 300, draw.randbytes(draw.choice((0, 4, 70)))) for key in keys]
        return row, draw.choice((counts, None)), bounds

    return [made(row) for row in range(count)]


def file_of(schema, rows, layout=None):
    encoded = [encode(schema, row, layout) for row in rows]
    return container(schema, cut(encoded, random.Random(5), 300))


def encoded_columns(data):
    with open_file(data) as reader:
        return pa.schema([field if field.name == "n" else field.with_type(pa.binary()) for field in reader.schema])


def rewritten(data, **properties):
    encoded = read_file(data, encoded_columns(data))
    return write_file(SCHEMA, encoded.to_batches(), MANIFEST | properties)


def as_lists(rows):
    return [{"n": n, "counts": counts, "bounds": bounds} for n, counts, bounds in rows]


@pytest.mark.parametrize("count", [1, 5, 2_000])
@pytest.mark.parametrize("null_first", [True, False])
@pytest.mark.parametrize("layout", [None, random.Random(3)])
def test_maps_that_pass_encoded_are_the_same(count, null_first, layout):
    rows = some_rows(count)
    schema = record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map"))
    data = file_of(record(*(u[1] for u in unions(schema)), null_first=null_first), rows, layout)
    assert read_file(rewritten(data)).to_pylist() == as_lists(rows)
    with by_value():
        assert read_file(rewritten(data)).to_pylist() == as_lists(rows)


def unions(schema):
    return [field["type"] for field in schema["fields"][1:]]


def test_the_bytes_of_maps_are_not_changed():
    rows = some_rows(500)
    schema = record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map"))
    data = file_of(schema, rows, random.Random(4))
    kinds = [union[1] for union in unions(schema)]
    with vectorized_only():
        got = read_file(data, encoded_columns(data)).to_pylist()
    layout = random.Random(4)
    expected = []
    for n, counts, bounds in rows:  # in the order in which the file was laid out
        parts = [
            None if value is None else encode(kind, value, layout)
            for kind, value in zip(kinds, (counts, bounds), strict=True)
        ]
        expected.append({"n": n, "counts": parts[0], "bounds": parts[1]})
    assert got == expected


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [
        (pairs("int", "int", logicalType="map"), pairs("int", "bytes")),
        (pairs("long", "long", logicalType="map"), pairs("long", "bytes", logicalType="map")),
        (pairs("int", ["null", "long"], logicalType="map"), pairs("int", ["bytes", "null"])),
        (pairs("int", "long"), pairs("int", {"type": "fixed", "name": "four", "size": 4}, logicalType="map")),
    ],
)
def test_maps_of_other_layouts_are_encoded_anew(counts, bounds):
    rows = [(n, None if n % 7 == 0 else [(n % 5, n), (400, 3)], [(2, b"%04d" % n)]) for n in range(200)]
    data = file_of(record(counts, bounds), rows)
    assert read_file(rewritten(data)).to_pylist() == as_lists(rows)


@pytest.mark.parametrize(
    ("counts", "rows", "reason"),
    [
        (pairs("int", ["null", "long"], logicalType="map"), [(1, [(1, None)], [])], "a map with a null"),
        (pairs("long", "long", logicalType="map"), [(1, [(2**31, 5)], [])], "a key out of range"),
    ],
)
def test_maps_that_no_manifest_may_hold_are_refused(counts, rows, reason):
    data = file_of(record(counts, pairs("int", "bytes", logicalType="map")), rows * 50)
    with pytest.raises(InvalidFile, match=reason):
        read_file(data, encoded_columns(data))


@pytest.mark.parametrize(
    "kind", [pairs("string", "long", logicalType="map"), pairs("int", "string", logicalType="map"), "long", SCHEMA]
)
def test_only_maps_of_integers_to_integers_or_bytes_are_read_encoded(kind):
    fields = [{"name": "v", "type": kind if kind is not SCHEMA else {"type": "array", "items": "long"}}]
    data = container({"type": "record", "name": "t", "fields": fields}, [])
    with pytest.raises(InvalidArgument):
        read_file(data, pa.schema([("v", pa.binary())]))


def test_a_null_map_in_a_union_with_null_stays_null_among_many_rows():
    rows = [(n, None, []) for n in range(100)]
    data = file_of(record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map")), rows)
    assert check(data, columns=encoded_columns(data))["counts"].null_count == 100
    assert read_file(rewritten(data)).to_pylist() == as_lists(rows)


LONG = long(1 << 40)


@pytest.mark.parametrize(
    "bounds",
    [
        long(2) + long(1) + sized(b"abc") + long(2) + long(90) + b"x" + b"\0",  # a length beyond the block
        long(1) + long(1) + long(-4) + b"abc" + b"\0",  # a negative length
        LONG + long(1) + sized(b"abc") + b"\0",  # more entries than bytes
        long(1) + long(1) + sized(b"abc"),  # no end
    ],
)
@pytest.mark.parametrize("place", [0, 70, 2_999])
def test_a_damaged_extent_of_an_encoded_map_is_refused(bounds, place):
    schema = record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map"))
    rows = [encode(schema, (n, [(1, n)], [(1, b"abcd")])) for n in range(3_000)]
    rows[place] = long(place) + b"\0" + b"\2" + bounds
    data = container(schema, [rows])
    with pytest.raises(InvalidFile, match="in the block at byte"):
        read_file(data, encoded_columns(data))


@pytest.mark.parametrize("layout", [{"logicalType": "map"}, {}])
@pytest.mark.parametrize("integer", [b"\x80" * 10 + b"\0", b"\xff" * 12 + b"\1", b"\xff" * 9 + b"\2"])
@pytest.mark.parametrize("entries", [2, 3, 4, 5, 12])
def test_an_integer_of_more_than_64_bits_is_refused_in_an_encoded_map(layout, integer, entries):
    schema = record(pairs("int", "long", **layout), pairs("int", "bytes", logicalType="map"))
    rows = [encode(schema, (n, [(key, n + key) for key in range(entries)], None)) for n in range(3_000)]
    others = b"".join(long(key) + long(5) for key in range(entries - 1))
    rows[70] = long(70) + b"\2" + long(entries) + others + b"\2" + integer + b"\0" + b"\0"
    data = container(schema, [rows])
    with pytest.raises(InvalidFile, match=r"in the block at byte .*: an integer of more than"):
        read_file(data, encoded_columns(data))


def test_the_longest_integers_pass_encoded():
    rows = [(n, [(1, 2**63 - 1 - n), (2, -(2**63) + n), (-(2**31), 2**62)], []) for n in range(100)]
    data = file_of(record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map")), rows)
    with vectorized_only():
        assert read_file(rewritten(data)).to_pylist() == as_lists(rows)


def test_a_writer_takes_an_encoding_only_for_such_maps():
    schema = Schema(NestedField(1, "m", MapType(2, StringType(), 3, LongType())))
    batch = pa.record_batch({"m": pa.array([b"\0"])})
    with pytest.raises(InvalidArgument, match="does not fit the schema"):
        write_file(schema, [batch])


def test_slices_of_encoded_maps_are_written():
    rows = some_rows(300)
    data = file_of(record(pairs("int", "long", logicalType="map"), pairs("int", "bytes", logicalType="map")), rows)
    whole = read_file(data, encoded_columns(data)).combine_chunks().to_batches()[0]
    written = write_file(SCHEMA, [whole.slice(100, 150), whole.slice(250), whole.slice(3, 2)], MANIFEST)
    assert read_file(written).to_pylist() == as_lists([*rows[100:250], *rows[250:], *rows[3:5]])
