"""Headers and blocks that claim very much, or hold very many small things: a typed error, soon, and little memory."""

import json

import pytest
from avro_files import FORMAT, SYNC
from bounded import bounded
from icefield.abc import ReadRequest
from icefield.errors import IcefieldError
from icefield.toolkit import BytesInput
from icefield_avro.varints import encode_bytes, encode_long

MOST = 2**62
MEBI = 1 << 20


def rows_of(data):
    with FORMAT.open_reader(BytesInput(data), "memory://avro/file", size=len(data)) as reader:
        return sum(batch.num_rows for batch in reader.read(ReadRequest(reader.schema)))


def record(*kinds, **more):
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "r", "fields": fields, **more}


def header(schema):
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return b"Obj\1" + encode_long(1) + encode_bytes(b"avro.schema") + encode_bytes(text) + b"\0" + SYNC


def block(records, data, size=None):
    return encode_long(records) + encode_long(len(data) if size is None else size) + data + SYNC


ONE = header(record("long"))
ENTRY = encode_long(1) + encode_bytes(b"k") + encode_bytes(b"")
HOSTILE = {
    "a schema of 60 MB": lambda: header(record("long", doc="x" * (60 * MEBI))),
    "a schema of 15 MB of numbers": lambda: header(b"[" + b"1," * (7 * MEBI) + b"1]"),
    "a schema of 15 MB of objects": lambda: header(b"[" + b"{}," * (5 * MEBI) + b"1]"),
    "a schema of brackets": lambda: header(b"[" * (7 * MEBI)),
    "one key again and again": lambda: b"Obj\1" + ENTRY * (10 * MEBI) + b"\0" + SYNC,
    "very many keys": lambda: b"Obj\1" + encode_long(MOST) + bytes(100),
    "fewer than no keys": lambda: b"Obj\1" + encode_long(-MOST) + encode_long(5) + bytes(100),
    "a value without end": lambda: b"Obj\1" + encode_long(1) + encode_bytes(b"k") + encode_long(MOST),
    "a block of very many records": lambda: ONE + block(MOST, b"\2"),
    "a block of very many bytes": lambda: ONE + block(1, b"\2", MOST),
    "a block of fewer than no bytes": lambda: ONE + block(1, b"\2", -1),
    "a block of fewer than no records": lambda: ONE + block(-1, b"\2"),
    "very many blocks without a record": lambda: ONE + block(0, b"") * MEBI,
    "very many records without a byte": lambda: header(record("null")) + block(2**40, b""),
    "very many blocks of records without a byte": lambda: header(record("null")) + block(MEBI, b"") * 50_000,
    "very many blocks of records without a field": lambda: header(record()) + block(MEBI, b"") * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_claims_very_much_is_refused_soon(name):
    data = HOSTILE[name]()
    with bounded(), pytest.raises(IcefieldError, match="memory://avro/file"):
        rows_of(data)


def test_a_thousand_columns_are_read_in_bounded_time():
    with bounded():
        assert rows_of(header(record(*["long"] * 1_000)) + block(1, b"\2" * 1_000)) == 1


NO_BYTES = {"type": "fixed", "name": "no", "size": 0}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "f", "type": NO_BYTES}]}


@pytest.mark.parametrize(("kinds", "row"), [((), []), (("null",), [None]), (("null", INNER), [None, {"f": b""}])])
def test_records_that_take_no_byte_are_read_all_at_once(kinds, row):
    data = header(record(*kinds)) + block(MEBI, b"") * 4 + block(3, b"")
    with bounded(seconds=1), FORMAT.open_reader(BytesInput(data), "memory://avro/file", size=len(data)) as reader:
        batches = list(reader.read(ReadRequest(reader.schema, positions=True)))
    assert sum(batch.num_rows for batch in batches) == 4 * MEBI + 3
    for batch in batches[-2:]:
        batch.validate(full=True)
        assert [column[-1].as_py() for column in batch.columns[:-1]] == row
    assert batches[-1].column("_pos").to_pylist() == [4 * MEBI, 4 * MEBI + 1, 4 * MEBI + 2]
