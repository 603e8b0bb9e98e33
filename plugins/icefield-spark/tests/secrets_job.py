"""A Spark job with credentials among its properties, which prints all that Spark shows of it, errors included.

Run as a process of its own: ``secrets_job.py FOLDER PROPERTIES.json``; the environment configures the catalog
``secret`` with the same properties. What it prints, logs and leaves is searched by ``test_secrets.py``.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from icefield_spark import attach, ensure_java
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

FOLDER, PROPERTIES = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
SHOWN_BY_SPARK = ("uri", "adls.account-key", "adls.connection-string")
UNKNOWN = "unknown.property"
provoked: list[str] = []


def started() -> SparkSession:
    ensure_java()
    logs = f"-Dlog4j2.configurationFile={FOLDER}/log4j2.properties"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", logs)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", f"{FOLDER}/spark-warehouse")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file://{FOLDER}/events")
        .getOrCreate()
    )


def show(frame: DataFrame, *modes: str) -> None:
    """All that Spark prints of a frame."""
    print(repr(frame), frame.schema.json())
    for mode in modes:
        frame.explain(mode=mode)
    print(frame._jdf.queryExecution().toString())
    frame.show()


def fails(what: str, action: Callable[[], Any]) -> None:
    """An error, printed with everything that it holds."""
    try:
        action()
    except Exception as error:
        provoked.append(what)
        traceback.print_exc()
        print(what, repr(error), str(error), getattr(error, "data", None), getattr(error, "__cause__", None))
        with suppress(Exception):
            print(error.java_exception.toString())  # type: ignore[attr-defined]
        return
    raise SystemExit(f"{what} did not fail")


def lose(table: str) -> list[Path]:
    """Move a table's data files away."""
    gone = []
    for path in FOLDER.glob(f"warehouse/db/{table}/data/**/*.parquet"):
        gone.append(path)
        path.rename(path.with_suffix(".gone"))
    return gone


def session_road(spark: SparkSession, catalog: icefield.Catalog) -> None:
    ice = attach(spark, catalog)
    print(repr(ice), repr(catalog), repr(catalog.io), repr(catalog._backend))
    rows = spark.range(20).selectExpr("id", "cast(id % 2 AS string) AS kind")
    ice.create_table("db.t", rows, partition_spec=["kind"])
    ice.append(rows, "db.t")
    ice.overwrite(rows.limit(3), "db.t", "id > 10")
    show(ice.table("db.t", where="id > 3", columns=["id"]), "simple", "extended", "codegen", "cost", "formatted")
    ice.table("db.t").createOrReplaceTempView("seen")
    print(spark.sql("EXPLAIN EXTENDED SELECT kind, count(*) FROM seen GROUP BY kind").first()[0])
    fails("a table that is not there", lambda: ice.table("db.nothing"))
    fails("columns that do not fit", lambda: ice.append(rows.selectExpr("id AS other"), "db.t"))

    def burst(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise RuntimeError("planted in an executor")

    fails("rows that cannot be made", lambda: ice.append(rows.mapInArrow(burst, rows.schema), "db.t"))
    lost = ice.table("db.t")
    gone = lose("t")
    fails("a file that is gone, on an executor", lost.collect)
    for path in gone:
        path.write_bytes(b"nonsense" * 100)
    fails("a file that is damaged, on an executor", lost.collect)
    ice.create_table("db.blocked", rows)
    (FOLDER / "warehouse/db/blocked/data").write_text("where a folder should be")
    fails("a file that cannot be written, on an executor", lambda: ice.append(rows, "db.blocked"))


def data_source_road(spark: SparkSession, options: dict[str, str], table: str) -> None:
    """``options`` name the catalog, or hold its properties as well: then it is shown what Spark does with those."""
    rows = spark.range(20).selectExpr("id", "cast(id % 2 AS string) AS kind")

    def reader(more: dict[str, str] | None = None) -> DataFrameReader:  # one a read: it remembers its options
        return spark.read.format("icefield").options(**{**options, **(more or {})})

    def writer(frame: DataFrame, mode: str) -> DataFrameWriter:
        return frame.write.format("icefield").options(**options).mode(mode)

    writer(rows, "append").save(f"db.{table}")
    seen = reader().load(f"db.{table}").where("id > 3")
    show(seen, "extended", "formatted")
    seen.createOrReplaceTempView("source")  # a command whose plan shows every option
    if len(options) > 1:
        return
    writer(rows, "overwrite").save(f"db.{table}")
    fails("a table that is not there", lambda: reader().load("db.nothing"))
    fails("an option that is none", lambda: reader({"snapshot-id": "x"}).load(f"db.{table}"))
    fails("columns that do not fit", lambda: writer(rows.selectExpr("id AS o"), "append").save(f"db.{table}"))
    fails("a mode that there is none", lambda: writer(rows, "ignore").save(f"db.{table}"))
    lost = reader().load(f"db.{table}")
    lose(table)
    fails("a file that is gone, on an executor", lost.collect)


def main() -> None:
    logging.getLogger("py4j").setLevel(logging.INFO)  # it logs every word that goes to the JVM, whoever says it
    spark = started()
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    with icefield.load_catalog("secret") as catalog:
        catalog.create_namespace("db")
        session_road(spark, catalog)
        catalog.create_table("db.named", columns)
        catalog.create_table("db.given", columns)
    data_source_road(spark, {"catalog": "secret"}, "named")
    hidden = {f"catalog.{k}": v for k, v in PROPERTIES.items() if k not in (*SHOWN_BY_SPARK, UNKNOWN)}
    data_source_road(spark, {"catalog": "secret", **hidden}, "given")
    for name in SHOWN_BY_SPARK:
        shown = spark.read.format("icefield").options(**{"catalog": "secret", f"catalog.{name}": PROPERTIES[name]})
        fails(f"a credential that Spark would show: {name}", lambda reader=shown: reader.load("db.named"))
    print(spark.sparkContext.getConf().toDebugString())
    print(spark.sql("SET -v").collect())
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    for at in range(executions.size()):
        print(executions.apply(at).description(), executions.apply(at).details())
        print(executions.apply(at).physicalPlanDescription(), executions.apply(at).modifiedConfigs())
    spark.stop()
    print("provoked", len(provoked))


main()
