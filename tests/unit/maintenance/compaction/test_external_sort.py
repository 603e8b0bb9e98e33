"""A sort through temporary files gives the same order as a sort in memory, however few rows fit into memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.partitioning.parse import sort_order_of
from icefield.partitioning.sort_order import sort_keys, sort_table
from icefield.schema import Schema
from icefield.types import DoubleType, IntegerType, NestedField, StringType
from icefield_maintenance.compaction.strategies import external_sort
from icefield_maintenance.compaction.strategies.external_sort import SortKeys, sorted_rows

TABLE = Schema(
    NestedField(1, "number", IntegerType(), required=False),
    NestedField(2, "real", DoubleType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "place", IntegerType(), required=False),
)
ORDERS = [
    ["number"],
    ["number desc nulls last", "name"],
    ["real desc nulls first", "number asc nulls last"],
    ["truncate[1](name) desc", "bucket[3](number)"],
]
ROW = st.tuples(
    st.none() | st.integers(0, 6),
    st.none() | st.sampled_from([-0.0, 0.0, 1.5, -1.5, float("inf"), float("nan"), float("-inf")]),
    st.none() | st.sampled_from(["", "a", "ab", "b", "é", "z" * 40]),
)


def rows_of(values: list[tuple[Any, ...]]) -> pa.Table:
    number, real, name = zip(*values, strict=True) if values else ((), (), ())
    return pa.table(
        {
            "number": pa.array(number, pa.int32()),
            "real": pa.array(real, pa.float64()),
            "name": pa.array(name, pa.string()),
            "place": pa.array(range(len(values)), pa.int32()),
        }
    )


@given(st.lists(ROW, max_size=120), st.sampled_from(ORDERS), st.sampled_from([0, 60, 300, 1 << 20]), st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_rows_are_in_the_order_and_those_with_equal_keys_as_they_were(
    values: list[tuple[Any, ...]], given: list[str], held: int, size: int
) -> None:
    rows, order = rows_of(values), sort_order_of(given, TABLE)
    told: list[bool] = []

    def begin(whole: pa.Table | None) -> Any:
        told.append(whole is not None)
        return lambda table: SortKeys(*sort_keys(order, TABLE, table, comparable=True))

    found = [*sorted_rows(rows.to_batches(max_chunksize=size), rows.schema, begin, held)]
    wanted = sort_table(order, TABLE, rows)
    assert pa.Table.from_batches(found, rows.schema)["place"].to_pylist() == wanted["place"].to_pylist()
    assert told == [rows.nbytes <= held or not values]


@pytest.mark.slow
def test_many_runs_are_merged_in_steps_and_leave_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(external_sort, "_MERGED", 3)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    draw = np.random.default_rng(5)
    rows = pa.table({"key": draw.integers(0, 50, 4000).astype(np.uint64), "place": np.arange(4000)})
    found = sorted_rows(
        rows.to_batches(max_chunksize=100),
        rows.schema,
        lambda _: lambda table: SortKeys(table.select(["key"]), [("key", "ascending")]),
        3000,
    )
    first = next(found)
    assert [*tmp_path.iterdir()]
    table = pa.Table.from_batches([first, *found])
    order = np.argsort(rows["key"].to_numpy(), kind="stable")
    assert table["place"].to_pylist() == order.tolist()
    assert not [*tmp_path.iterdir()]


def test_a_sort_that_is_given_up_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pa.table({"key": np.arange(1000, dtype=np.uint64)})

    def broken() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches(max_chunksize=100)
        raise OSError("the disk is gone")

    keys_of = lambda _: lambda table: SortKeys(table, [("key", "ascending")])  # noqa: E731
    with pytest.raises(OSError, match="the disk is gone"):
        [*sorted_rows(broken(), rows.schema, keys_of, 2000)]
    closed = sorted_rows(rows.to_batches(max_chunksize=100), rows.schema, keys_of, 2000)
    next(closed)
    closed.close()  # type: ignore[attr-defined]
    assert not [*tmp_path.iterdir()]


CALL = """
import sys
import pyarrow as pa
import icefield
from bounded import peak_memory

folder, strategy = sys.argv[1:]
catalog = icefield.load_catalog("memory", type="directory", warehouse=f"file://{folder}")
catalog.create_namespace("db")
rows = pa.table({"n": pa.array(range(20_000), pa.int64()), "s": ["repeating " * 180] * 20_000})
table = catalog.create_table("db.t", rows.schema)
for _ in range(24):
    table.append(rows)
options = {"sort_order": ["n"]} if strategy == "sort" else {"zorder_columns": ["n", "s"]}
before = peak_memory()
made = table.maintenance.rewrite_data_files(strategy, rewrite_all=True, **options)
assert (made.rewritten_data_files, made.added_data_files) == (24, 1), made
assert table.inspect.data_files()["record_count"].to_pylist() == [480_000]
print((peak_memory() - before) >> 20, pa.default_memory_pool().max_memory() >> 20, made.rewritten_bytes >> 20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["sort", "zorder"])
def test_rows_that_are_small_as_files_and_large_in_memory_are_sorted_in_bounds(strategy: str, tmp_path: Path) -> None:
    resident, allocated, files = _measured(strategy, tmp_path / "first")
    assert files < 16
    assert allocated < 560, "the rows are 830 MiB, and were held twice"
    # The freed memory that an allocator keeps depends on the timing of threads: 550 to 640 MiB, seldom more.
    if resident >= 700:
        resident, _, _ = _measured(strategy, tmp_path / "second")
    assert resident < 700


def _measured(strategy: str, folder: Path) -> tuple[int, int, int]:
    """The sizes in MiB of the process's memory, of its Arrow memory at the peak, and of the files."""
    command = [sys.executable, "-c", CALL, str(folder), strategy]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    resident, allocated, files = map(int, ran.stdout.split())
    return resident, allocated, files
