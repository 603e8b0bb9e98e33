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
        answer = self._ask(do="read", metadata=location, filter=given, lineage=lineage)
        rows: list[dict[str, Any]] = answer["rows"]
        return rows

    def create(self, location: str, schema: Any, spec: Any = None, properties: Mapping[str, str] | None = None) -> None:
        """Create a table at a location, from its schema and partition spec as JSON."""
        self._ask(do="create", location=location, schema=schema, spec=spec, properties=dict(properties or {}))

    def append(self, location: str, file_format: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows into data files of a format."""
        self._ask(do="append", location=location, format=file_format, rows=list(rows))

    def evolve(self, location: str, **changes: Any) -> None:
        """``promote``, ``rename`` and ``add`` are mappings of a column's name, ``drop`` a list of names."""
        self._ask(do="evolve", location=location, **changes)

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
        self._ask(do="delete", location=location, format=file_format, positions=given, rows=list(rows))

    def delete_equal(
        self, location: str, file_format: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Delete the rows of a table without partitions that have these values in the named columns."""
        self._ask(do="deleteEqual", location=location, format=file_format, names=list(names), rows=list(rows))

    def rewrite_manifests(self, location: str) -> int:
        """Cluster the entries of data manifests by partition, and return the number of data manifests afterwards."""
        made: int = self._ask(do="rewriteManifests", location=location)["manifests"]
        return made

    def partition_stats(self, location: str, *, compute: bool = False) -> tuple[str, list[dict[str, Any]]]:
        """The partition statistics file of the current snapshot and its rows; ``compute`` makes the file first."""
        answer = self._ask(do="partitionStats", location=location, compute=compute)
        return answer["path"], answer["rows"]

    def sketches(self, location: str) -> list[dict[str, Any]]:
        """The sketches of distinct values of the current snapshot, and Java's own sketches of the same values."""
        made: list[dict[str, Any]] = self._ask(do="sketches", location=location)["sketches"]
        return made

    def views(self, database: Path, warehouse: Path, namespace: str, create: Sequence[str] = ()) -> list[str]:
        """Create views, and return all views of a namespace in the JDBC catalog ``test`` of an SQLite file."""
        uri = f"jdbc:sqlite:{database}"
        given = {"uri": uri, "warehouse": f"file://{warehouse}", "namespace": namespace, "create": list(create)}
        names: list[str] = self._ask(do="jdbc", catalog="test", **given)["names"]
        return names

    def _ask(self, **request: Any) -> dict[str, Any]:
        return asked(self._process, JavaError, request)


@pytest.fixture(scope="session")
def java_iceberg() -> Iterator[JavaIceberg]:
    """Iceberg's Java library, running until the session ends."""
    program = _built()
    java = shutil.which("java")
    if java is None:
        unavailable("there is no java")
    classes = f"{program / 'target' / 'classes'}:{program / 'target' / 'lib'}/*"
    # The time zone is far from UTC, so that a confusion of local times and instants shows.
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Duser.timezone=America/Los_Angeles", "-cp", classes]
    process = subprocess.Popen(
        [java, *options, "icefield.judge.Judge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        yield JavaIceberg(process)
    finally:
        java_classes.end(process, 20)


def _built() -> Path:
    program = maven()
    sources = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".java", ".xml"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def make(folder: Path, run: Run) -> None:
        shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
        run([program, "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies"], folder)

    return installed(f"java-iceberg-{digest}", make)
