"""Iceberg's Java library 1.12 with encrypted tables, in a process of its own that answers requests.

The program is ``tests/interop/java_encryption``; its key management client reads the local keystore of Icefield.
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
from java_programs import maven_jars

from servers.process import REPOSITORY, Run, asked, installed, unavailable

SOURCES = [
    REPOSITORY / "tests" / "interop" / "java_encryption" / "EncryptionJudge.java",
    REPOSITORY / "tests" / "interop" / "java" / "src" / "main" / "java" / "icefield" / "judge" / "Values.java",
]
VERSION = "1.12.0"
ARTIFACTS = [
    *(f"org.apache.iceberg:iceberg-{part}:{VERSION}" for part in ("core", "data", "parquet", "orc")),
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
    "org.slf4j:slf4j-nop:2.0.17",
]


class JavaEncryptionError(Exception):
    """The error that Java answered in place of a result."""


class JavaEncryption:
    """A running judge. Locations are paths; rows are as in ``plain_rows``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def table(self, location: str, keystore: Path) -> JavaEncryptedTable:
        """An encrypted table, whose master key is in a local keystore."""
        return JavaEncryptedTable(self, location.removeprefix("file://"), str(keystore))

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request, and return its answer."""
        return asked(self._process, JavaEncryptionError, request)


class JavaEncryptedTable:
    """A table in Hadoop's layout, as Java sees it."""

    def __init__(self, judge: JavaEncryption, location: str, keystore: str) -> None:
        self._judge, self._given = judge, {"location": location, "keystore": keystore}

    def create(self, schema: Any, spec: Any = None, properties: Mapping[str, str] | None = None) -> None:
        """Create the table, from its schema and partition spec as JSON."""
        self._judge.ask(do="create", **self._given, schema=schema, spec=spec, properties=dict(properties or {}))

    def append(self, file_format: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows into data files of a format."""
        self._judge.ask(do="append", **self._given, format=file_format, rows=list(rows))

    def delete(self, positions: Mapping[str, Sequence[int]]) -> None:
        """Delete rows by the positions in their files, with deletion vectors."""
        given = {path.removeprefix("file://"): list(map(int, found)) for path, found in positions.items()}
        self._judge.ask(do="delete", **self._given, positions=given)

    def delete_equal(self, file_format: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Delete the rows that have these values in the named columns."""
        self._judge.ask(do="deleteEqual", **self._given, format=file_format, names=list(names), rows=list(rows))

    def rewrite_manifests(self) -> None:
        """Put the entries of all data manifests into one."""
        self._judge.ask(do="rewriteManifests", **self._given)

    def read(self) -> list[dict[str, Any]]:
        """The rows."""
        rows: list[dict[str, Any]] = self._judge.ask(do="read", **self._given)["rows"]
        return rows


@pytest.fixture(scope="session")
def java_encryption() -> Iterator[JavaEncryption]:
    """Iceberg's Java library with encrypted tables, running until the session ends."""
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        unavailable("there is no java")
    jars = maven_jars(f"java-encryption-{VERSION}", ARTIFACTS)
    digest = sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]

    def make(folder: Path, run: Run) -> None:
        run([javac, "-nowarn", "-d", str(folder), "-cp", f"{jars}/*", *map(str, SOURCES)])

    classes = f"{installed(f'java-encryption-{digest}', make)}:{jars}/*"
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Duser.timezone=America/Los_Angeles", "-cp", classes]
    process = subprocess.Popen(
        [java, *options, "icefield.judge.EncryptionJudge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        yield JavaEncryption(process)
    finally:
        java_classes.end(process, 20)
