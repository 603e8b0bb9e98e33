"""One Hive Metastore, two implementations: Iceberg's Java library and Icefield, in turn and at once."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from java_programs import java_17, maven_jars
from servers.hive import drop_databases, jars_of_pyspark

SOURCE = Path(__file__).parent / "java_hive" / "HiveJudge.java"
VERSION = "1.10.0"
ARTIFACTS = [f"org.apache.iceberg:iceberg-{part}:{VERSION}" for part in ("hive-metastore", "data", "parquet")]
SCHEMA = pa.schema([("writer", pa.string()), ("number", pa.int64())])

pytestmark = pytest.mark.slow


class JavaCatalog:
    """Iceberg's HiveCatalog in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, do: str, table: str, **more: Any) -> dict[str, Any]:
        """Send a request, and raise an error of the other process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "table": table, **more}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        assert "error" not in answer, answer["error"]
        return answer


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file://{tmp_path_factory.mktemp('warehouse')}"


@pytest.fixture(scope="module")
def java(hive: str, warehouse: str) -> Iterator[JavaCatalog]:
    classes = f"{maven_jars(f'java-hive-{VERSION}', ARTIFACTS)}/*:{jars_of_pyspark()}/*"
    command = [*java_17(), "-Xmx512m", "-XX:+UseSerialGC", "-cp", classes, str(SOURCE), hive, warehouse]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as process:
        yield JavaCatalog(process)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def catalog(hive: str, warehouse: str) -> Iterator[Catalog]:
    drop_databases(hive)
    with load_catalog("test", type="hive", uri=hive, warehouse=warehouse) as opened:
        yield opened


def rows(*numbers: int) -> pa.Table:
    return pa.table({"writer": ["python"] * len(numbers), "number": [*numbers]}, schema=SCHEMA)


def read(catalog: Catalog, name: str) -> list[list[Any]]:
    found = catalog.load_table(name).scan().to_arrow().to_pylist()
    return sorted([row["writer"], row["number"]] for row in found)


@pytest.mark.spec("VER-13", "META-34", "COMMIT-05")
def test_java_reads_and_writes_a_table_that_was_made_here(java: JavaCatalog, catalog: Catalog) -> None:
    catalog.create_namespace("ours", {"by": "python", "comment": "given"})
    table = catalog.create_table("ours.t", SCHEMA, properties={"by": "python"})
    table.append(rows(1, 2))
    seen = java.ask("read", "ours.t")
    assert sorted(seen["rows"]) == [["python", 1], ["python", 2]]
    assert seen["uuid"] == table.metadata.table_uuid
    assert seen["properties"]["by"] == "python"
    ours = catalog.load_namespace_properties("ours")
    assert {key: ours[key] for key in ("by", "comment", "hive.metastore.database.owner")} == {
        key: seen["namespace"][key] for key in ("by", "comment", "hive.metastore.database.owner")
    }
    java.ask("append", "ours.t", numbers=[3])
    table.append(rows(4))  # on the version that Java made
    expected = [["java", 3], ["python", 1], ["python", 2], ["python", 4]]
    assert sorted(java.ask("read", "ours.t")["rows"]) == read(catalog, "ours.t") == expected


@pytest.mark.spec("VER-13", "META-34", "COMMIT-05")
def test_a_table_that_java_made_is_read_and_changed_here(java: JavaCatalog, catalog: Catalog) -> None:
    java.ask("namespace", "theirs.t")
    java.ask("create", "theirs.t")
    java.ask("append", "theirs.t", numbers=[1])
    assert catalog.list_tables("theirs") == [("theirs", "t")]
    assert catalog.load_namespace_properties("theirs")["by"] == "java"
    table = catalog.load_table("theirs.t")
    assert table.properties["by"] == "java"
    table.append(rows(2))
    with table.update_schema() as update:
        update.add_column("more", "timestamp")
    java.ask("append", "theirs.t", numbers=[3])
    assert read(catalog, "theirs.t") == [["java", 1], ["java", 3], ["python", 2]]
    java.ask("rename", "theirs.t", to="theirs.u")
    assert java.ask("list", "theirs.u")["names"] == ["theirs.u"]
    catalog.rename_table("theirs.u", "theirs.v").append(rows(4))
    assert len(java.ask("read", "theirs.v")["rows"]) == 4
    catalog.drop_table("theirs.v")
    assert java.ask("list", "theirs.v")["names"] == []


@pytest.mark.spec("VER-13", "COMMIT-01", "COMMIT-03", "COMMIT-07")
def test_both_write_at_once_and_nothing_is_lost(java: JavaCatalog, catalog: Catalog) -> None:
    catalog.create_namespace("raced")
    retry_properties = {
        "commit.retry.num-retries": "200",
        "commit.retry.min-wait-ms": "10",
        "commit.retry.max-wait-ms": "500",
    }
    table = catalog.create_table("raced.t", SCHEMA, properties=retry_properties)
    failures: list[BaseException] = []

    def theirs() -> None:
        try:
            java.ask("append", "raced.t", numbers=[*range(15)])
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=theirs)
    thread.start()
    for number in range(15):
        table.append(rows(number))
    thread.join()
    assert not failures
    assert read(catalog, "raced.t") == sorted([writer, n] for writer in ("java", "python") for n in range(15))
    snapshots = catalog.load_table("raced.t").snapshots()
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, 31))
    writers = ["python" if s.summary.get("engine-name") == "icefield" else "java" for s in snapshots]
    assert set(writers) == {"java", "python"}
