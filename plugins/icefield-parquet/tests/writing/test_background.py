"""Metrics that are gathered while a row group is encoded."""

import threading

import pyarrow as pa
import pytest
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from icefield_parquet.writing import writer as module
from icefield_parquet.writing.background import Background
from parquet_files import read, write

SCHEMA = Schema(NestedField(1, "n", "long", required=True), NestedField(2, "t", "string"))


def table(rows):
    texts = [f"text {number % 700}" if number % 11 else None for number in range(rows)]
    return pa.table({"n": range(rows), "t": texts}).cast(schema_to_arrow(SCHEMA))


def test_metrics_are_the_same_in_a_thread_and_without_one(monkeypatch):
    rows = table(3_000)
    _, alone = write(SCHEMA, rows, batch_rows=250)
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 1)
    data, beside = write(SCHEMA, rows, batch_rows=250)
    assert beside == alone
    assert beside.metrics.null_value_counts[2] == rows.column("t").null_count
    assert read(data).equals(rows.replace_schema_metadata())


def test_many_rows_are_written_and_counted():
    rows = table(60_000)
    data, written = write(SCHEMA, rows)
    assert written.metrics.record_count == 60_000
    assert (written.metrics.lower_bounds[1], written.metrics.upper_bounds[1]) == (0, 59_999)
    assert read(data).num_rows == 60_000


def test_what_fails_next_to_fails_the_file(monkeypatch):
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 1)

    def fail(self, written):
        raise MemoryError("no room for metrics")

    monkeypatch.setattr(module.ParquetWriter, "_gather", fail)
    with pytest.raises(MemoryError, match="no room"):
        write(SCHEMA, table(10))


def test_both_have_ended_behind_the_block_and_its_own_error_comes_first():
    going, ended = threading.Event(), []

    def work():
        going.wait(5)
        ended.append(True)
        raise ValueError("the work's")

    with pytest.raises(ValueError, match="the work's"), Background(work):
        going.set()
    assert ended == [True]
    with pytest.raises(KeyError, match="the block's"), Background(work):
        raise KeyError("the block's")
    assert ended == [True, True]
    assert not [thread for thread in threading.enumerate() if thread.name == "icefield-parquet-background"]
