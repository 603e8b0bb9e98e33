"""Spark Connect: the data source, streams and the session over a server, as over a session of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")

JOB = Path(__file__).with_name("connect_job.py")
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}

# The job has a limit of its own, which a busy machine needs.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the steps of the job found."""
    folder = tmp_path_factory.mktemp("connect")
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "0",  # the server takes a free port, and Spark thinks of it as one of its own tests
    }
    command = [sys.executable, JOB, folder, json.dumps(SETTINGS)]
    ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=1_500)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    (line,) = [line for line in ran.stdout.splitlines() if "FOUND " in line]
    answer: dict[str, Any] = json.loads(line.partition("FOUND ")[2])
    return answer


def test_the_data_source_reads_writes_and_serves_views(found: dict[str, Any]) -> None:
    assert found["read"] == [10, [0, 1, 2], ["id"]]
    assert found["write"] == [11, ["late"]]
    assert found["views"] == [1, 12]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("wrong_option", "InvalidArgument: the data source has no option 'snapshot_idd'; was 'snapshot-id' meant?"),
        ("wrong_table", "NoSuchTable: no table db.nosuch in catalog 'lake'"),
        ("wrong_value", "InvalidArgument: "),
        ("stream_of_overwrites", "is no append (its operation is"),
        ("insert", "UnsupportedFeature: ice.sql does not INSERT by names: use ice.append"),
        ("function", "UnsupportedFeature: Spark does not know the function system.bucket of the catalog"),
        ("view", "UnsupportedFeature: db.seen is a view, whose query takes Spark's analyzer"),
    ],
)
def test_what_is_wrong_is_said_without_the_trace_of_a_worker(found: dict[str, Any], step: str, said: str) -> None:
    assert said in found[step]
    assert "Traceback" not in found[step]


def test_a_write_that_fails_leaves_no_file(found: dict[str, Any]) -> None:
    assert found["failing"] == [[True, True], [], 12]


def test_streams_write_every_row_once(found: dict[str, Any]) -> None:
    rows, snapshots = zip(*found["streams"], strict=True)
    assert rows == (8, 9, 9)
    assert snapshots[0] >= 2
    assert snapshots[2] == snapshots[1] == snapshots[0] + 1
    assert found["batches"] == 9, found["batches"]


def test_the_session_changes_and_reads_tables(found: dict[str, Any]) -> None:
    assert isinstance(found["session"], list), found["session"]
    rows, count, joined, by_column, files = found["session"]
    assert rows == [[0, "0", "{}"], [1, "m", "{}"], [2, "2", "{}"]]
    assert (count, joined) == (10, 8)
    assert by_column == [[0], 1]
    assert files[0] == files[1]  # planned before the condition is known
