"""One Glue Data Catalog, three implementations: Iceberg's Java library, PyIceberg and Icefield, in turn and at once."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import NoSuchTable, NotSupportedByCatalog
from java_programs import java_17, maven_jars
from servers.glue import SECRET, client, drop_databases
from servers.hive import jars_of_pyspark

SOURCE = Path(__file__).parent / "java_glue" / "GlueJudge.java"
VERSION = "1.10.0"
ARTIFACTS = [f"org.apache.iceberg:iceberg-{part}:{VERSION}" for part in ("aws", "data", "parquet", "aws-bundle")]
SCHEMA = pa.schema([("writer", pa.string()), ("number", pa.int64())])
RETRIES = {"commit.retry.num-retries": "200", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "500"}
COMMITS = 12

pytestmark = pytest.mark.slow
pyiceberg_catalogs = pytest.importorskip("pyiceberg.catalog")


class JavaGlue:
    """Iceberg's GlueCatalog in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, do: str, table: str, **more: Any) -> dict[str, Any]:
        """Send a request, and raise an error of the other process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "table": table, **more}) + "\n")
        self._process.stdin.flush()
        line = next((line for line in self._process.stdout if line[0] == "{"), '{"error": "the process has ended"}')
        answer: dict[str, Any] = json.loads(line)  # a library writes a warning before the first answer
        assert "error" not in answer, answer["error"]
        return answer


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file://{tmp_path_factory.mktemp('warehouse')}"


@pytest.fixture(scope="module")
def java(glue: dict[str, str], warehouse: str) -> Iterator[JavaGlue]:
    classes = f"{maven_jars(f'java-glue-{VERSION}', ARTIFACTS)}/*:{jars_of_pyspark()}/*"
    command = [
        *java_17(),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-cp",
        classes,
        str(SOURCE),
        glue["glue.endpoint"],
        warehouse,
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": SECRET},
    ) as process:
        yield JavaGlue(process)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def catalog(glue: dict[str, str], warehouse: str) -> Iterator[Catalog]:
    drop_databases(glue)
    with load_catalog("test", type="glue", warehouse=warehouse, **glue) as opened:
        yield opened


@pytest.fixture
def python(glue: dict[str, str], warehouse: str) -> Any:
    """PyIceberg's catalog."""
    return pyiceberg_catalogs.load_catalog("peer", type="glue", warehouse=warehouse, **glue)


def rows(*numbers: int, writer: str = "icefield") -> pa.Table:
    return pa.table({"writer": [writer] * len(numbers), "number": [*numbers]}, schema=SCHEMA)


def read(catalog: Catalog, name: str) -> list[list[Any]]:
    found = catalog.load_table(name).scan().to_arrow().to_pylist()
    return sorted([row["writer"], row["number"]] for row in found)


def shown(glue: dict[str, str], name: str) -> dict[str, Any]:
    """The table as the console of Glue shows it."""
    database, _, table = name.partition(".")
    found: dict[str, Any] = client(glue["glue.endpoint"]).get_table(DatabaseName=database, Name=table)["Table"]
    return found


@pytest.mark.spec("VER-13", "META-34", "COMMIT-05")
def test_java_reads_and_writes_a_table_that_was_made_here(java: JavaGlue, catalog: Catalog) -> None:
    catalog.create_namespace("ours", {"by": "icefield", "comment": "given"})
    table = catalog.create_table("ours.t", SCHEMA, properties={"by": "icefield"})
    table.append(rows(1, 2))
    seen = java.ask("read", "ours.t")
    assert sorted(seen["rows"]) == [["icefield", 1], ["icefield", 2]]
    assert seen["uuid"] == table.metadata.table_uuid
    assert seen["properties"]["by"] == "icefield"
    assert seen["namespace"] == catalog.load_namespace_properties("ours") == {"by": "icefield", "comment": "given"}
    java.ask("append", "ours.t", numbers=[3])
    table.append(rows(4))  # on the version that Java made
    expected = [["icefield", 1], ["icefield", 2], ["icefield", 4], ["java", 3]]
    assert sorted(java.ask("read", "ours.t")["rows"]) == read(catalog, "ours.t") == expected


@pytest.mark.spec("VER-13", "META-34", "COMMIT-05")
def test_a_table_that_java_made_is_read_changed_and_renamed_here(java: JavaGlue, catalog: Catalog) -> None:
    java.ask("namespace", "theirs.t")
    java.ask("create", "theirs.t")
    java.ask("append", "theirs.t", numbers=[1])
    assert catalog.list_tables("theirs") == [("theirs", "t")]
    assert catalog.load_namespace_properties("theirs")["by"] == "java"
    catalog.load_table("theirs.t").append(rows(2))
    java.ask("append", "theirs.t", numbers=[3])
    assert read(catalog, "theirs.t") == [["icefield", 2], ["java", 1], ["java", 3]]
    java.ask("rename", "theirs.t", to="theirs.u")
    assert java.ask("list", "theirs.u")["names"] == ["theirs.u"]
    catalog.rename_table("theirs.u", "theirs.v").append(rows(4))
    assert java.ask("list", "theirs.u")["names"] == ["theirs.v"]
    java.ask("append", "theirs.v", numbers=[5])
    assert len(java.ask("read", "theirs.v")["rows"]) == 5
    java.ask("drop", "theirs.v", purge=False)
    with pytest.raises(NoSuchTable):
        catalog.load_table("theirs.v")


def test_glue_shows_a_table_as_java_would(java: JavaGlue, catalog: Catalog, glue: dict[str, str]) -> None:
    catalog.create_namespace("shown")
    for name in ("shown.here", "shown.there"):
        catalog.create_table(name, SCHEMA)
    java.ask("evolve", "shown.there")
    with catalog.load_table("shown.here").update_schema() as update:
        update.rename_column("number", "many")
        update.add_column("at", "timestamptz", doc="when it was")
        update.add_column("tags", pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2))))
    here, there = shown(glue, "shown.here"), shown(glue, "shown.there")
    columns = {column["Name"]: column for column in here["StorageDescriptor"]["Columns"]}
    assert columns == {column["Name"]: column for column in there["StorageDescriptor"]["Columns"]}
    assert [*columns] == ["writer", "many", "at", "tags", "number"]
    assert here["TableType"] == there["TableType"] == "EXTERNAL_TABLE"
    assert here["Parameters"].keys() == there["Parameters"].keys()
    assert here["StorageDescriptor"]["Location"] == catalog.load_table("shown.here").location()


@pytest.mark.spec("VER-13", "META-34", "COMMIT-05")
def test_pyiceberg_and_icefield_write_in_turn(catalog: Catalog, python: Any) -> None:
    python.create_namespace("both", {"by": "pyiceberg"})
    theirs = python.create_table("both.theirs", SCHEMA, properties={"by": "pyiceberg", "gone": "1"})
    theirs.append(rows(1, writer="pyiceberg"))
    with catalog.load_table("both.theirs").transaction() as change:
        change.set_properties({"by": "icefield"})
        change.remove_properties("gone")
    catalog.load_table("both.theirs").append(rows(2))
    parameters = python._get_glue_table("both", "theirs")["Parameters"]  # which hold the table's properties, too
    assert parameters["by"] == "icefield"
    assert "gone" not in parameters
    theirs.refresh().append(rows(3, writer="pyiceberg"))
    catalog.create_table("both.ours", SCHEMA).append(rows(4))
    python.load_table("both.ours").append(rows(5, writer="pyiceberg"))
    assert read(catalog, "both.theirs") == [["icefield", 2], ["pyiceberg", 1], ["pyiceberg", 3]]
    found = python.load_table("both.ours").scan().to_arrow().to_pylist()
    assert sorted([row["writer"], row["number"]] for row in found) == [["icefield", 4], ["pyiceberg", 5]]
    assert sorted(python.list_tables("both")) == catalog.list_tables("both") == [("both", "ours"), ("both", "theirs")]
    catalog.rename_table("both.ours", "both.renamed")
    assert len(python.load_table("both.renamed").scan().to_arrow()) == 2
    python.rename_table("both.renamed", "both.again")
    assert len(read(catalog, "both.again")) == 2


@pytest.mark.spec("VER-13", "COMMIT-01", "COMMIT-03", "COMMIT-07")
def test_three_write_at_once_and_nothing_is_lost(java: JavaGlue, catalog: Catalog, python: Any) -> None:
    from pyiceberg.exceptions import CommitFailedException

    catalog.create_namespace("raced")
    table = catalog.create_table("raced.t", SCHEMA, properties=RETRIES)
    failures: list[BaseException] = []

    def of_java() -> None:
        java.ask("append", "raced.t", numbers=[*range(COMMITS)])

    def of_pyiceberg() -> None:
        for number in range(COMMITS):
            while True:
                try:
                    python.load_table("raced.t").append(rows(number, writer="pyiceberg"))
                    break
                except CommitFailedException:
                    continue

    def keep(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=keep, args=(act,)) for act in (of_java, of_pyiceberg)]
    for thread in threads:
        thread.start()
    for number in range(COMMITS):
        table.append(rows(number))
    for thread in threads:
        thread.join()
    assert not failures
    writers = ("icefield", "java", "pyiceberg")
    assert read(catalog, "raced.t") == [[writer, number] for writer in writers for number in range(COMMITS)]
    snapshots = catalog.load_table("raced.t").snapshots()
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, 3 * COMMITS + 1))


def test_a_table_of_another_format_and_a_view_are_refused_by_name(catalog: Catalog, glue: dict[str, str]) -> None:
    catalog.create_namespace("mixed")
    asked = client(glue["glue.endpoint"])
    asked.create_table(DatabaseName="mixed", TableInput={"Name": "plain", "TableType": "EXTERNAL_TABLE"})
    asked.create_table(DatabaseName="mixed", TableInput={"Name": "shown", "TableType": "VIRTUAL_VIEW"})
    assert catalog.list_tables("mixed") == []
    with pytest.raises(NotSupportedByCatalog, match=r"mixed.plain of catalog 'test' is a table of another format"):
        catalog.load_table("mixed.plain")
    with pytest.raises(NotSupportedByCatalog, match=r"mixed.shown of catalog 'test' is a view"):
        catalog.load_table("mixed.shown")
    with pytest.raises(NotSupportedByCatalog):
        catalog.create_view("mixed.made", SCHEMA, {"spark": "SELECT 1"})
