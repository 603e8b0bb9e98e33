"""A pipeline from the rate source to a table to another one: ``streaming_job.py FOLDER BATCHES``.

It writes a line for each batch that a query finished, and ends after ``BATCHES`` of each; with zero it runs until it is
killed. It makes its tables where they are not there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import icefield
from icefield_spark import attach, ensure_java
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

FOLDER, BATCHES = Path(sys.argv[1]), int(sys.argv[2])
OPTIONS = json.loads((FOLDER / "catalog.json").read_text("utf-8"))


def started() -> SparkSession:
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", f"{FOLDER}/spark-warehouse")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def begin(frame: DataFrame, table: str, **options: str) -> StreamingQuery:
    """A query into a table."""
    properties = {f"catalog.{name}": value for name, value in OPTIONS.items()}
    writer = frame.writeStream.format("icefield").options(**properties, **options)
    checkpoint = f"file://{FOLDER}/checkpoints/{table}"
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime="200 milliseconds").start(table)


def main() -> None:
    spark = started()
    with icefield.load_catalog("lake", **OPTIONS) as catalog:
        catalog.create_namespace_if_not_exists("db")
        rate = spark.readStream.format("rate").option("rowsPerSecond", "20").option("numPartitions", "2").load()
        for name in ("db.first", "db.second"):
            if not catalog.table_exists(name):
                attach(spark, catalog).create_table(name, rate.select("value", "timestamp"))
    properties = {f"catalog.{name}": value for name, value in OPTIONS.items()}
    # Files of tasks and files of the commit: both are left behind by a kill.
    queries = [begin(rate, "db.first", **{"small-task-bytes": "0"})]
    source = spark.readStream.format("icefield").options(**properties, **{"max-files": "20"}).load("db.first")
    queries.append(begin(source, "db.second"))
    seen: dict[str, int] = {}
    while not BATCHES or min([seen.get(query.id, 0) for query in queries]) < BATCHES:
        for query in queries:
            if query.exception() is not None:
                raise SystemExit(f"failed: {query.exception()}")
            progress = query.lastProgress
            if progress is not None and progress["batchId"] + 1 > seen.get(f"last {query.id}", 0):
                seen[f"last {query.id}"] = progress["batchId"] + 1
                seen[query.id] = seen.get(query.id, 0) + 1
                print("finished", query.id, progress["batchId"], flush=True)
        time.sleep(0.05)
    for query in queries:
        query.stop()
    spark.stop()


main()
