"""Columns read as Arrow dictionaries have the same values as plain columns, in every kind of file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument
from icefield.schema import schema_to_arrow
from icefield.types import NestedField, StructType

ENCODED = pa.dictionary(pa.int32(), pa.string())
PLACE = StructType(NestedField(9, "town", "string"))
FIELDS = (NestedField(1, "n", "long"), NestedField(2, "t", "string"), NestedField(3, "b", "binary"),
          NestedField(4, "p", PLACE), NestedField(5, "k", "string"))  # fmt: skip


def rows(first, count):
    return [
        {"n": n, "t": None if n % 11 == 0 else f"text {n % 4}", "b": bytes([n % 3]), "p": {"town": "Ulm"},
         "k": f"k{n % 2}"}
        for n in range(first, first + count)
    ]  # fmt: skip


def append(table, some):
    table.append(pa.Table.from_pylist(some, schema=schema_to_arrow(table.schema())))


@pytest.fixture
def table(make):
    """Files of three schemas: the column ``late`` came later, ``t`` was renamed to ``text``; ``k`` partitions."""
    made = make(*FIELDS)
    with made.update_spec() as spec:
        spec.add_field("k", "identity")
    append(made, rows(0, 100))
    with made.update_schema() as update:
        update.add_column("late", "string")
    append(made, [{**row, "late": None if row["n"] % 3 else "late"} for row in rows(100, 100)])
    with made.update_schema() as update:
        update.rename_column("t", "text")
    append(made, [{**{"text": row.pop("t")}, **row, "late": "x"} for row in rows(200, 100)])
    return made


@pytest.mark.spec("PRJ-01", "PRJ-02")
@pytest.mark.parametrize("row_filter", ["", "text = 'text 1'", "text is null or late = 'late'", "n < 7", "k = 'k1'"])
def test_their_values_are_those_of_plain_columns(table, row_filter):
    scan = table.scan(row_filter) if row_filter else table.scan()
    plain = scan.to_arrow()
    encoded = scan.with_dictionaries("text", "b", "k", "late").to_arrow()
    for name in ("text", "k", "late"):
        assert encoded.schema.field(name).type == ENCODED
    assert encoded.schema.field("b").type == pa.dictionary(pa.int32(), pa.binary())
    assert encoded.schema.field("p").type == plain.schema.field("p").type
    encoded.validate(full=True)
    assert encoded.to_pylist() == plain.to_pylist()
    assert replace(scan, dictionary_columns="text").select("text").to_arrow() == encoded.select(["text"])
    assert scan.with_dictionaries("text").count() == plain.num_rows
    assert scan.with_dictionaries("text").select("n").to_arrow().equals(plain.select(["n"]))


def test_a_stream_and_a_table_without_files_have_the_same_types(table, make):
    reader = table.scan(limit=120).with_dictionaries("text").to_arrow_batch_reader()
    assert reader.schema.field("text").type == ENCODED
    assert sum(batch.num_rows for batch in reader) == 120
    empty = make(*FIELDS).scan().with_dictionaries("t").to_arrow()
    assert (empty.num_rows, empty.schema.field("t").type) == (0, ENCODED)


@pytest.mark.parametrize(("name", "kind"), [("n", "long"), ("p", "struct"), ("p.town", "string")])
def test_other_columns_cannot_come_so(table, name, kind):
    with pytest.raises(InvalidArgument, match=rf"column '{name}' cannot come as a dictionary.*{kind}"):
        table.scan().with_dictionaries(name).to_arrow()
    with pytest.raises(InvalidArgument, match="nothing"):
        table.scan().with_dictionaries("nothing").to_arrow()


def test_dictionaries_of_local_parquet_files_are_not_spelt_out(make, file_format, monkeypatch):
    if file_format != "parquet":
        pytest.skip("only Parquet files hold dictionaries")
    table = make(*FIELDS)
    append(table, rows(0, 1_000))
    told = []
    opened = pq.ParquetFile.__init__

    def noting(self, *given, **options):
        told.append(options.get("read_dictionary"))
        opened(self, *given, **options)

    monkeypatch.setattr(pq.ParquetFile, "__init__", noting)
    found = table.scan().with_dictionaries("t").select("t").to_arrow()
    assert ["t"] in told
    (chunk,) = found.column("t").chunks
    assert len(chunk.dictionary) == 4
    assert chunk.nbytes < 1_000 * 5
