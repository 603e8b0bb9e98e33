"""Stock Spark, with Icefield and no jar, of the version that Iceberg's Java runtime has.

The program that it runs is in ``tests/interop/spark``. There is one session for all tests of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import java_classes
import pytest
from java_programs import java_17

from servers.process import REPOSITORY, asked
from servers.spark_runtime import ZONE, SparkError, answering, spark_environment

_PROGRAM = REPOSITORY / "tests" / "interop" / "spark" / "stock.py"


class StockSpark:
    """A running Spark session in which ``ice.sql`` runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def attach(self, name: str, **properties: str) -> None:
        """Attach a catalog under a name."""
        asked(self._process, SparkError, {"do": "catalog", "name": name, "given": properties})

    def run(self, name: str, text: str) -> dict[str, Any]:
        """The ``columns`` of a statement's result in Spark's JSON form, and its ``rows`` as lists."""
        return asked(self._process, SparkError, {"do": "run", "name": name, "text": text})


@pytest.fixture(scope="session")
def stock_spark() -> Iterator[StockSpark]:
    """Spark with Icefield, running until the session ends."""
    java = Path(java_17()[0])
    folder = spark_environment()
    (packages,) = folder.glob("lib/python*/site-packages")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    environment = {
        **kept,
        "JAVA_HOME": str(java.resolve().parent.parent),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])),
        "TZ": "UTC",
    }
    command = [sys.executable, _PROGRAM, ZONE]
    with answering(command, environment, java_classes.archive(folder, "stock", str(java)), java) as process:
        yield StockSpark(process)
