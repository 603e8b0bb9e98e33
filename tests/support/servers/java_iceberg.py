"""Iceberg's Java library in a process of its own, which answers requests over its standard input and output.

The program is ``tests/interop/java``; Maven builds it once, with the library from Maven Central.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import java_classes
import pytest
from java_programs import maven

from servers.hive import jars_of_pyspark
from servers.process import REPOSITORY, Run, asked, installed, unavailable

SOURCE = REPOSITORY / "tests" / "interop" / "java"


class JavaError(Exception):
    """The error that Java answered in place of a result."""


class JavaIceberg:
    """A running judge. Locations are paths; rows are as in ``plain_rows``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(
        self, metadata: str, given: Mapping[str, Any] | None = None, *, lineage: bool = False
    ) -> list[dict[str, Any]]:
        """The rows of a table's metadata file; ``given`` is a filter in the JSON form of Java's expressions.

        With ``lineage`` each row has its id and last change.
        """
        location = metadata.removeprefix("file://")
        answer = self.ask(do="read", metadata=location, filter=given, lineage=lineage)
        rows: list[dict[str, Any]] = answer["rows"]
        return rows

    def create(self, location: str, schema: Any, spec: Any = None, properties: Mapping[str, str] | None = None) -> None:
        """Create a table at a location, from its schema and partition spec as JSON."""
        self.ask(do="create", location=location, schema=schema, spec=spec, properties=dict(properties or {}))

    def append(self, location: str, file_format: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows into data files of a format."""
        self.ask(do="append", location=location, format=file_format, rows=list(rows))

    def evolve(self, location: str, **changes: Any) -> None:
        """``promote``, ``rename`` and ``add`` are mappings of a column's name, ``drop`` a list of names."""
        self.ask(do="evolve", location=location, **changes)

    def delete(
        self,
        location: str,
        file_format: str,
        positions: Mapping[str, Sequence[int]],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Delete rows by the positions in their files, and add others, in one commit.

        With position delete files in version 2 and deletion vectors in version 3.
        """
        given = {path: list(map(int, found)) for path, found in positions.items()}
        self.ask(do="delete", location=location, format=file_format, positions=given, rows=list(rows))

    def delete_equal(
        self, location: str, file_format: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Delete the rows of a table without partitions that have these values in the named columns."""
        self.ask(do="deleteEqual", location=location, format=file_format, names=list(names), rows=list(rows))

    def rewrite_manifests(self, location: str) -> int:
        """Cluster the entries of data manifests by partition, and return the number of data manifests afterwards."""
        made: int = self.ask(do="rewriteManifests", location=location)["manifests"]
        return made

    def partition_stats(self, location: str, *, compute: bool = False) -> tuple[str, list[dict[str, Any]]]:
        """The partition statistics file of the current snapshot and its rows; ``compute`` makes the file first."""
        answer = self.ask(do="partitionStats", location=location, compute=compute)
        return answer["path"], answer["rows"]

    def sketches(self, location: str) -> list[dict[str, Any]]:
        """The sketches of distinct values of the current snapshot, and Java's own sketches of the same values."""
        made: list[dict[str, Any]] = self.ask(do="sketches", location=location)["sketches"]
        return made

    def views(self, database: Path, warehouse: Path, namespace: str, create: Sequence[str] = ()) -> list[str]:
        """Create views, and return all views of a namespace in the JDBC catalog ``test`` of an SQLite file."""
        uri = f"jdbc:sqlite:{database}"
        given = {"uri": uri, "warehouse": f"file://{warehouse}", "namespace": namespace, "create": list(create)}
        names: list[str] = self.ask(do="jdbc", catalog="test", **given)["names"]
        return names

    def table(self, location: str, keystore: Path) -> JavaTable:
        """An encrypted table in Hadoop's layout, whose master key is in a local keystore of Icefield."""
        return JavaTable(self, location=location.removeprefix("file://"), keystore=str(keystore))

    def hive_table(self, uri: str, name: str, keystore: Path) -> JavaTable:
        """A table of a Hive Metastore."""
        return JavaTable(self, uri=uri, table=name, keystore=str(keystore))

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request, and return its answer."""
        return asked(self._process, JavaError, request)


class JavaTable:
    """A table that may be encrypted, as Java sees it. Rows are as in ``plain_rows``."""

    def __init__(self, judge: JavaIceberg, **given: str) -> None:
        self._judge, self._given = judge, given

    def create(self, schema: Any, spec: Any = None, properties: Mapping[str, str] | None = None) -> None:
        """Create the table, from its schema and partition spec as JSON."""
        self._judge.ask(do="create", **self._given, schema=schema, spec=spec, properties=dict(properties or {}))

    def append(self, file_format: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows into data files of a format."""
        self._judge.ask(do="append", **self._given, format=file_format, rows=list(rows))

    def delete(self, positions: Mapping[str, Sequence[int]]) -> None:
        """Delete rows by the positions in their files, with deletion vectors."""
        given = {path: list(map(int, found)) for path, found in positions.items()}
        if "location" in self._given:
            given = {path.removeprefix("file://"): found for path, found in given.items()}
        self._judge.ask(do="delete", **self._given, format="puffin", positions=given)

    def delete_equal(self, file_format: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Delete the rows that have these values in the named columns."""
        self._judge.ask(do="deleteEqual", **self._given, format=file_format, names=list(names), rows=list(rows))

    def rewrite_manifests(self) -> None:
        """Cluster the entries of data manifests by partition."""
        self._judge.ask(do="rewriteManifests", **self._given)

    def partition_stats(self, *, compute: bool = False) -> list[dict[str, Any]]:
        """The partition statistics of the current snapshot; ``compute`` makes them first."""
        rows: list[dict[str, Any]] = self._judge.ask(do="partitionStats", **self._given, compute=compute)["rows"]
        return rows

    def read(self) -> list[dict[str, Any]]:
        """The rows."""
        rows: list[dict[str, Any]] = self._judge.ask(do="readCurrent", **self._given)["rows"]
        return rows


@pytest.fixture(scope="session")
def java_iceberg() -> Iterator[JavaIceberg]:
    """Iceberg's Java library, running until the session ends."""
    # The time zone is far from UTC, so that a confusion of local times and instants shows.
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Duser.timezone=America/Los_Angeles"]
    process = subprocess.Popen(
        command("Judge", *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        yield JavaIceberg(process)
    finally:
        java_classes.end(process, 20)


def command(name: str, *options: str) -> list[str]:
    """The command that runs a class of the program, with options of the JVM."""
    program = _built()
    java = shutil.which("java")
    if java is None:
        unavailable("there is no java")
    classes = f"{program / 'target' / 'classes'}:{program / 'target' / 'lib'}/*:{jars_of_pyspark()}/*"
    return [java, *options, "-cp", classes, f"icefield.judge.{name}"]


def _built() -> Path:
    program = maven()
    sources = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".java", ".xml"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def make(folder: Path, run: Run) -> None:
        shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
        run([program, "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies"], folder)

    return installed(f"java-iceberg-{digest}", make)
