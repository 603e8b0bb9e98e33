"""The bloom filters of files that are written: for which columns, how large, and what they let through."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from parquet_files import write

SCHEMA = Schema(NestedField(1, "n", "long", required=True), NestedField(2, "t", "string"))
ROWS = 20_000
HEADER = 20
"""A filter's header has no more bytes."""


def file(**options):
    """A file with a filter for ``n``."""
    enabled = {"write.parquet.bloom-filter-enabled.column.n": "true"}
    named = {f"write.parquet.bloom-filter-{name.replace('_', '-', 1)}": str(value) for name, value in options.items()}
    table = pa.table({"n": range(0, 2 * ROWS, 2), "t": map(str, range(ROWS))}).cast(schema_to_arrow(SCHEMA))
    return write(SCHEMA, table, properties={**enabled, **named})[0]


def chunks(data):
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    return [group.column(at) for at in range(group.num_columns)]


def size(**options):
    return chunks(file(**options))[0].bloom_filter_length


@pytest.mark.spec("PARQ-24")
def test_only_the_columns_named_have_one():
    assert [chunk.bloom_filter_offset is not None for chunk in chunks(file())] == [True, False]
    off = {"enabled.column.n": "false", "enabled.column.t": "true"}
    assert [chunk.bloom_filter_offset is not None for chunk in chunks(file(**off))] == [False, True]


@pytest.mark.spec("PARQ-24")
@pytest.mark.parametrize("most", [1, 100, 1_000, 4_096, 10_000])
def test_one_has_no_more_bytes_than_it_may_have(most):
    bounded = size(max_bytes=most)
    assert max(32, most / 2) < bounded <= max(32, most) + HEADER
    assert size(**{"max_bytes": most, "ndv.column.n": 10**9}) == bounded, "whatever it is to be made for"
    assert bounded < size()


@pytest.mark.spec("PARQ-24")
def test_one_is_made_for_so_many_values():
    sizes = [size(**{"ndv.column.n": values}) for values in (100, 1_000, 10_000)]
    assert sizes == sorted(set(sizes))
    assert sizes[0] < 500


@pytest.mark.spec("PARQ-24")
def test_one_lets_as_little_through_as_is_asked(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    through = []
    for fpp in (0.6, 0.001):
        path = tmp_path / f"{fpp}.parquet"
        path.write_bytes(file(**{"fpp.column.n": fpp, "ndv.column.n": ROWS}))
        with duckdb.connect() as connection:

            def passes(value, path=path, connection=connection):
                (excluded,) = connection.execute(
                    f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'n', {value})"
                ).fetchone()
                return not excluded

            assert all(passes(2 * at) for at in range(0, ROWS, 1_000)), "what is there is never kept out"
            through.append(sum(passes(2 * at + 1) for at in range(0, ROWS, 100)) / 200)
    assert through[0] > 0.1, "less than asked, for sizes are rounded up"
    assert through[1] < 0.02


@pytest.mark.parametrize("fpp", ["0", "1", "1.5"])
def test_a_probability_that_is_none_is_refused(fpp):
    with pytest.raises(InvalidArgument, match=r"write\.parquet\.bloom-filter-fpp\.column\.n"):
        file(**{"fpp.column.n": fpp})
