"""The vectorized decoder where it is hard: skewed arrays, long integers, guesses that mislead or lack."""

import random
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from avro_files import check, container, encode, open_file, read_file
from icefield.errors import InvalidFile
from icefield_avro.vectorized import guessing, starts
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Memory


def record(**fields):
    return {"type": "record", "name": "t", "fields": [{"name": k, "type": v} for k, v in fields.items()]}


def optional(kind):
    return ["null", kind]


def array_map(key, value, name="kv"):
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    return {"type": "array", "logicalType": "map", "items": {"type": "record", "name": name, "fields": fields}}


def file_of(schema, rows, each=50):
    records = [encode(schema, row) for row in rows]
    return container(schema, [records[i : i + each] for i in range(0, len(rows), each)])


@contextmanager
def counted_guesses(monkeypatch):
    """How many guesses were made, and how many were right."""
    seen = {"guesses": 0, "right": 0}
    real_guess, real_find = starts.guess_starts, starts._Walk.proved_starts

    def guess(*given):
        found = real_guess(*given)
        seen["last"] = found
        seen["guesses"] += len(found)
        return found

    def proved(self, begins):
        found = real_find(self, begins)
        seen["right"] += int(np.isin(seen["last"], found).sum())
        return found

    monkeypatch.setattr(starts, "guess_starts", guess)
    monkeypatch.setattr(starts._Walk, "proved_starts", proved)
    yield seen


EDGES = [0, 1, -1, 63, 64, -64, -65, 2**20, -(2**20), 2**48, 2**55 - 1, 2**55, -(2**55), 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("many", [2, 3, 6, 7, 20])
@pytest.mark.parametrize("bits", [6, 20, 62])
def test_integers_in_a_row_are_passed_together(many, bits):
    rng = random.Random(many)
    schema = record(**{f"a{at}": "long" for at in range(many)}, name="string", last="long")
    rows = [(*(rng.randrange(1 << bits) - 5 for _ in range(many)), "x" * (at % 9), at) for at in range(900)]
    rows[500] = (*([-(2**63)] * many), "", 1)
    table = check(file_of(schema, rows))
    check(file_of(schema, rows), columns=table.select(["last"]).schema)
    check(file_of(schema, rows), columns=table.select([f"a{many - 1}", "last"]).schema)


@pytest.mark.parametrize("long", [b"\x80" * 10 + b"\0", b"\xff" * 9 + b"\2"])
def test_an_integer_that_is_too_long_is_no_way_through(long):
    schema = record(a="long", b="long", c="long", last="long")
    records = [encode(schema, (at, at, at, 2**30)) for at in range(300)]
    records[200] = encode(schema, (1, 1, 1, 1))[:1] + long + encode(schema, (1, 1, 1, 1))[2:]
    data = container(schema, [records])
    columns = open_file(data).schema
    for wanted in (columns, pa.schema([columns.field("last")])):
        with pytest.raises(InvalidFile, match="integer"):
            read_file(data, columns=wanted)


@pytest.mark.spec("AVRO-01")
def test_integers_of_every_length_are_read():
    rng = random.Random(1)
    schema = record(a="long", b=optional("long"), c="int", d=optional("int"), e="long")
    rows = [
        (rng.choice(EDGES), rng.choice([None, *EDGES]), rng.choice([0, 2**31 - 1, -(2**31)]), rng.choice([None, 77]), i)
        for i in range(700)
    ]
    table = check(file_of(schema, rows))
    assert table.column("a").to_pylist() == [row[0] for row in rows]
    for columns in (["e"], ["d", "e"], ["b"], ["c"]):
        check(file_of(schema, rows), columns=table.select(columns).schema)


@pytest.mark.parametrize("item", ["long", "int", "double", "string", "boolean", optional("long"), optional("double")])
def test_a_few_rows_with_very_many_items_are_read(item):
    rng = random.Random(2)
    inner = item[1] if isinstance(item, list) else item
    make = {"double": rng.random, "string": lambda: "x" * rng.randrange(9), "boolean": lambda: rng.random() < 0.5}
    value = make.get(inner, lambda: rng.getrandbits(rng.choice((3, 20, 30))))
    lengths = [rng.choice((0, 1, 2, 5)) for _ in range(200)]
    lengths[17], lengths[100] = 3000, 700
    schema = record(a={"type": "array", "items": item}, b="string")
    rows = [
        ([None if isinstance(item, list) and rng.random() < 0.2 else value() for _ in range(n)], "x") for n in lengths
    ]
    data = file_of(schema, rows, 40)
    table = check(data)
    assert [len(x) for x in table.column("a").to_pylist()] == lengths
    check(data, columns=table.select(["b"]).schema)


def test_arrays_in_several_blocks_with_and_without_their_size_are_read():
    rng = random.Random(3)
    schema = record(
        a={"type": "array", "items": {"type": "array", "items": "long"}},
        m=array_map("int", "bytes"),
        d=optional({"type": "array", "items": "double"}),
        f={"type": "array", "items": {"type": "fixed", "name": "three", "size": 3}},
        b={"type": "array", "items": "boolean"},
        z="int",
    )
    rows = [
        (
            [[rng.getrandbits(60)] * rng.randrange(5)] * rng.randrange(5),
            [(k, b"v" * k) for k in range(rng.randrange(9))],
            rng.choice([None, [i / 7] * rng.randrange(6), [rng.random() for _ in range(30)]]),
            [bytes([i % 256, k, 9]) for k in range(rng.randrange(4))],
            [k % 3 == 0 for k in range(rng.randrange(12))],
            i,
        )
        for i in range(300)
    ]
    encoded = [encode(schema, row, rng) for row in rows]
    table = check(container(schema, [encoded[i : i + 60] for i in range(0, 300, 60)]))
    assert table.column("z").to_pylist() == list(range(300))
    check(container(schema, [encoded]), columns=table.select(["z"]).schema)


@pytest.mark.parametrize("value", ["long", "bytes", "string", "int", optional("long"), "double"])
@pytest.mark.parametrize("keys", ["same", "rotated", "high", "negative", "ragged"])
def test_maps_with_integer_keys_are_read_whatever_their_keys(value, keys):
    rng = random.Random(4)
    columns = {"high": [60, 63, 64, 100, 8191, 8192, 2147483546], "negative": [-1, 0, 5, -70, 3]}.get(
        keys, list(range(12))
    )

    def entry(key):
        kind = value[1] if isinstance(value, list) else value
        if kind in ("bytes", "string"):
            data = "é" * rng.randrange(3) + "x" * rng.choice((0, 3, 62, 63, 64, 200))
            return key, data if kind == "string" else data.encode()
        if kind == "double":
            return key, rng.random()
        return key, None if isinstance(value, list) and rng.random() < 0.3 else rng.getrandbits(rng.choice((4, 30)))

    rows = []
    for i in range(300):
        chosen = columns[i % 3 :] + columns[: i % 3] if keys == "rotated" else columns
        chosen = [k for k in chosen if rng.random() < 0.7] if keys == "ragged" else chosen
        rows.append(([entry(k) for k in chosen], None if i % 7 else [entry(columns[0])], i))
    schema = record(m=array_map("int", value), o=optional(array_map("int", value, "kv2")), z="int")
    data = file_of(schema, rows)
    table = check(data)
    check(data, columns=table.select(["z"]).schema)
    check(data, columns=table.select(["o", "z"]).schema)


@pytest.mark.parametrize("wanted", [{1, 2}, {99}, set(), {3, 64, 8192}])
def test_only_wanted_keys_of_a_map_come(wanted):
    rng = random.Random(5)
    columns = [1, 2, 3, 63, 64, 8192]
    rows = []
    for i in range(400):
        chosen = [k for k in columns if i < 200 or rng.random() < 0.8]
        rows.append((None if i % 50 == 0 else [(k, b"%d" % (k * i)) for k in chosen], i))
    schema = record(m=optional(array_map("int", "bytes")), z="int")
    schema["fields"][0]["field-id"] = 125
    data = file_of(schema, rows)
    table = check(data, map_keys={125: frozenset(wanted)})
    for row, got in zip(rows, table.column("m").to_pylist(), strict=True):
        assert got == (None if row[0] is None else [(k, v) for k, v in row[0] if k in wanted])


def test_strings_of_every_length_and_script_are_read():
    rng = random.Random(6)
    texts = ["", "a", "12345678", "123456789", "ä", "äöüäöü", "日本", "x" * 63, "x" * 64, "y" * 9000, None]
    for chosen in (texts, texts[:3], ["ä", "b", None, "日本"], ["", ""], [None, None, "q"]):
        rows = [(rng.choice(chosen), rng.choice([t for t in chosen if t is not None])) for _ in range(300)]
        schema = record(a=optional("string"), b="string")
        table = check(file_of(schema, rows))
        assert table.column("a").to_pylist() == [row[0] for row in rows]
        raw = record(a=optional("bytes"), b="bytes")
        check(file_of(raw, [(None if a is None else a.encode(), b.encode()) for a, b in rows]))


def test_nested_records_that_are_null_are_read():
    def inner(name):
        fields = [{"name": "x", "type": "string"}, {"name": "y", "type": optional("long")}]
        return {"type": "record", "name": name, "fields": fields}

    outer = {
        "type": "record",
        "name": "o",
        "fields": [
            {"name": "i", "type": optional(inner("i1"))},
            {"name": "l", "type": optional({"type": "array", "items": optional(inner("i2"))})},
            {"name": "m", "type": array_map("int", "long")},
            {"name": "plain", "type": inner("i3")},
        ],
    }
    rng = random.Random(7)

    def make():
        return ("x" * rng.randrange(12), rng.choice([None, 5]))

    def maybe(value):
        return value if rng.random() < 0.6 else None

    def make_outer():
        items = [maybe(make()) for _ in range(rng.randrange(4))]
        return maybe(make()), maybe(items), [(1, 2)] * rng.randrange(3), make()

    rows = [(maybe(make_outer()), i) for i in range(500)]
    table = check(file_of(record(o=optional(outer), z="long"), rows))
    pruned = table.schema.field("o").type
    only = pa.schema([pa.field("o", pa.struct([pruned.field("plain"), pruned.field("m")]))])
    check(file_of(record(o=optional(outer), z="long"), rows), columns=only)


def test_records_are_guessed_right_where_they_have_a_shape(monkeypatch):
    rng = random.Random(8)
    schema = record(a=optional("long"), b="double", c=optional("string"), d="boolean")
    rows = [(i, rng.random(), "x" * rng.randrange(20), True) for i in range(8000)]
    with counted_guesses(monkeypatch) as seen:
        check(file_of(schema, rows, 4000))
    assert seen["guesses"] > 100
    assert seen["right"] > 0.9 * seen["guesses"]


def test_records_without_any_shape_are_read_all_the_same(monkeypatch):
    """Two integers in a row look like a record wherever one begins, and text can hold whole records."""
    rng = random.Random(9)
    schema = record(a="long", b="long")
    check(file_of(schema, [(rng.getrandbits(20), rng.getrandbits(20)) for _ in range(9000)], 3000))
    schema = record(a="string", b=optional("int"))
    trap = b"".join(encode(schema, ("xy", 7)) for _ in range(5)).decode()
    rows = [(trap * rng.randrange(3), rng.choice([None, 7])) for _ in range(6000)]
    check(file_of(schema, rows, 3000))
    with monkeypatch.context() as patch:
        patch.setattr(guessing, "_most_votes", lambda at, window, votes: at + 1)  # every guess is wrong
        check(file_of(schema, rows, 3000))
    with monkeypatch.context() as patch:
        patch.setattr(starts, "guess_starts", lambda *given: np.zeros(0, np.int64))  # there is none
        check(file_of(schema, rows[:500], 500))
        check(file_of(schema, rows, 20))


PATH = "s3://warehouse/table/data/part-%05d-%s.parquet"


def manifest_like(
    rows, bounds=lambda path, i: [(1, b"%08d" % i), (2, b"abc")], prefix=lambda i: "", snapshots=(None, 7, 2**62)
):
    schema = record(
        status="int",
        snapshot=optional("long"),
        file={
            "type": "record",
            "name": "r2",
            "fields": [
                {"name": "path", "type": "string"},
                {"name": "counts", "type": optional(array_map("int", "long", "k1"))},
                {"name": "lower", "type": optional(array_map("int", "bytes", "k2"))},
                {"name": "upper", "type": optional(array_map("int", "bytes", "k3"))},
                {"name": "offsets", "type": optional({"type": "array", "items": "long"})},
            ],
        },
    )
    rng = random.Random(10)
    out = []
    for i in range(rows):
        path = prefix(i) + PATH % (i, f"{rng.getrandbits(128):032x}")
        counts = [(k, rng.getrandbits(20)) for k in range(10)]
        snapshot = rng.choice(snapshots)
        out.append((1, snapshot, (path, counts, bounds(path, i), bounds(path, i), [4, rng.getrandbits(25)])))
    return file_of(schema, out, 60), out


@pytest.mark.spec("MAN-01")
def test_entries_of_manifests_are_found_without_a_walk(monkeypatch):
    data, rows = manifest_like(900, snapshots=(None,))
    walks = []
    monkeypatch.setattr(starts._Walk, "__init__", lambda *given: walks.append(given))
    table = check(data)
    assert [row["path"] for row in table.column("file").to_pylist()] == [row[2][0] for row in rows]
    assert not walks


@pytest.mark.spec("MAN-01")
def test_entries_of_several_snapshots_are_read():
    data, rows = manifest_like(900)
    assert check(data).column("snapshot").to_pylist() == [row[1] for row in rows]


@pytest.mark.spec("MAN-01")
def test_manifests_whose_bounds_hold_paths_are_read():
    """As those of position deletes: the same bytes begin a record and are inside it."""
    data, rows = manifest_like(700, bounds=lambda path, i: [(2147483546, path.encode()), (2147483545, b"\0" * 8)])
    table = check(data)
    assert [row["path"] for row in table.column("file").to_pylist()] == [row[2][0] for row in rows]


@pytest.mark.parametrize("share", [2, 10, 1000])
def test_manifests_with_paths_of_several_locations_are_read(share):
    data, rows = manifest_like(700, prefix=lambda i: "" if i % share else "hdfs://elsewhere/")
    table = check(data)
    assert [row["path"] for row in table.column("file").to_pylist()] == [row[2][0] for row in rows]


def test_paths_that_hold_the_bytes_of_other_paths_mislead_nobody():
    """The bytes are found once for each record, and in some of them not where the path begins."""
    data, rows = manifest_like(700, prefix=lambda i: "hdfs://elsewhere/" if i % 10 == 5 else "", snapshots=(None,))
    table = check(data)
    assert [row["path"] for row in table.column("file").to_pylist()] == [row[2][0] for row in rows]


def test_a_block_for_each_record_is_read():
    schema = record(a="string", b=optional("long"))
    check(file_of(schema, [("x" * (i % 70), i) for i in range(300)], 1))


def test_the_same_memory_serves_one_group_after_another():
    memory = Memory()
    first = ByteBuffer([b"abc", b"defg"], 40, memory)
    room = first.raw
    assert bytes(first.raw[:7]) == b"abcdefg"
    second = ByteBuffer([b"xy"], 40, memory)
    assert second.raw is room
    assert bytes(second.raw[:10]) == b"xy" + bytes(8)
    assert ByteBuffer([bytes(500)], 40, memory).raw is not room


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 30])
def test_many_integers_are_passed_at_once(count):
    rng = random.Random(11)
    from avro_files import long

    rows = [[rng.getrandbits(rng.choice((3, 10, 33, 56, 63))) for _ in range(count + i % 3)] for i in range(200)]
    encoded = [b"".join(map(long, row)) for row in rows]
    buffer = ByteBuffer([b"".join(encoded)], 200, Memory())
    lengths = np.array([len(part) for part in encoded])
    ends = np.cumsum(lengths)
    assert (buffer.ends_of_many_longs(ends - lengths, np.array([len(row) for row in rows])) == ends).all()


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1024, 2500])
def test_bytes_that_differ_among_rows_are_stated_from_those_that_do_not(rows):
    payload = bytearray(random.Random(3).randbytes(16) * rows)
    buffer = ByteBuffer([bytes(payload)], 64, Memory())
    at = np.arange(rows) * 16
    assert not buffer.differing(at, 13).any()
    payload[16 * (rows - 1) + 5] ^= 0x81
    buffer = ByteBuffer([bytes(payload)], 64, Memory())
    expected = [0] * 13
    expected[5] = 0x81 if rows > 1 else 0
    assert buffer.differing(at, 13).tolist() == expected
    assert buffer.differing(at + len(buffer.raw), 13) is None


@pytest.mark.parametrize(("uneven", "odd"), [(None, 40), (0, 0), (17, 17), (39, 39)])
def test_integers_of_one_length_in_all_rows_are_passed_at_once(uneven, odd):
    rng = random.Random(uneven)
    schema = record(a="long", m=array_map("int", "long"), z="long")
    rows = [(i, [(k, 0x4000 + rng.randrange(99)) for k in range(20)], i) for i in range(200)]
    if uneven is not None:
        key, value = rows[100][1][uneven // 2]
        rows[100][1][uneven // 2] = (key + 100, value) if uneven % 2 == 0 else (key, 3)
    bodies = [encode(schema["fields"][1]["type"], entries) for _, entries, _ in rows]
    buffer = ByteBuffer(bodies, 600, Memory())
    at = np.concatenate([[0], buffer.ends[:-1]]) + 1  # behind the number of entries
    assert buffer.longs_of_one_length(at, 40)[0] == odd
    only_two = read_columns(file_of(schema, rows), "a", "z")
    assert only_two.column("z").to_pylist() == list(range(200))


def read_columns(data, *names):
    schema = open_file(data).schema
    return check(data, columns=pa.schema([schema.field(name) for name in names]))


def test_entries_of_one_layout_are_read_whatever_row_departs_from_it():
    schema = record(a="long", m=array_map("int", "bytes"), z="long")
    plain = [(k, b"%08d" % k) for k in range(12)]
    departures = [(0, (99, b"x" * 8)), (5, (5, b"longer than it")), (11, (11, b"")), (11, (70, b"y" * 8))]
    for place, entry in departures:
        rows = [(i, list(plain), i) for i in range(300)]
        rows[211][1][place] = entry
        data = file_of(schema, rows)
        assert check(data).column("m").to_pylist()[211][place] == entry
        assert read_columns(data, "a", "z").column("z").to_pylist() == list(range(300))
