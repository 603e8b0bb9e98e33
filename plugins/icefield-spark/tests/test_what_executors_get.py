"""Executors are given what opens files, and nothing that a catalog's service is asked with."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

import pytest
from icefield import FileIO, Plugins
from icefield_spark.executors import for_executors


@dataclass
class Context:
    io: FileIO


def test_credentials_of_a_service_stay_on_the_driver_and_those_of_files_travel() -> None:
    service = {
        "uri": "https://host",
        "token": "secret-a",
        "credential": "me:secret-b",
        "rest.secret-access-key": "secret-c",
        "rest.auth.basic.password": "secret-d",
        "header.x-key": "secret-e",
        "urn:ietf:params:oauth:token-type:jwt": "secret-f",
    }
    files = {"s3.secret-access-key": "of-the-table", "s3.region": "here"}
    given = FileIO(Plugins.installed(), {**service, "s3.region": "there"}).for_table(None, files)
    travelled = pickle.dumps(for_executors(Context(given)))
    assert b"secret-" not in travelled.replace(b"s3.secret-access-key", b"")
    assert pickle.loads(travelled).io.properties == files


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [f"icefield_spark.{each}" for each in ("chunks", "rewriting", "row_writer", "writing")]
)
def test_a_worker_of_spark_loads_no_transaction(module: str) -> None:
    program = f"import sys, {module}; print('icefield.transaction' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["pyspark_icefield", "icefield_spark.chunks", "icefield_spark.writing"])
def test_a_worker_of_spark_loads_neither_the_session_nor_its_sql(module: str) -> None:
    """Each of the processes that Spark starts for a first use would take half a second longer."""
    program = (
        f"import sys, {module}; print([name for name in ('sqlglot', 'icefield_spark.session') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
