"""Arrays and maps with very many items in one record: read right, and in time that grows with their bytes alone."""

import random
import time

import pyarrow as pa
import pytest
from avro_files import by_value, check, container, encode, long, read_file, sized, vectorized_only
from icefield.errors import InvalidFile
from icefield_avro.vectorized import nested
from icefield_avro.vectorized.nested import ArrayStep


def record(**fields):
    return {"type": "record", "name": "t", "fields": [{"name": k, "type": v} for k, v in fields.items()]}


def optional(kind):
    return ["null", kind]


def array_map(key, value):
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    return {"type": "array", "logicalType": "map", "items": {"type": "record", "name": "kv", "fields": fields}}


MANY = 40_000

SUMMARY = {
    "type": "record",
    "name": "summary",
    "fields": [
        {"name": "contains_null", "type": "boolean"},
        {"name": "contains_nan", "type": optional("boolean")},
        {"name": "lower_bound", "type": optional("bytes")},
        {"name": "upper_bound", "type": optional("bytes")},
    ],
}
KINDS = {
    "bounds": array_map("int", "bytes"),
    "counts": array_map("int", "long"),
    "optional counts": array_map("int", optional("long")),
    "integers": {"type": "array", "items": "long"},
    "summaries": {"type": "array", "items": SUMMARY},
    "strings": {"type": "map", "values": "string"},
    "doubles": {"type": "array", "items": "double"},
    "booleans": {"type": "array", "items": "boolean"},
    "lists": {"type": "array", "items": {"type": "array", "items": "long"}},
}


def items_of(kind, count, seed=1):
    rng = random.Random(seed)
    make = {
        "bounds": lambda i: (i + 1, b"bound of a column"[: i % 17] + bytes([i % 256])),
        "counts": lambda i: (i + 1, i * i % 1_000_003),
        "optional counts": lambda i: (i + 1, None if i % 3 else i),
        "integers": lambda i: rng.getrandbits(rng.choice((3, 20, 60))),
        "summaries": lambda i: (i % 2 == 0, None, b"%d" % i, None if i % 5 else b"\x82" * (i % 9)),
        "strings": lambda i: (f"key {i}", "é" * (i % 5)),
        "doubles": lambda i: i / 7,
        "booleans": lambda i: i % 3 == 0,
        "lists": lambda i: list(range(i % 3)),
    }[kind]
    return [make(i) for i in range(count)]


def laid_out(kind, items, each=None, sizes=False):
    """An array in blocks of so many items (None: one block; a list: of these numbers in turn)."""
    schema = KINDS[kind]
    if schema["type"] == "map":
        parts = [encode("string", key) + encode(schema["values"], value) for key, value in items]
    else:
        parts = [encode(schema["items"], item) for item in items]
    out, at = [], 0
    turns = each if isinstance(each, list) else [each or max(len(parts), 1)]
    while at < len(parts):
        block = parts[at : at + turns[len(out) % len(turns)]]
        body = b"".join(block)
        out.append(long(-len(block)) + sized(body) if sizes else long(len(block)) + body)
        at += len(block)
    return b"".join(out) + b"\0"


def file_with(kind, arrays, each=50):
    """A file with an array in each record, between a path and a number."""
    schema = record(path="string", a=KINDS[kind], z="long")
    rows = [sized(b"s3://bucket/table/data/%06d" % i) + array + long(i) for i, array in enumerate(arrays)]
    return container(schema, [rows[i : i + each] for i in range(0, len(rows), each)])


def check_speed(data, **request):
    """Vector operations take at most a few times as long as values one by one, of about a microsecond each.

    A round of vector operations for each item takes ten to fifty times as long. Times of the processor, side by side,
    so that a busy machine changes nothing.
    """
    for _ in range(3):
        with by_value():
            plain = seconds(data, **request)
        with vectorized_only():
            ours = seconds(data, **request)
        if ours < 4 * plain + 0.02:
            return
    raise AssertionError(f"{ours:.3f} s, value by value {plain:.3f} s")


def seconds(data, **request):
    start = time.process_time()
    read_file(data, **request)
    return time.process_time() - start


LAYOUTS = {"one block": None, "blocks of one": 1, "blocks of seven": 7, "uneven blocks": [1, 1, 5, 1, 300]}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_array_takes_time_that_grows_with_its_bytes_alone(kind, layout):
    data = file_with(kind, [laid_out(kind, items_of(kind, MANY), LAYOUTS[layout], sizes=layout == "blocks of seven")])
    table = check(data)
    assert len(table.column("a").to_pylist()[0]) == MANY
    only = table.select(["z"]).schema
    check(data, columns=only)
    check_speed(data)
    if layout == "one block":
        check_speed(data, columns=only)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bounds", "counts", "summaries"])
def test_a_long_array_among_thousands_of_short_ones_takes_no_longer_than_both_apart(kind):
    short, many = laid_out(kind, items_of(kind, 5)), laid_out(kind, items_of(kind, MANY))
    data = file_with(kind, [short] * 5000 + [many] + [short] * 5000, 500)
    table = check(data)
    assert len(table.column("a").to_pylist()[5000]) == MANY
    check_speed(data)


def test_the_wanted_keys_of_long_maps_are_found():
    rows = [laid_out("bounds", items_of("bounds", n)) for n in (5, 3000, 0, 3000, 700, 257, 256, 2)]
    schema = record(path="string", a=KINDS["bounds"], z="long")
    schema["fields"][1]["field-id"] = 125
    data = container(schema, [[sized(b"p%d" % i) + row + long(i) for i, row in enumerate(rows)]])
    found = check(data, map_keys={125: frozenset({3, 700, 2999})}).column("a").to_pylist()
    keys = [[key for key, _ in row] for row in found]
    assert keys == [[3], [3, 700, 2999], [], [3, 700, 2999], [3, 700], [3], [3], []]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_length_in_blocks_of_any_length_are_read(kind):
    """Lengths about all the limits at which the way of walking changes."""
    rng = random.Random(7)
    edges = [0, 1, 2, 63, 64, 65, 66, 255, 256, 257, 300, 1100]
    for rows in (1, 3, 70):
        arrays = []
        for i in range(rows):
            items = items_of(kind, rng.choice(edges), i)
            each = rng.choice([None, 1, 2, 3, 64, 65, 257, [1] * 9 + [2], [1, 70], [300, 1]])
            arrays.append(laid_out(kind, items, each, rng.random() < 0.3))
        data = file_with(kind, arrays, rng.choice((1, 10, 100)))
        table = check(data)
        check(data, columns=table.select(["z"]).schema)


@pytest.mark.slow
def test_more_than_a_few_long_arrays_of_different_lengths_are_read():
    lengths = [300] * 70 + [4000, 3000, 2000, 5] + [280] * 10
    for kind in ("bounds", "counts", "summaries"):
        check(file_with(kind, [laid_out(kind, items_of(kind, n)) for n in lengths], 1000))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bounds", "counts", "integers", "summaries", "lists", "doubles"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_long_array_that_is_damaged_anywhere_is_read_by_both_decoders_alike(kind, layout):
    rng = random.Random(3)
    whole = laid_out(kind, items_of(kind, 1500), LAYOUTS[layout])
    for _ in range(12):
        array = bytearray(whole)
        array[rng.randrange(len(array))] ^= 1 << rng.randrange(8)
        data = file_with(kind, [bytes(array)])
        with vectorized_only(strictly=False):
            got = outcome(data)
        with by_value():
            assert outcome(data) == got


def outcome(data):
    try:
        return read_file(data)
    except InvalidFile as error:
        return str(error)


def test_an_array_that_claims_more_items_than_it_has_is_refused():
    for kind in ("bounds", "counts", "summaries", "doubles"):
        array = laid_out(kind, items_of(kind, 500))
        data = file_with(kind, [long(2000) + array[2:]])
        with pytest.raises(InvalidFile):
            read_file(data)


def test_rows_that_advance_alone_give_the_same_as_rows_that_advance_together(monkeypatch):
    data = file_with("bounds", [laid_out("bounds", items_of("bounds", 2000), 1), laid_out("bounds", [])])
    expected = check(data)
    monkeypatch.setattr(nested, "_MANY_ITEMS", 0)
    monkeypatch.setattr(nested, "_LONG_BLOCK", 0)
    monkeypatch.setattr(nested, "_MANY_BLOCKS", 1)
    assert check(data).equals(expected)
    assert isinstance(expected, pa.Table)


@pytest.mark.parametrize("often", [3, 500, 10_000])
def test_keys_and_bounds_of_any_length_are_passed_however_often_they_are_rare(often):
    rng = random.Random(often)
    keys, lengths = [2**31 - 1, -(2**31), -1, 2**20, 2**20 - 1, 8192], [0, 63, 64, 127, 128, 8191, 8192, 70_000]
    items = [
        (rng.choice(keys), bytes([i % 256]) * rng.choice(lengths)) if i % often == often - 1 else (i, b"\x81\x00" * 5)
        for i in range(3000 if often > 3 else 600)
    ]
    data = file_with("bounds", [laid_out("bounds", items), laid_out("bounds", items[:300])])
    table = check(data)
    assert table.column("a").to_pylist()[0] == items
    check(data, columns=table.select(["z"]).schema)


def bounds_of(count, number):
    return [(i + 1, b"%013d" % (number * i) if i % 3 else number.to_bytes(8, "big")) for i in range(count)]


def test_maps_whose_keys_and_lengths_are_those_of_the_one_before_are_passed_without_a_walk(monkeypatch):
    walks, walk = [], ArrayStep._pass_long
    monkeypatch.setattr(ArrayStep, "_pass_long", lambda *args: walks.append(args) or walk(*args))
    rows = [bounds_of(300, number) for number in range(200)]
    data = file_with("bounds", [laid_out("bounds", row) for row in rows], 70)
    table = read_file(data)
    assert table.column("a").to_pylist() == rows
    assert len(walks) < 80  # a decoder that was kept compares some maps only, where that was in vain
    walks.clear()
    assert read_file(data, columns=table.select(["z"]).schema).column("z").to_pylist() == list(range(200))
    assert len(walks) < 80


def changed(rng, items):
    """The map with some entries longer, gone, new, of another key, or none of that."""
    items = list(items)
    for _ in range(rng.choice((0, 0, 1, 2, 7, 8, 9, 300))):
        at = rng.randrange(len(items))
        key, value = items[at]
        match rng.randrange(5):
            case 0:
                items[at] = key, value[: rng.randrange(9)] * rng.choice((1, 20, 200))
            case 1:
                del items[at]
            case 2:
                items.insert(at, (rng.choice((7, 70_000, -1)), b""))
            case 3:
                items[at] = rng.choice((key + 1, 2**31 - 1)), value
            case 4:
                items[at] = key, bytes(rng.randrange(256) for _ in value)
    return items[: rng.choice((len(items), len(items), 100, 63, 64))]


@pytest.mark.parametrize("seed", range(4))
def test_maps_that_are_like_the_one_before_but_for_some_entries_are_read(seed):
    rng = random.Random(seed)
    rows = [changed(rng, bounds_of(1000, number)) for number in range(25)]
    data = file_with(
        "bounds", [laid_out("bounds", row, rng.choice([None, 500])) for row in rows], rng.choice((1, 5, 50))
    )
    table = check(data)
    assert table.column("a").to_pylist() == rows
    check(data, columns=table.select(["z"]).schema)


def test_a_map_that_is_damaged_after_others_like_it_is_read_by_both_decoders_alike():
    rng = random.Random(5)
    whole = laid_out("bounds", bounds_of(600, 1))
    for cut in [False] * 15 + [True] * 5:
        array = bytearray(whole)
        array[rng.randrange(len(array))] ^= 1 << rng.randrange(8)
        data = file_with(
            "bounds", [whole, whole, bytes(array[: rng.randrange(len(array))] if cut else array), whole], 4
        )
        with vectorized_only(strictly=False):
            got = outcome(data)
        with by_value():
            assert outcome(data) == got
