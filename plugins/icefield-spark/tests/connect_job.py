"""What can be done through Spark Connect, on a server of its own: ``connect_job.py FOLDER SETTINGS``.

It prints a line of JSON: what each of its steps found, or what was raised there. ``test_connect.py`` looks at it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
from icefield_spark import attach, ensure_java
from icefield_spark.streaming import epoch_properties, is_written
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

FOLDER = Path(sys.argv[1])
PROPERTIES = {"type": "sql", "uri": f"sqlite:///{FOLDER}/c.db", "warehouse": f"file://{FOLDER}/warehouse"}
OPTIONS = {"catalog": "lake", **{f"catalog.{key}": value for key, value in PROPERTIES.items()}}
FOUND: dict[str, Any] = {}


def step(run: Callable[[], Any]) -> Callable[[], Any]:
    try:
        FOUND[run.__name__] = run()
    except Exception as error:
        FOUND[run.__name__] = f"{type(error).__name__}: {error}"
    return run


ensure_java()
builder = SparkSession.builder.remote("local[2]")
for name, value in json.loads(sys.argv[2]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
catalog = icefield.load_catalog("lake", **PROPERTIES)
catalog.create_namespace("db")
ice = attach(spark, catalog)


def rows(first: int, end: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id", "CAST(id AS string) AS name")


def reader(**options: Any) -> Any:
    return spark.read.format("icefield").options(**OPTIONS).options(**options)


def count(name: str) -> int:
    return catalog.load_table(name).scan().count()


def files() -> set[str]:
    return {str(path) for path in (FOLDER / "warehouse").rglob("*.parquet")}


for each in ("t", "copy", "changes"):
    ice.create_table(f"db.{each}", rows(0, 0), partition_spec=["bucket[2](id)"])
ice.append(rows(0, 10), "db.t")


@step
def read() -> Any:
    narrow = reader(where="id < 3").schema("id BIGINT").load("db.t")
    return [reader().load("db.t").count(), sorted(row.id for row in narrow.collect()), narrow.columns]


@step
def write() -> Any:
    rows(10, 12).write.format("icefield").options(**OPTIONS).mode("append").save("db.t")
    late = rows(10, 11).selectExpr("id", "'late' AS name").write.format("icefield").options(**OPTIONS)
    late.option("overwrite-where", "id >= 10").mode("overwrite").save("db.t")
    return [count("db.t"), catalog.load_table("db.t").scan("id = 10").to_arrow()["name"].to_pylist()]


@step
def views() -> Any:
    given = ", ".join(f"`{key}` '{value}'" for key, value in {"path": "db.t", **OPTIONS}.items())
    spark.sql(f"CREATE TEMPORARY VIEW seen USING icefield OPTIONS ({given})")
    found = spark.sql("SELECT count(*) AS n FROM seen WHERE name = 'late'").collect()[0].n
    spark.sql("INSERT INTO seen SELECT 100L, 'by view'")
    return [found, count("db.t")]


@step
def wrong_option() -> Any:
    return reader(snapshot_idd=3).load("db.t").count()


@step
def wrong_table() -> Any:
    return reader().load("db.nosuch").count()


@step
def wrong_value() -> Any:
    spark.range(1).selectExpr("id", "id AS name").write.format("icefield").options(**OPTIONS).mode("append").save(
        "db.t"
    )


@step
def failing() -> Any:
    before = files()
    bad = spark.range(0, 4, 1, 2).select(
        f.when(f.col("id") < 2, f.col("id")).otherwise(f.raise_error(f.lit("planted")).cast("bigint")).alias("id"),
        f.lit("z").alias("name"),
    )
    said = []
    for write in (
        lambda: ice.append(bad, "db.t"),
        lambda: bad.write.format("icefield").options(**OPTIONS).mode("append").save("db.t"),
    ):
        try:
            write()
        except Exception as error:
            said.append("planted" in str(error))
    return [said, sorted(files() - before), count("db.t")]


def stream(source: str, target: str, checkpoint: str, **options: Any) -> Any:
    events = spark.readStream.format("icefield").options(**OPTIONS).options(**options).load(source)
    return (
        events.writeStream.format("icefield")
        .options(**OPTIONS)
        .option("checkpointLocation", f"{FOLDER}/{checkpoint}")
        .trigger(availableNow=True)
        .start(target)
    )


@step
def streams() -> Any:
    ice.create_table_as(rows(0, 5), "db.source")
    ice.append(rows(5, 8), "db.source")
    found = []
    for more in (None, rows(8, 9), None):
        if more is not None:
            ice.append(more, "db.source")
        query = stream("db.source", "db.copy", "copied", **{"max-files": 1})
        query.awaitTermination(300)
        found.append([count("db.copy"), len(catalog.load_table("db.copy").snapshots())])
    return found


@step
def stream_of_overwrites() -> Any:
    query = stream("db.t", "db.copy", "overwritten")
    query.awaitTermination(300)
    return str(query.exception())


@step
def batches() -> Any:
    def write(batch: DataFrame, number: int) -> None:
        here = icefield.load_catalog("lake", **PROPERTIES)
        if not is_written(here.load_table("db.changes"), "changes", number):
            properties = epoch_properties("changes", number)
            attach(batch.sparkSession, here).append(batch, "db.changes", snapshot_properties=properties)

    events = spark.readStream.format("icefield").options(**OPTIONS).load("db.source")
    for _ in range(2):
        query = events.writeStream.foreachBatch(write).trigger(availableNow=True)
        query.option("checkpointLocation", f"{FOLDER}/batches").start().awaitTermination(300)
    return count("db.changes")


@step
def session() -> Any:
    ice.sql("UPDATE db.t SET name = 'u' WHERE id % 2 = 1")
    ice.sql("DELETE FROM db.t WHERE id % 5 = 4")
    ice.sql("MERGE INTO db.t t USING (SELECT 1 AS id, 'm' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    found = ice.sql("SELECT id, name, '{}' AS b FROM db.t WHERE name IS NOT NULL AND id < 3 ORDER BY id")
    joined = ice.sql(
        "WITH q AS (SELECT id FROM db.t) SELECT count(*) FROM q JOIN db.t.snapshot_id_{} s ON q.id = s.id".format(
            catalog.load_table("db.t").history()[0].snapshot_id
        )
    )
    first = f.col("id") + 1 == 1
    by_column = [[row.id for row in ice.table("db.t", first, ["id"]).collect()], ice.count("db.t", first)]
    files = [len(ice.explain("db.t", where).files) for where in (first, None)]
    return [list(map(list, found.collect())), ice.count("db.t"), joined.collect()[0][0], by_column, files]


@step
def insert() -> Any:
    return ice.sql("INSERT INTO db.t SELECT 1, 'x'").collect()


@step
def function() -> Any:
    return ice.sql("SELECT system.bucket(4, id) FROM db.t").collect()


@step
def view() -> Any:
    catalog.create_view("db.seen", catalog.load_table("db.t").schema(), {"spark": "SELECT * FROM db.t"})
    return ice.sql("SELECT * FROM db.seen").collect()


print("FOUND " + json.dumps(FOUND))
spark.stop()
