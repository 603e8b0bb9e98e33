"""Which columns get a dictionary."""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import MemoryFileSystem
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from icefield_parquet.parquet_format import ParquetFormat
from icefield_parquet.writing.encoding import distinct_values
from parquet_files import read, write

RNG = np.random.default_rng(3)
ROWS = 40_000
WORDS = pa.array([f"a word of some length, number {number}" for number in range(3_000)])
COLUMNS = {
    "unique": (pa.array(np.arange(ROWS)), False),
    "random": (pa.array(RNG.random(ROWS)), False),
    "texts": (pa.array(RNG.integers(0, 2**62, ROWS)).cast(pa.string()), False),
    "few": (pa.array(RNG.integers(0, 50, ROWS)), True),
    "words": (WORDS.take(pa.array(RNG.integers(0, len(WORDS), ROWS))), True),
    "rhythm": (WORDS.take(pa.array(np.arange(ROWS) % len(WORDS))), True),
    "sorted": (pa.array(np.sort(RNG.integers(0, 400, ROWS))), True),
    "runs": (WORDS.take(pa.array(np.arange(ROWS) // 500)), True),
    "rare": (pa.array(["value", *[None] * 99] * (ROWS // 100)), True),
    "nulls": (pa.nulls(ROWS, pa.string()), True),
}


def encodings(schema, table, **options):
    data, _ = write(schema, table, **options)
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    assert read(data).equals(table)
    return {chunk.path_in_schema: "RLE_DICTIONARY" in chunk.encodings for chunk in chunks}


def table_of(columns):
    kinds = {"int64": "long", "double": "double", "string": "string"}
    schema = Schema(
        *(NestedField(number, name, kinds[str(each.type)]) for number, (name, each) in enumerate(columns.items(), 1))
    )
    return schema, pa.Table.from_arrays(list(columns.values()), schema=schema_to_arrow(schema))


def test_a_dictionary_is_made_where_values_repeat_and_nowhere_else():
    found = encodings(*table_of({name: column for name, (column, _) in COLUMNS.items()}))
    assert found == {name: repeated for name, (_, repeated) in COLUMNS.items()}


def test_a_dictionary_beyond_its_limit_is_not_begun():
    schema, table = table_of({"words": COLUMNS["words"][0]})
    assert encodings(schema, table) == {"words": True}
    assert encodings(schema, table, properties={"write.parquet.dict-size-bytes": "20000"}) == {"words": False}


def test_leaves_of_nested_columns_are_judged_one_by_one():
    kind = StructType(NestedField(2, "u", "long"), NestedField(3, "f", "long"))
    mapped = MapType(7, parse_type("string"), 8, parse_type("double"))
    listed = ListType(5, parse_type("long"))
    schema = Schema(NestedField(1, "s", kind), NestedField(4, "l", listed), NestedField(6, "m", mapped))
    rows = [
        {"s": {"u": n, "f": n % 3} if n % 7 else None, "l": [n * 31, n * 37], "m": [("k", n / 7), ("l", -n / 3)]}
        for n in range(4_000)
    ]
    table = pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))
    assert encodings(schema, table) == {
        "s.u": False,
        "s.f": True,
        "l.list.element": False,
        "m.key_value.key": True,
        "m.key_value.value": False,
    }


def test_files_of_unique_values_are_smaller_than_with_dictionaries():
    schema, table = table_of({"random": COLUMNS["random"][0].slice(0, 5_000)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    assert len(write(schema, table)[0]) < 0.9 * sink.tell()


@settings(max_examples=60, deadline=None)
@given(domain=st.integers(1, 10**6), seen=st.integers(200, 5_000), scale=st.floats(1, 200))
def test_the_number_of_distinct_values_is_estimated_from_a_sample(domain, seen, scale):
    rng = np.random.default_rng(domain + seen)
    values = int(seen * scale)
    distinct = len(np.unique(rng.integers(0, domain, seen)))
    estimate = distinct_values(distinct, seen, values)
    truth = domain * -np.expm1(values * np.log1p(-1 / domain)) if domain > 1 else 1
    assert distinct <= estimate <= values
    # The estimate rests on how many values of the sample repeat, which comes out differently each time.
    repeated = seen - domain * -np.expm1(seen * np.log1p(-1 / domain)) if domain > 1 else seen - 1
    error = 0.02 + 6 / np.sqrt(repeated) if repeated else 1
    if error < 1:
        assert truth / (1 + error) <= estimate <= truth / (1 - error)


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 1_023, 1_024, 1_025, 4_099])
def test_any_number_of_rows_can_be_sampled(rows):
    schema, table = table_of({name: column.slice(0, rows) for name, (column, _) in COLUMNS.items()})
    assert read(write(schema, table)[0]).num_rows == rows


def dictionaries_of_each(tables):
    """Which columns of each of these tables get a dictionary, when they become the files of one write."""
    begin = ParquetFormat().writers(table_of(tables[0])[0])
    found = []
    for number, columns in enumerate(tables):
        location = f"memory://alike/{uuid4().hex}-{number}"
        with begin(MemoryFileSystem().open_output(location)) as writer:
            for batch in table_of(columns)[1].to_batches():
                writer.write(batch)
            writer.close()
        group = pq.ParquetFile(MemoryFileSystem().open_input(location)).metadata.row_group(0)
        chunks = [group.column(index) for index in range(group.num_columns)]
        found.append({chunk.path_in_schema for chunk in chunks if "RLE_DICTIONARY" in chunk.encodings})
    return found


def test_files_of_one_write_are_encoded_alike_until_they_differ_in_size_or_are_many():
    repeating, unlike = pa.array([number % 9 for number in range(1_000)]), pa.array(range(1_000))
    short = dictionaries_of_each([{"n": repeating}, *[{"n": unlike}] * 64])
    assert short == [{"n"}] * 64 + [set()]
    longer = pa.array(range(5_000))
    assert dictionaries_of_each([{"n": repeating}, {"n": longer}, {"n": unlike}]) == [{"n"}, set(), {"n"}]
