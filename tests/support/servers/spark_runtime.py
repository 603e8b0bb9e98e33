"""Iceberg's Java runtime for Spark: PySpark of its newest Spark in an environment of its own, with the jar from Maven.

The program that it runs is ``tests/interop/spark``. There is one session for all tests of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import java_classes
import pytest
from java_programs import java_17, maven_jars

from servers.process import REPOSITORY, Run, asked, installed

SPARK = "4.1.4"
RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""The newest that Maven has; there is none for Spark 4.2 and 4.3."""
DRIVER = "org.xerial:sqlite-jdbc:3.46.1.3"

_PROGRAM = REPOSITORY / "tests" / "interop" / "spark" / "judge.py"
ZONE = "America/Los_Angeles"
"""Far from UTC, so that a wall clock taken for an instant shows."""


class SparkError(Exception):
    """The error that Spark answered in place of a result."""


class SparkRuntime:
    """A running Spark session with Iceberg's catalogs and SQL extensions."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._catalogs = 0

    def catalog(self, warehouse: Path | str) -> str:
        """The catalog name by which statements find the tables of a folder, a directory catalog of Icefield."""
        self._catalogs += 1
        name = f"c{self._catalogs}"
        self._attach(name, type="hadoop", warehouse=f"file://{warehouse}")
        return name

    def shared_catalog(self, name: str, uri: str, warehouse: Path | str) -> None:
        """Attach a JDBC catalog for the database of a catalog ``sql`` of Icefield, under an unused name."""
        properties = {"jdbc.schema-version": "V1", "warehouse": f"file://{warehouse}"}
        self._attach(name, type="jdbc", uri=uri, **properties)

    def rest_catalog(self, uri: str, **properties: str) -> str:
        """The name by which statements find the tables of a server of the REST protocol."""
        self._catalogs += 1
        name = f"c{self._catalogs}"
        self._attach(name, type="rest", uri=uri, **properties)
        return name

    def run(self, text: str) -> dict[str, Any]:
        """The ``columns`` of a statement's result in Spark's JSON form, and its ``rows`` as lists."""
        return self._ask(do="run", text=text)

    def sql(self, text: str) -> list[dict[str, Any]]:
        """The rows of a statement, as in ``plain_rows``."""
        rows: list[dict[str, Any]] = self._ask(do="sql", text=text)["rows"]
        return rows

    def _attach(self, name: str, **properties: str) -> None:
        self._ask(do="catalog", name=name, properties=properties)

    def _ask(self, **request: Any) -> dict[str, Any]:
        return asked(self._process, SparkError, request)


@pytest.fixture(scope="session")
def spark_runtime() -> Iterator[SparkRuntime]:
    """Spark with Iceberg's Java runtime, running until the session ends."""
    java = Path(java_17()[0])
    folder = spark_environment()
    (jar,) = maven_jars(RUNTIME.split(":", 1)[1].replace(":", "-"), [RUNTIME]).glob("*.jar")
    drivers = sorted(maven_jars(DRIVER.split(":", 1)[1].replace(":", "-"), [DRIVER]).glob("*.jar"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK_"))}
    environment |= {"JAVA_HOME": str(java.resolve().parent.parent), "TZ": "UTC"}
    command = [folder / "bin" / "python", _PROGRAM, f"{jar},{':'.join(map(str, drivers))}", ZONE]
    with answering(command, environment, java_classes.archive(folder, "iceberg", str(java)), java) as process:
        yield SparkRuntime(process)


@contextmanager
def answering(
    command: Sequence[str | Path], environment: Mapping[str, str], archive: Path, java: Path
) -> Iterator[subprocess.Popen[str]]:
    """A process that answers requests over its input and output, and starts a Java with an archive of its classes."""
    with java_classes.used_or_made(archive, str(java)) as classes:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env={**environment, "JDK_JAVA_OPTIONS": f"{java_classes.QUICK} {classes}"},
        )
        try:
            yield process
        finally:
            java_classes.end(process)


def spark_environment() -> Path:
    """The folder of an environment that holds PySpark and nothing else."""

    def make(folder: Path, run: Run) -> None:
        run([sys.executable, "-m", "venv", "--without-pip", folder])
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
        run([*install, f"pyspark=={SPARK}"])

    return installed(f"pyspark-{SPARK}", make)
