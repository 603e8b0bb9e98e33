"""Damaged and hostile files: one typed error with the location, in bounded time and memory, and never a wrong row."""

import json
import random
import time
import tracemalloc

import pyarrow as pa
import pytest
from avro_files import (
    SYNC,
    by_value,
    container,
    deflate,
    encode,
    files,
    long,
    open_file,
    read_file,
    sized,
    vectorized_only,
)
from fuzzing import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidFile, UnsupportedFeature

FLAT = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": "double"},
        {"name": "d", "type": {"type": "array", "items": "int"}},
        {"name": "e", "type": ["null", "boolean"]},
    ],
}


def flat_file(rows=400, each=60, **how):
    rng = random.Random(3)
    values = [
        (
            rng.getrandbits(rng.randrange(1, 50)),
            rng.choice([None, "x" * rng.randrange(20)]),
            rng.random(),
            [i] * (i % 3),
            i % 2 == 0,
        )
        for i in range(rows)
    ]
    records = [encode(FLAT, row) for row in values]
    return container(FLAT, [records[i : i + each] for i in range(0, rows, each)], **how)


def outcome(data):
    """The table, or the kind of error where that names the file."""
    try:
        return read_file(data)
    except (InvalidFile, UnsupportedFeature) as error:
        return type(error) if "memory://test/file.avro" in str(error) else error


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_thousands_of_mutations_give_rows_or_one_typed_error(codec):
    data = flat_file(120, 40, codec=codec, pack=deflate if codec == "deflate" else None)
    rng = random.Random(5)
    started = time.process_time()
    outcomes = [outcome(mutated(data, rng)) for _ in range(1500)]
    assert all(isinstance(found, pa.Table) or found in (InvalidFile, UnsupportedFeature) for found in outcomes)
    refused = sum(isinstance(found, type) for found in outcomes)
    assert 500 < refused < len(outcomes)
    assert time.process_time() - started < 30


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=files(), seed=st.integers(0, 1 << 30))
def test_both_decoders_agree_on_damaged_blocks(made, seed):
    rng = random.Random(seed)
    with open_file(made.data) as reader:
        header = made.data.index(SYNC) + 16
        assert len(reader.schema)
    for _ in range(3):
        data = made.data[:header] + mutated(made.data[header:], rng) if len(made.data) > header else made.data
        with by_value():
            plain = outcome(data)
        with vectorized_only(strictly=False):
            fast = outcome(data)
        assert isinstance(plain, type) == isinstance(fast, type)
        if isinstance(plain, pa.Table):
            fast.validate(full=True)
            assert repr(plain.to_pydict()) == repr(fast.to_pydict()) if not _has_days(plain.schema) else True


@pytest.mark.parametrize("precision", [5, 18, 32, 38])
def test_a_number_with_more_digits_than_any_decimal_is_damage(precision):
    kind = {"type": "fixed", "name": "d", "size": 16, "logicalType": "decimal", "precision": precision, "scale": 0}
    schema = {"type": "record", "name": "t", "fields": [{"name": "v", "type": kind}]}
    data = container(schema, [[bytes(16), b"\x80" + bytes(15)] * 200])
    for decoder in (by_value(), vectorized_only(strictly=False)):
        with decoder:
            assert outcome(data) is InvalidFile


def _has_days(schema):
    """Whether Python may be unable to show a value: times beyond its calendar."""
    return any(word in str(schema) for word in ("timestamp", "date", "time"))


@pytest.mark.parametrize("cut", range(0, 700, 13))
def test_a_truncated_file_is_refused(cut):
    data = flat_file(40, 20)
    assert outcome(data[: min(cut, len(data) - 1)]) is InvalidFile


def test_what_is_no_avro_file_is_refused():
    for data in (b"", b"O", b"Obj", b"Obj\x02", b"PAR1" * 10, b"Obj\x01", b"Obj\x01\x00"):
        assert outcome(data) is InvalidFile


def test_a_header_without_schema_is_refused():
    assert outcome(b"Obj\x01\0" + SYNC) is InvalidFile


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[" * 100_000,
        '{"type":' * 5000 + '"int"' + "}" * 5000,
        '{"type":"record","name":"a"}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":"nothing"}]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":"int"},{"name":"x","type":"int"}]}',
        '{"type":"record","name":"a","fields":[{"type":"int"}]}',
        '{"type":"record","fields":[]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":{"type":"fixed","name":"f","size":-1}}]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":{"type":"fixed","name":"f","size":1e9}}]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":{"type":"enum","name":"e","symbols":[]}}]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":{"type":"array"}}]}',
        '{"type":"record","name":"a","fields":[{"name":"x","type":7}]}',
        '{"type":"record","name":"a","fields":[{"name":"\\ud800","type":"int"}]}',
        '"int"',
        "[]",
    ],
)
def test_a_schema_that_is_none_is_refused(schema):
    header = b"Obj\x01\x02" + sized(b"avro.schema") + sized(schema.encode()) + b"\0" + SYNC
    assert outcome(header) in (InvalidFile, UnsupportedFeature)


def test_a_schema_that_doubles_with_each_name_is_refused():
    inner = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, 40):
        twice = [{"name": "a", "type": inner}, {"name": "b", "type": f"r{level - 1}"}]
        inner = {"type": "record", "name": f"r{level}", "fields": twice}
    started = time.process_time()
    assert outcome(container(inner, [])) is InvalidFile
    assert time.process_time() - started < 2


def test_a_type_that_contains_itself_is_refused():
    node = {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]}
    with pytest.raises(UnsupportedFeature, match="contains itself"):
        open_file(container(node, []))


@pytest.mark.spec("AVRO-14")
@pytest.mark.parametrize("union", [["null", "int", "string"], ["int", "string"], ["null"], [], ["null", "null"]])
def test_a_union_other_than_with_null_is_refused(union):
    schema = {"type": "record", "name": "n", "fields": [{"name": "x", "type": union}]}
    with pytest.raises(UnsupportedFeature, match="union"):
        open_file(container(schema, []))


def one(kind, body, count=1):
    schema = {"type": "record", "name": "n", "fields": [{"name": "x", "type": kind}]}
    header = container(schema, [])
    return header + long(count) + sized(body) + SYNC


ARRAY = {"type": "array", "items": "null"}
EMPTY = {"type": "record", "name": "e", "fields": []}


@pytest.mark.parametrize(
    "data",
    [
        one("string", long(1 << 40)),
        one("bytes", long(-5) + b"12345"),
        one("long", b"\xff" * 10 + b"\x01"),
        one("long", b"\xff" * 9 + b"\x02"),
        one("int", long(1 << 31)),
        one("boolean", b"\x02"),
        one("string", sized(b"\xff\xfe")),
        one(["null", "int"], long(2)),
        one({"type": "enum", "name": "q", "symbols": ["A"]}, long(1)),
        one({"type": "array", "items": "int"}, long(1 << 50)),
        one({"type": "array", "items": "int"}, long(-(1 << 63)) + long(1) + b"\0"),
        one(ARRAY, long(1 << 40) + b"\0"),
        one(ARRAY, (long(1 << 19) + b"\0") * 8, 8),
        one(EMPTY, b"", 1 << 40),
        one("int", b"", 1 << 50),
        one("int", b"\0", 0),
        one("int", b"\0\0", 1),
        one("int", b"\0", -1),
        one({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}, sized(b"\x7f\xff")),
        one({"type": "long", "logicalType": "timestamp-millis"}, long(1 << 62)),
    ],
)
def test_a_value_that_cannot_be_is_refused(data):
    started = time.process_time()
    for how in (by_value(), vectorized_only(strictly=False)):
        with how:
            assert outcome(data) is InvalidFile
    assert time.process_time() - started < 5


@pytest.mark.parametrize("fields", [12, 300])
def test_hostile_lengths_cost_neither_time_nor_memory(fields):
    """Each record claims arrays as long as the whole block."""
    schema = {
        "type": "record",
        "name": "n",
        "fields": [{"name": f"x{i}", "type": {"type": "array", "items": "long"}} for i in range(fields)],
    }
    body = long(60_000) * 20_000
    data = container(schema, []) + (long(50) + sized(body) + SYNC) * 4
    tracemalloc.start()
    started = time.process_time()
    assert outcome(data) is InvalidFile
    assert time.process_time() - started < 10
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


def test_a_block_that_inflates_without_end_is_refused(monkeypatch):
    from icefield_avro import codecs

    monkeypatch.setattr(codecs, "MAX_INFLATED", 1 << 20)
    bomb = deflate(bytes(1 << 24))
    data = container(FLAT, [], "deflate") + long(1) + sized(bomb) + SYNC
    with pytest.raises(InvalidFile, match="inflates to more than"):
        read_file(data)


@pytest.mark.parametrize("blocks", [3, 60])
def test_a_record_that_goes_on_into_the_next_block_is_refused(blocks):
    """The last array of the second block takes the next block's only record for its items, and ends where that ends."""
    schema = {"type": "record", "name": "n", "fields": [{"name": "x", "type": {"type": "array", "items": "int"}}]}
    whole, torn = b"\x02\x02\x00", b"\x02\x02\x00\x02\x02\x04"
    data = container(schema, [])
    for body in [whole, torn] + [whole] * blocks:
        data += long(2 if body is torn else 1) + sized(body) + SYNC
    for how in (by_value(), vectorized_only(strictly=False)):
        with how:
            assert outcome(data) is InvalidFile


def test_the_message_names_the_block():
    data = bytearray(flat_file(200, 50))
    blocks = [i for i in range(len(data)) if data[i : i + 16] == SYNC]
    start = blocks[2] + 16
    data[start + 20 : start + 60] = b"\xff" * 40
    with pytest.raises(InvalidFile, match=f"byte {start:,}") as caught:
        read_file(bytes(data))
    assert caught.value.location == "memory://test/file.avro"


def test_a_schema_is_bounded_in_bytes(monkeypatch):
    from icefield_avro import schema_reading

    monkeypatch.setattr(schema_reading, "MAX_SCHEMA_BYTES", 1000)
    schema = {"type": "record", "name": "n", "doc": "x" * 2000, "fields": []}
    assert len(json.dumps(schema)) > 1000
    with pytest.raises(InvalidFile, match="schema of more than"):
        open_file(container(schema, []))
