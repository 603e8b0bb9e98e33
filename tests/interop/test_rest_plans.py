"""Iceberg's Java runtime for Spark reads by plans of the server: the rows equal those of its own plans and of Icefield.

An answer has three files at most here, so that plans go on over several requests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from icefield.catalog import Catalog, Table
from plain_rows import comparable, plain_rows
from rest_lake import Served, served_here
from servers.spark_runtime import SparkRuntime

icefield_rest_server = pytest.importorskip("icefield_rest_server")

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("value", pa.float64()),
        ("day", pa.date32()),
        ("deep", pa.struct([("a", pa.int32())])),
    ]
)
CONDITIONS = {
    "id > 37": "id > 37",
    "id >= 12 AND id < 19 AND part = 'a'": "id >= 12 and id < 19 and part = 'a'",
    "part IN ('a', 'c') OR id = 3": "part in ('a', 'c') or id = 3",
    "NOT (part = 'a' OR value IS NULL)": "not (part = 'a' or value is null)",
    "part IS NULL": "part is null",
    "part <> 'b' AND id NOT IN (1, 2, 30)": "part is not null and part != 'b' and id not in (1, 2, 30)",
    "part LIKE 'a%'": "part like 'a%'",
    "day >= DATE'1970-01-20' AND day < DATE'1970-02-03'": "day >= '1970-01-20' and day < '1970-02-03'",
    "deep.a < 9": "deep.a < 9",
    "value = double('NaN')": "value is nan",
    "id = 1000": "id = 1000",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = icefield_rest_server.Settings(max_plan_page=3)
    with served_here(tmp_path_factory.mktemp("served"), settings) as server:
        yield server


@pytest.fixture(scope="module")
def ours(served: Served) -> Iterator[Catalog]:
    with served.past() as catalog:
        catalog.create_namespace("db")
        yield catalog


@pytest.fixture(scope="module")
def both(spark_runtime: SparkRuntime, served: Served) -> tuple[str, str]:
    """Spark's two catalogs on the server: Spark plans scans in the first, and the server in the second."""
    return spark_runtime.rest_catalog(served.uri), spark_runtime.rest_catalog(
        served.uri, **{"scan-planning-mode": "server"}
    )


def rows(first: int, number: int) -> pa.Table:
    ids = range(first, first + number)
    made = [
        {
            "id": id_,
            "part": (None, "a", "ab", "c")[id_ % 4],
            "value": (float("nan"), None, 0.5)[id_ % 3],
            "day": id_,
            "deep": {"a": id_ % 20},
        }
        for id_ in ids
    ]
    days = pa.array([row.pop("day") for row in made], pa.int32()).cast(pa.date32())
    table = pa.Table.from_pylist(made, schema=SCHEMA.remove(3))
    return table.add_column(3, "day", days)


def with_deletes(ours: Catalog, version: int) -> Table:
    """A table of two partition specs, with deletes of every kind that its version has."""
    modes = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
    properties = {"format-version": str(version), "write.delete.granularity": "file", **modes}
    table = ours.create_table(f"db.t{version}", SCHEMA, partition_spec=["part"], properties=properties)
    for first in (0, 10, 20):
        table.append(rows(first, 10))
    table.delete("id in (1, 5, 12, 25)")
    table.delete_by_equality(pa.table({"id": [6, 16], "part": ["ab", None]}), ["id", "part"])
    with table.update_spec() as spec:
        spec.remove_field("part")
        spec.add_field("day", "month")
        spec.add_field("id", "bucket[3]")
    table.append(rows(30, 12))
    table.update("id = 7", {"value": 9.0})
    table.delete("id = 33")
    return table.refresh()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("DEL-33", "DEL-34", "SCAN-43")
def test_java_reads_by_plans_of_the_server_what_it_reads_by_its_own(
    ours: Catalog, served: Served, spark_runtime: SparkRuntime, both: tuple[str, str], version: int
) -> None:
    table = with_deletes(ours, version)
    contents = set(table.inspect.delete_files()["content"].to_pylist())
    assert contents == {1, 2}
    name, schema = f"db.t{version}", table.schema()
    before = served.done()
    for condition, ours_of_it in {"true": "true", **CONDITIONS}.items():
        expected = comparable(plain_rows(table.scan(ours_of_it).to_arrow(), schema), schema)
        by_java, by_server = (
            comparable(spark_runtime.sql(f"SELECT * FROM {catalog}.{name} WHERE {condition}"), schema)
            for catalog in both
        )
        assert by_java == expected, condition
        assert by_server == expected, condition
    done = served.done() - before
    assert done["planTableScan"] >= 1 + len(CONDITIONS)
    assert done["fetchScanTasks"] >= 3


def test_java_reads_versions_branches_and_few_columns_by_plans_of_the_server(
    ours: Catalog, served: Served, spark_runtime: SparkRuntime, both: tuple[str, str]
) -> None:
    table = ours.create_table("db.versions", SCHEMA, partition_spec=["bucket[2](id)"])
    for first in (0, 10):
        table.append(rows(first, 10))
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "work")
    table.delete("id < 5")
    with table.update_schema() as update:
        update.rename_column("value", "worth")
        update.delete_column("deep")
    table.append(rows(20, 5).drop_columns(["deep"]).rename_columns(["id", "part", "worth", "day"]))
    first = table.snapshots()[0].snapshot_id
    before = served.done()["planTableScan"]
    # Java 1.12 looks for the columns of residual filters in the current schema.
    queries = (
        f"SELECT id, value, deep.a FROM {{c}}.db.versions VERSION AS OF {first} WHERE id > 3",
        "SELECT count(*), sum(id) FROM {c}.db.versions VERSION AS OF 'work' WHERE id > 2",
        "SELECT worth FROM {c}.db.versions WHERE part = 'a' AND id < 23",
        "SELECT count(*), max(day), min(id) FROM {c}.db.versions",
        "SELECT a.id FROM {c}.db.versions a JOIN {c}.db.versions b ON a.id = b.id + 1 WHERE b.part = 'c'",
    )
    for query in queries:
        by_java, by_server = (sorted(map(repr, spark_runtime.sql(query.format(c=catalog)))) for catalog in both)
        assert by_server == by_java, query
        assert by_java
    assert served.done()["planTableScan"] > before + len(queries) - 2  # a count may come from the table's totals
