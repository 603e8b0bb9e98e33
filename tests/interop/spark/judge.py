"""Spark with Iceberg's Java runtime, which answers requests over its standard input and output.

Runs in the environment that ``tests/support/servers/spark_runtime.py`` makes, which holds PySpark and nothing else.
A request is a line of JSON, and so is its answer. Values are as in ``plain_rows``.
"""

import json
import math
import os
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1)


def main(jars, zone):
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Java prints is no answer
    spark = session(jars, zone)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"catalog": catalog, "sql": sql, "run": run}[request.pop("do")](spark, **request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    end(spark)


def session(jars, zone):
    """A session, with Iceberg's extensions where jars are given: the runtime, and then what catalogs need."""
    settings = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # one job a query, not one a stage
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Duser.timezone={zone}",
        "spark.log.level": "OFF",
    }
    if jars:
        settings["spark.jars"], settings["spark.driver.extraClassPath"] = jars.split(",", 1)
        settings["spark.sql.extensions"] = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    builder = SparkSession.builder.master("local[2]").appName("judge")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def end(spark):
    """Stop a session, and wait for its Java process, so that waiting for this process waits for both."""
    process = spark.sparkContext._gateway.proc
    spark.stop()
    process.stdin.close()
    process.wait()


def catalog(spark, name, properties):
    """Attach an Iceberg catalog that caches no table between statements."""
    prefix = f"spark.sql.catalog.{name}"
    spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{prefix}.cache-enabled", "false")
    for key, value in properties.items():
        spark.conf.set(f"{prefix}.{key}", value)
    return {}


def sql(spark, text):
    """The rows of a statement."""
    frame = spark.sql(text)
    names = frame.columns
    return {"rows": [dict(zip(names, map(plain, row), strict=True)) for row in frame.collect()]}


def run(spark, text):
    """The columns and rows of a statement."""
    return answer_of(spark.sql(text))


def answer_of(frame):
    """A frame's columns, as in Spark's JSON, and its rows as lists."""
    return {
        "columns": frame.schema.jsonValue()["fields"],
        "rows": [[plain(each) for each in row] for row in frame.collect()],
    }


def plain(value):
    """A value that JSON has. The process is in UTC, so that Spark's instants are wall clocks of UTC."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else "NaN" if value != value else f"{'-' * (value < 0)}Infinity"
        case Decimal():
            return f"{value:f}"
        case bytes() | bytearray():
            return value.hex()
        case datetime():
            return (value.astimezone(UTC).replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - EPOCH.date()).days
        case dict():
            return [[plain(key), plain(held)] for key, held in value.items()]
        case list():
            return [plain(item) for item in value]
        case tuple():
            return {name: plain(getattr(value, name)) for name in value.__fields__}
    raise TypeError(f"no plain form of {type(value).__name__}")


if __name__ == "__main__":
    main(*sys.argv[1:])
