"""Append events, and keep their counts by kind in a table of their own."""

from __future__ import annotations

import sys

from icefield_spark import attach
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("counts").getOrCreate()
ice = attach(spark, "lake")  # configured by the driver's environment or by icefield.toml
ice.catalog.create_namespace_if_not_exists("db")

events = spark.range(1000).selectExpr("id", "concat('k', id % 3) AS kind")
if not ice.catalog.table_exists("db.events"):
    ice.create_table("db.events", events, partition_spec=["kind"])
ice.append(events, "db.events")

counts = ice.table("db.events", where="id >= 100").groupBy("kind").count()
if not ice.catalog.table_exists("db.counts"):
    ice.create_table("db.counts", counts)
ice.overwrite(counts, "db.counts")

print("executors run in", *spark.range(1).rdd.map(lambda row: sys.prefix).collect())
print("counted", sum(row["count"] for row in ice.table("db.counts").collect()))
spark.stop()
