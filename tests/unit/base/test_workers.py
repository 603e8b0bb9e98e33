"""One setting for the number of threads: ``io.threads``."""

import threading

import pyarrow as pa
import pytest
from icefield import FileIO, Plugins, load_catalog
from icefield.base.concurrency import MAX_THREADS, processors, worker_count
from icefield.errors import InvalidArgument


def test_the_processors_decide_where_nothing_is_set():
    assert worker_count(None) == min(8, processors())
    assert 8 <= worker_count(None, waiting=True) <= 16


def test_the_setting_counts_for_all_threads_and_a_number_for_one_call_counts_more():
    io = FileIO(Plugins.installed(), {"io.threads": "3"})
    assert (io.workers(), io.workers(waiting=True), io.workers(5), io.workers(0)) == (3, 3, 5, 1)


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "", str(MAX_THREADS + 1)])
def test_a_value_that_is_no_number_of_threads_is_refused_by_name(value):
    with pytest.raises(InvalidArgument, match=r"io\.threads"):
        FileIO(Plugins.installed(), {"io.threads": value})


def test_what_a_catalog_states_for_a_table_counts_for_the_table():
    io = FileIO(Plugins.installed(), {"io.threads": "3"})
    assert io.for_table(None, {"io.threads": "2"}).workers() == 2
    with pytest.raises(InvalidArgument, match=r"io\.threads"):
        io.for_table(None, {"io.threads": "100000"})


def test_a_catalog_with_one_thread_reads_and_writes_with_the_calling_thread_and_one_writer(tmp_path, monkeypatch):
    started: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    catalog = load_catalog("one", type="directory", warehouse=f"file://{tmp_path}", **{"io.threads": "1"})
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"write.format.default": "avro"})
    monkeypatch.setattr(threading.Thread, "start", noted)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    reading = [name for name in started if name.startswith(("icefield-read", "icefield-plan"))]
    assert reading == []
    assert len([name for name in started if name.startswith("icefield-write")]) == 4
