"""What attempts leave that do not win: nothing. A task is tried twice in these tests."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.writing import DataFile
from icefield_spark.ending import InputCutOff, is_hung_up, whole
from icefield_spark.source import QuerySource
from icefield_spark.writer import IcefieldWriter
from icefield_spark.writing import ChunkWriter
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

Found = Callable[[], set[str]]

FAILING = "SELECT if(id = 25000, cast(raise_error('planted') AS BIGINT), id) AS id FROM range(0, 30000, 1, 1)"
"""One partition in batches of 10,000 rows, the third of which cannot be computed."""


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_whose_rows_cannot_all_be_computed_takes_back_its_files_itself(
    ice: Any, people: icefield.Table, data_files: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield_spark.jobs.sweep", lambda *_: None)
    before = data_files()
    with pytest.raises(PySparkException, match="planted"):
        ice.append(ice.spark.sql(FAILING), "db.people")
    assert data_files() == before
    assert people.refresh().scan().count() == 3


@pytest.mark.slow
@pytest.mark.spark
def test_a_failed_write_of_the_data_source_leaves_no_file(
    spark: Any, people: icefield.Table, options: dict[str, str], data_files: Found
) -> None:
    before = data_files()
    with pytest.raises(PySparkException, match="planted"):
        spark.sql(FAILING).write.format("icefield").options(**options).mode("append").save("db.people")
    assert data_files() == before
    assert people.refresh().scan().count() == 3


class Stream:
    """What ``pyspark.worker.main`` reads from, after the last batch."""

    def __init__(self, rest: bytes) -> None:
        self._rest = rest

    def peek(self, size: int) -> bytes:
        return self._rest


def main(infile: Stream, outfile: None) -> list[pa.RecordBatch]:
    """As in ``pyspark.worker``: the function of a user runs below it, in a generator."""
    nothing: Iterator[pa.RecordBatch] = iter(())
    return list(whole(nothing))


def test_input_is_whole_when_spark_says_so_behind_it() -> None:
    assert main(Stream(b"\xff\xff\xff\xfc"), None) == []
    with pytest.raises(InputCutOff):
        main(Stream(b""), None)


def test_input_is_whole_outside_of_spark() -> None:
    assert list(whole(iter(()))) == []


@pytest.mark.parametrize("is_over", [False, True])
def test_an_attempt_sees_that_spark_has_hung_up_on_it_with_its_input_unread(is_over: bool) -> None:
    theirs, ours = socket.socketpair()
    theirs.sendall(b"\xff\xff\xff\xfc")
    if is_over:
        theirs.close()
    with os.fdopen(ours.detach(), "rb") as stream:
        assert is_hung_up(stream) is is_over
    theirs.close()


def test_nobody_hangs_up_outside_of_spark() -> None:
    assert not is_hung_up(None)


@pytest.mark.slow
def test_the_data_source_waits_for_tasks_that_still_write_when_one_has_failed(
    people: icefield.Table, options: dict[str, str], data_files: Found
) -> None:
    columns = StructType([StructField("id", LongType(), False)])
    writer = IcefieldWriter(QuerySource({**options, "path": "db.people"}), columns, False)
    before, written = data_files(), list[DataFile]()

    def late() -> None:
        time.sleep(1.5)
        written.extend(ChunkWriter(writer._context).write(iter([pa.record_batch({"id": pa.array([9])})])).files)

    task = threading.Thread(target=late)
    task.start()
    writer.abort([None, None])
    task.join()
    assert written
    assert data_files() == before
