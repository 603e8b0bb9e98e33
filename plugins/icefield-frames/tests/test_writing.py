"""Lazy frames and data sets are written in bounded memory, in one commit."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from icefield.errors import InvalidArgument, MissingPlugin
from tables import memory_catalog

pl = pytest.importorskip("polars")

ROWS = pl.DataFrame({"id": [1, 2, 3], "kind": ["a", None, "b"]}, schema_overrides={"kind": pl.Categorical})
SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])


@pytest.fixture
def table() -> Any:
    return memory_catalog().create_table("db.t", SCHEMA, partition_spec=["kind"])


def test_a_lazy_frame_is_appended_and_overwrites(table: Any) -> None:
    table.append(ROWS.lazy().filter(pl.col("id") > 1), {"why": "test"})
    assert table.scan().to_polars().sort("id")["kind"].to_list() == [None, "b"]
    assert table.current_snapshot().summary["why"] == "test"
    table.overwrite(ROWS.lazy().with_columns(id=pl.col("id") * 10), "kind = 'b'")
    assert sorted(table.scan().to_polars()["id"]) == [2, 10, 20, 30]
    assert len(table.history()) == 2


def test_a_lazy_frame_of_the_table_itself_is_written_back(table: Any) -> None:
    table.append(ROWS)
    table.overwrite(table.scan().lazy().filter(pl.col("kind").is_not_null()))
    assert sorted(table.scan().to_polars()["id"]) == [1, 3]


def test_a_lazy_frame_without_rows_replaces_all(table: Any) -> None:
    table.append(ROWS)
    table.overwrite(ROWS.lazy().filter(pl.col("id") > 9))
    assert table.scan().count() == 0


def test_other_streams_and_data_sets_are_taken_as_well(table: Any) -> None:
    table.append(ROWS)
    table.append(ds.dataset(table.scan("id = 1").to_arrow()))
    table.append(table.scan("id = 1").to_dataset())
    assert table.scan("id = 1").count() == 4
    table.upsert(ROWS.lazy().with_columns(kind=pl.lit("z")).filter(pl.col("id") == 2), "id")
    assert table.scan("kind = 'z'").count() == 1


def test_an_error_in_the_middle_of_a_frame_commits_nothing(table: Any) -> None:
    def fail(frame: Any) -> Any:
        raise ValueError("not today")

    with pytest.raises(Exception, match="not today"):
        table.append(ROWS.lazy().map_batches(fail, schema=ROWS.schema))
    with pytest.raises(InvalidArgument, match="other"):
        table.append(ROWS.lazy().with_columns(other=1))
    assert table.current_snapshot() is None


def test_an_older_polars_computes_all_rows_first(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def hide(*_: Any, **__: Any) -> Any:
        raise AssertionError("the batches of Polars before 2.0 end at an error as if they were complete")

    monkeypatch.setattr(pl, "__version__", "1.36.1")
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", hide)
    table.append(ROWS.lazy().filter(pl.col("id") > 1))
    assert sorted(table.scan().to_polars()["id"]) == [2, 3]
    with pytest.raises(MissingPlugin, match=r"lazy needs polars 2\.0 or later, and 1\.36\.1 is installed"):
        table.scan().lazy()


_CODE = """
import resource, sys
import icefield, polars as pl, pyarrow as pa
catalog = icefield.load_catalog("m", type="directory", warehouse="file://" + sys.argv[1])
catalog.create_namespace("db")
table = catalog.create_table("db.t", pa.schema([("n", pa.int64()), ("s", pa.string())]))
rows = int(sys.argv[2])
frame = pl.LazyFrame({"n": pl.int_range(0, rows, eager=True)})
frame = frame.with_columns(s=pl.col("n").cast(pl.String).str.pad_start(200, "x"))
table.append(frame)
assert table.scan().count() == rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_a_large_frame_takes_bounded_memory(tmp_path: Any) -> None:
    peaks = []
    for rows in (200_000, 6_000_000):  # 40 MB and 1.2 GB of strings
        folder = tmp_path / uuid.uuid4().hex
        done = subprocess.run(
            [sys.executable, "-c", _CODE, folder, str(rows)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 1_000, peaks  # a whole frame takes 1.6 GB more
