"""A Spark job as a process of its own, with every log at DEBUG, and the files that it leaves, to search for secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import fastavro
import pyarrow.parquet as pq

LOGGING = """
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/jvm.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n%ex{{full}}
rootLogger.level = debug
rootLogger.appenderRef.file.ref = file
"""
# Every Python process of the job logs all messages into its own file.
CUSTOMIZED = """
import logging, os
logging.basicConfig(filename={folder!r} + "/python-%d.log" % os.getpid(), level=logging.DEBUG)
logging.getLogger("py4j").setLevel(logging.INFO)
"""


def run_job(job: Path, folder: Path, properties: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run ``job FOLDER PROPERTIES.json``, with the catalog ``secret`` configured by the environment.

    The job's properties are outside of the searched folder; its output is inside, as ``out.txt`` and ``err.txt``.
    """
    for name in ("events", "site", "logs"):
        (folder / name).mkdir()
    (folder / "log4j2.properties").write_text(LOGGING.format(folder=f"{folder}/logs"))
    (folder / "site" / "sitecustomize.py").write_text(CUSTOMIZED.format(folder=f"{folder}/logs"))
    given = folder.parent / f"{folder.name}-given.json"
    given.write_text(json.dumps(dict(properties)))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(folder / "site")}
    environment |= {"SPARK_LOCAL_DIRS": str(folder.parent / f"{folder.name}-local")}
    for name, value in properties.items():
        environment[f"ICEFIELD_CATALOG__SECRET__{name.upper().replace('.', '__').replace('-', '_')}"] = value
    command = [sys.executable, str(job), str(folder), str(given)]
    try:
        ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", timeout=900)
    finally:
        given.unlink()
    (folder / "out.txt").write_text(ran.stdout, "utf-8")
    (folder / "err.txt").write_text(ran.stderr, "utf-8")
    return ran


def left(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file that the job left, as a string, and its compressed contents as well."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        yield str(path), path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".avro":
            with path.open("rb") as file:
                reader = fastavro.reader(file)
                yield f"{path}, unpacked", f"{reader.metadata} {[*reader]}"
        elif path.suffix in (".parquet", ".gone") and path.read_bytes()[:4] == b"PAR1":
            yield f"{path}, its footer", str(pq.read_metadata(path).metadata)


def search(folder: Path, secrets: Iterator[str] | list[str]) -> int:
    """Raise ``AssertionError`` if a file of the job contains a secret, and return the number of searched files."""
    wanted, searched = list(secrets), 0
    for name, text in left(folder):
        searched += 1
        for secret in wanted:
            at = text.find(secret)
            assert at < 0, f"{name} holds a credential: {text[max(0, at - 300) : at + 100]!r}"
    return searched
