"""Strings that repeat are read through their dictionaries: that changes neither what they say nor what is refused."""

import io
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from forked import ended
from icefield.abc import ReadRequest
from icefield.errors import InvalidFile
from icefield.toolkit import as_input_file
from icefield_parquet.parquet_format import ParquetFormat
from icefield_parquet.reading import decoding, repeated_strings
from icefield_parquet.reading import reader as reader_module
from icefield_parquet.reading.threads import threads
from icefield_parquet.schema import leaves
from parquet_files import read, reader_of
from parquet_thrift import BINARY, I32, STRUCT, Struct, varint

ROWS = 40_000
WORDS = [None, "", "ash", "blå", "a text that is longer than others"]


def some(rng, words, count):
    return pa.array(words).take(pa.array(rng.integers(0, len(words), count)))


def lists(rng, values):
    """Rows of none to three values, some of them null, over all of these."""
    ends = np.sort(rng.integers(0, len(values) + 1, ROWS - 1))
    offsets = pa.array(np.concatenate(([0], ends, [len(values)])).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values)


def columns():
    rng = np.random.default_rng(3)
    words = some(rng, WORDS, ROWS)
    keys = pa.array([f"k{number}" for number in np.arange(ROWS) % 50])
    structs = pa.StructArray.from_arrays(
        [words, pa.array(range(ROWS))], ["t", "n"], mask=pa.array(rng.random(ROWS) < 0.2)
    )
    maps = pa.MapArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), keys, words)
    return {
        "text": words,
        "bytes": words.cast(pa.binary()),
        "list": lists(rng, some(rng, WORDS, 2 * ROWS)),
        "lists": lists(rng, lists(rng, some(rng, WORDS, 3 * ROWS))),
        "struct": structs,
        "structs": lists(rng, structs),
        "map": maps,
        "other": pa.array([f"text {number}" for number in range(ROWS)]),
        "number": pa.array(range(ROWS)),
        "large": lists(rng, words).cast(pa.large_list(pa.string())),
        "kind": words.dictionary_encode(),
    }


COLUMNS = columns()
REPEATED = {"text": 1, "bytes": 1, "list": 1, "lists": 1, "struct": 1, "structs": 1, "map": 2}
ASKED = pytest.mark.parametrize("asked", [frozenset(), frozenset([1])], ids=["spelled out", "as a dictionary"])


def file(data, **options):
    sink = io.BytesIO()
    pq.write_table(data, sink, **options)
    return sink.getvalue()


def batches(data, **options):
    with reader_of(data) as reader:
        yield from reader.read(ReadRequest(reader.schema, **options))


@pytest.mark.slow
@pytest.mark.spec("PRJ-01")
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"row_group_size": ROWS // 2}], ids=str)
def test_all_texts_come_back(name, options, together, monkeypatch):
    monkeypatch.setattr(repeated_strings, "_FEWEST", ROWS // 3)
    monkeypatch.setattr(reader_module, "_TOGETHER_BYTES", (together - 1) << 20)
    table = pa.table({name: COLUMNS[name]})
    data = file(table, **options)
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    runs = [groups[at : at + together] for at in range(0, len(groups), together)]
    with reader_of(data) as reader:
        found = repeated_strings.repeated_strings(runs, reader.schema, [leaves(reader.schema)])
        batches = list(reader.read(ReadRequest(reader.schema, batch_rows=9_999, positions=True)))
    few = len(runs[0]) > 1 and pa.types.is_nested(table.column(name).type)
    assert len(found) == (0 if few else REPEATED.get(name, 0))
    found = pa.Table.from_batches(batches)
    found.validate(full=True)
    assert found.column("_pos").to_pylist() == list(range(ROWS))
    assert found.column(name).type == reader.schema.field(name).type
    assert found.column(name).to_pylist() == table.column(name).to_pylist()


def test_dictionaries_are_as_large_as_their_pages_say(monkeypatch):
    """Otherwise each column would be decoded twice."""
    monkeypatch.setattr(decoding, "_SHARED_BYTES", 0)
    monkeypatch.setattr(repeated_strings, "_FEWEST", ROWS // 3)
    decode, merged = decoding._decoded, []

    def decoded(wanted, *arguments):
        merged.append(wanted.plain is None)
        return decode(wanted, *arguments)

    monkeypatch.setattr(decoding, "_decoded", decoded)
    data = file(pa.table({name: COLUMNS[name] for name in REPEATED}), row_group_size=ROWS // 2)
    for whole in (64 << 20, 0):
        monkeypatch.setattr(decoding, "_WHOLE_BYTES", whole)
        monkeypatch.setattr(reader_module, "_TOGETHER_BYTES", whole)
        assert sum(map(len, batches(data, batch_rows=9_999))) == ROWS
    assert merged
    assert not any(merged)


@pytest.mark.slow
def test_columns_that_are_finished_apart_come_back_together(monkeypatch):
    monkeypatch.setattr(decoding, "_SHARED_BYTES", 0)
    table = pa.table(COLUMNS)
    data = file(table, row_group_size=ROWS // 2)
    found = pa.Table.from_batches(batches(data, batch_rows=7_777))
    assert found.to_pylist() == table.to_pylist()
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(1).column(3)
    damaged = data[: chunk.data_page_offset] + b"\xff" * 64 + data[chunk.data_page_offset + 64 :]
    with pytest.raises(InvalidFile, match="the pages"):
        list(batches(damaged))


def test_a_child_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(decoding, "_SHARED_BYTES", 0)
    data = file(pa.table(COLUMNS))
    assert sum(map(len, batches(data))) == ROWS
    # A child that waits for its parent's threads waits for ever.
    assert ended(lambda: threads().submit(int).result(), 60.0) == 0


@pytest.mark.spec("PLT-59")
def test_of_pairs_with_one_key_the_last_is_left():
    offsets = pa.array(np.arange(ROWS + 1, dtype=np.int32) * 2)
    keys = pa.array(["a", "a", "a", "b"] * (ROWS // 2))
    table = pa.table({"m": pa.MapArray.from_arrays(offsets, keys, pa.array(range(2 * ROWS)))})
    (found,) = batches(file(table))
    assert found.column("m").to_pylist()[:2] == [[("a", 1)], [("a", 2), ("b", 3)]]
    assert len(found.column("m").keys) == ROWS * 3 // 2


@ASKED
@pytest.mark.parametrize("wide", [False, True], ids=["a text", "a list"])
def test_numbers_that_are_in_no_dictionary_are_damage(asked, wide):
    texts = pa.array(["a", "b", "c"]).take(pa.array(np.arange(ROWS) % 3))
    column = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), texts) if wide else texts
    field = pa.field("t", column.type, metadata={"PARQUET:field_id": "1"})
    data = file(pa.table([column], schema=pa.schema([field])), compression="none", write_statistics=False)
    packed = b"\x24\x49\x92"  # numbers of two bits: 0 1 2 0, 1 2 0 1, 2 0 1 2
    assert data.count(packed) > 100
    data = data.replace(packed, b"\xff" * 3, 50)
    with pytest.raises(InvalidFile, match="dictionary"):
        list(batches(data, dictionaries=frozenset() if wide else asked))


def numbers(found):
    """A page of numbers below sixteen in the chunk's dictionary."""
    count = -(-len(found) // 8)
    padded = np.concatenate([found, np.zeros(count * 8 - len(found))]).astype(np.uint8)
    data = b"\4" + varint(count << 1 | 1) + (padded[::2] | padded[1::2] << 4).tobytes()
    return page(0, 5, data, Struct().i32(1, len(found)).i32(2, 8).i32(3, 3).i32(4, 3))


def texts(words):
    return page(0, 5, plain(words), Struct().i32(1, len(words)).i32(2, 0).i32(3, 3).i32(4, 3))


def plain(words):
    return b"".join(struct.pack("<I", len(word)) + word for word in words)


def page(kind, place, data, header):
    return Struct().i32(1, kind).i32(2, len(data)).i32(3, len(data)).struct(place, header).encode() + data


def forged(words, count, *pages):
    """A column of texts of that dictionary, and those pages."""
    first = page(2, 7, plain(words), Struct().i32(1, len(words)).i32(2, 0))
    body = b"PAR1" + first + b"".join(pages)
    size = len(body) - 4
    chunk = Struct().i32(1, 6).list(2, I32, [0, 3, 8]).list(3, BINARY, [b"t"]).i32(4, 0).i64(5, count)
    chunk.i64(6, size).i64(7, size).i64(9, 4 + len(first)).i64(11, 4)
    group = Struct().list(1, STRUCT, [Struct().i64(2, 4).struct(3, chunk)]).i64(2, size).i64(3, count)
    text = Struct().i32(1, 6).i32(3, 0).text(4, "t").i32(6, 0).i32(9, 1)
    elements = [Struct().text(4, "schema").i32(5, 1), text]
    footer = Struct().i32(1, 1).list(2, STRUCT, elements).i64(3, count).list(4, STRUCT, [group]).encode()
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


@ASKED
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("more", [[], [b"new", b"a", b"newer"]], ids=["numbers", "numbers and texts"])
@pytest.mark.parametrize("words", [[b"a", b"a", b"b"], [b"a", b"a", b"b", b"b", b"c"]], ids=str)
def test_a_dictionary_may_hold_a_text_twice(words, more, whole, asked, monkeypatch):
    monkeypatch.setattr(decoding, "_WHOLE_BYTES", (192 if whole else 0) << 20)
    found = np.arange(ROWS) % 3
    data = forged(words, ROWS + len(more), numbers(found), *([texts(more)] if more else []))
    expected = [words[number].decode() for number in found] + [word.decode() for word in more]
    assert read(data, dictionaries=asked, batch_rows=9_999).column("t").to_pylist() == expected


@ASKED
def test_in_a_file_that_is_far_away_too(asked):
    found = np.arange(ROWS) % 3
    data = forged([b"a", b"a", b"b"], ROWS, numbers(found))
    with ParquetFormat().open_reader(
        as_input_file(io.BytesIO(data), is_remote=True), "memory://parquet/file"
    ) as reader:
        batches = list(reader.read(ReadRequest(reader.schema, dictionaries=asked)))
    assert all(pa.types.is_dictionary(batch.schema.field("t").type) == bool(asked) for batch in batches)
    assert [text for batch in batches for text in batch.column("t").to_pylist()] == ["aab"[number] for number in found]


@ASKED
def test_a_number_is_not_one_of_a_text_beside_the_dictionary(asked):
    data = forged([b"a", b"b", b"c"], ROWS + 2, numbers(np.arange(ROWS) % 4), texts([b"new", b"newer"]))
    with pytest.raises(InvalidFile, match="the pages"):
        read(data, dictionaries=asked)


def test_two_columns_of_one_name_are_told_apart():
    words = some(np.random.default_rng(5), WORDS, ROWS)
    columns = [words, words.cast(pa.large_string())]
    fields = [pa.field("t", column.type, metadata={"PARQUET:field_id": str(id_)}) for id_, column in enumerate(columns)]
    found = read(file(pa.table(columns, schema=pa.schema(fields))))
    assert [column.to_pylist() for column in found.columns] == [words.to_pylist()] * 2


def test_row_groups_that_are_too_large_together_are_decoded_alone(monkeypatch):
    """Lists whose texts take more than two GiB, of which a test would take twice as much."""
    decode, seen = decoding._decoded, []

    def decoded(wanted, groups, *arguments):
        seen.append(groups)
        if len(groups) > 1:
            raise pa.ArrowNotImplementedError("Nested data conversions not implemented for chunked array outputs")
        yield from decode(wanted, groups, *arguments)

    monkeypatch.setattr(decoding, "_decoded", decoded)
    table = pa.table({"list": COLUMNS["list"]})
    assert read(file(table, row_group_size=ROWS // 3)).to_pylist() == table.to_pylist()
    assert seen == [[0, 1, 2, 3], [0], [1], [2], [3]]


@pytest.mark.slow
def test_files_are_read_while_the_interpreter_ends(tmp_path):
    """Threads go on when the main one is done, but start no others."""
    path = tmp_path / "file"
    path.write_bytes(file(pa.table({name: COLUMNS[name] for name in ("text", "other", "map")})))
    program = f"""
        import threading
        import pyarrow as pa
        from icefield.abc import ReadRequest
        from icefield.toolkit import as_input_file
        from icefield_parquet.reading import decoding
        from icefield_parquet.parquet_format import ParquetFormat

        decoding._SHARED_BYTES = 0
        decoding.thread_count = lambda: 2

        def read():
            threading.main_thread().join()
            with ParquetFormat().open_reader(as_input_file(pa.OSFile({str(path)!r})), "file") as reader:
                print(sum(map(len, reader.read(ReadRequest(reader.schema)))))

        threading.Thread(target=read).start()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(ROWS), "")


def test_long_texts_are_spelled_out_a_few_rows_at_a_time():
    count, long = 400_000, 2_000
    words = pa.array(["x" * 900_000, "y"])
    texts = pa.DictionaryArray.from_arrays(pa.array((np.arange(count) >= long).astype(np.int32)), words)
    within, most = [], 0
    for batch in batches(file(pa.table({"t": texts}), store_schema=False)):
        lengths = pc.binary_length(batch.column("t")).to_numpy()
        within.append(lengths)
        most = max(most, batch.nbytes)
    assert most <= 300 << 20
    assert np.array_equal(np.concatenate(within), np.where(np.arange(count) < long, 900_000, 1))
