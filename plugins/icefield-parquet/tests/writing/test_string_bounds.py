"""Bounds of strings and bytes are exact, whether the footer states them or not."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from icefield_parquet.writing import string_bounds
from parquet_files import write, write_rows

SCHEMA = Schema(NestedField(1, "a.b", "string"), NestedField(2, "n", "int"), NestedField(3, "raw", "binary"))
LONG = 5_000
"""Beyond what pyarrow puts into a footer."""

texts = st.text(max_size=4) | st.sampled_from(["", "\0", "\U0010ffff", "é", "x" * LONG, "\U0010ffff" * LONG])
values = st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"\xff" * 3, b"\xff" * LONG, b"\0" * LONG])
rows = st.fixed_dictionaries({"a.b": st.none() | texts, "n": st.just(1), "raw": st.none() | values})
PROPERTIES = [
    {},
    {"write.parquet.row-group-size-bytes": "1"},
    {"write.parquet.row-group-size-bytes": "100"},
    {"write.parquet.stats-enabled.column.a.b": "false"},
    {"write.parquet.stats-enabled.column.raw": "false", "write.parquet.row-group-size-bytes": "1"},
]


@pytest.fixture(autouse=True, scope="module", params=[0, 4])
def few_rows(request):
    """From how many rows on the footer is relied on: always, and for some of the row groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(string_bounds, "_FEW_ROWS", request.param)
        yield


@pytest.mark.spec("MET-02", "MET-03", "MET-07")
@settings(deadline=None)
@given(st.lists(rows, max_size=12), st.sampled_from(PROPERTIES), st.sampled_from([None, 1, 3]))
def test_the_bounds_are_the_least_and_the_greatest_value(held, properties, batch_rows):
    table = pa.Table.from_pylist(held, schema=schema_to_arrow(SCHEMA))
    _, written = write(SCHEMA, table, batch_rows=batch_rows, properties=properties)
    for id_, name in ((1, "a.b"), (3, "raw")):
        present = [row[name] for row in held if row[name] is not None]
        metrics = written.metrics
        assert metrics.value_counts[id_] == len(held)
        assert metrics.null_value_counts[id_] == len(held) - len(present)
        assert metrics.lower_bounds.get(id_) == min(present, default=None)
        assert metrics.upper_bounds.get(id_) == max(present, default=None)


def test_a_footer_that_does_not_state_what_it_should_leaves_the_bounds_unknown(monkeypatch):
    """Were pyarrow to leave short values out as it does long ones, bounds of the other row groups would be wrong."""
    monkeypatch.setattr(string_bounds, "_LONGEST", 2 * LONG)
    monkeypatch.setattr(string_bounds, "_FEW_ROWS", 0)
    held = [{"a.b": "m", "n": 1, "raw": b"m"}, {"a.b": "z" * LONG, "n": 2, "raw": b"a"}]
    _, written = write_rows(SCHEMA, held, batch_rows=1, properties={"write.parquet.row-group-size-bytes": "1"})
    assert written.metrics.lower_bounds == {2: 1, 3: b"a"}
    assert written.metrics.upper_bounds == {2: 2, 3: b"m"}


@pytest.mark.parametrize("of_many", [False, True])
def test_columns_whose_metrics_the_table_does_not_want_have_none(of_many):
    properties = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.raw": "truncate(2)"}
    held = [{"a.b": "x", "n": 1, "raw": b"abc"}] * 5
    metrics = write_rows(SCHEMA, held, properties=properties, of_many=of_many)[1].metrics
    assert (metrics.record_count, set(metrics.column_sizes)) == (5, {1, 2, 3})
    assert (metrics.value_counts, metrics.null_value_counts) == ({3: 5}, {3: 0})
    assert (metrics.lower_bounds, metrics.upper_bounds) == ({3: b"abc"}, {3: b"abc"})
