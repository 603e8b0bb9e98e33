"""A Spark job that knows a REST server's address and a token, and nothing else: it writes and reads, and shows it all.

Run as a process of its own: ``rest_job.py FOLDER PROPERTIES.json``; the environment configures the catalog ``secret``
with the same two properties. ``test_rest_job.py`` searches what it prints, logs and leaves.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import icefield
import pyarrow as pa
from icefield_spark import attach, ensure_java
from pyspark.sql import DataFrame, SparkSession

FOLDER, PROPERTIES = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))


def started() -> SparkSession:
    ensure_java()
    logs = f"-Dlog4j2.configurationFile={FOLDER}/log4j2.properties"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.port", "0")
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


def show(frame: DataFrame) -> None:
    """All that Spark prints of a frame."""
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        frame.explain(mode=mode)
    print(repr(frame), frame.schema.json(), frame._jdf.queryExecution().toString())
    frame.show()


def fails(action: Callable[[], Any]) -> None:
    """An error, printed with everything that it holds."""
    try:
        action()
    except Exception as error:
        traceback.print_exc()
        print("provoked", repr(error), str(error), error.__cause__)
        return
    raise SystemExit("it did not fail")


def keep_pages(spark: SparkSession) -> None:
    """The pages of Spark's UI, and what its API says, as files."""
    address, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    api = f"api/v1/applications/{application}"
    executions = json.loads(urlopen(f"{address}/{api}/sql?details=true&length=1000", timeout=60).read())
    pages = ["jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/", f"{api}/environment", f"{api}/jobs"]
    pages += [f"{api}/sql?details=true&length=1000", f"{api}/stages?details=true", f"{api}/allexecutors"]
    pages += [f"SQL/execution/?id={each['id']}" for each in executions]
    (FOLDER / "ui").mkdir()
    for number, page in enumerate(pages):
        (FOLDER / "ui" / f"{number}.html").write_bytes(urlopen(f"{address}/{page}", timeout=60).read())
    print("kept", len(pages), "pages of", len(executions), "executions")


def main() -> None:
    logging.getLogger("py4j").setLevel(logging.INFO)  # it logs every word that goes to the JVM, whoever says it
    spark = started()
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    rows = spark.range(1000).selectExpr("id", "cast(id % 2 AS string) AS kind").repartition(4)
    with icefield.load_catalog("secret", **PROPERTIES) as catalog:
        catalog.create_namespace("db")
        ice = attach(spark, catalog)
        print(repr(ice), repr(catalog), repr(catalog.io), repr(catalog.backend))
        ice.create_table("db.t", rows, partition_spec=["kind"])
        ice.append(rows, "db.t")
        ice.overwrite(rows.limit(3), "db.t", "id > 900")
        ice.sql("DELETE FROM db.t WHERE id = 7")
        ice.sql("UPDATE db.t SET kind = 'x' WHERE id = 8")
        ice.sql("MERGE INTO db.t USING (SELECT 9 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
        show(ice.table("db.t", where="id > 3", columns=["id"]))
        ice.sql("SELECT kind, count(*) AS n FROM db.t GROUP BY kind").show()
        print(repr(catalog.load_table("db.t")), repr(catalog.load_table("db.t").io))
        fails(lambda: ice.append(rows.selectExpr("id", "raise_error('planted') AS kind"), "db.t"))
        catalog.create_table("db.u", columns)
    for options in ({"catalog": "secret"}, {"catalog": "other", **{f"catalog.{k}": v for k, v in PROPERTIES.items()}}):
        rows.write.format("icefield").options(**options).mode("append").save("db.u")
        seen = spark.read.format("icefield").options(**options).load("db.u").where("id > 3")
        show(seen)
    print("rows", spark.read.format("icefield").options(catalog="secret").load("db.u").count())
    print(spark.sparkContext.getConf().toDebugString())
    keep_pages(spark)
    spark.stop()


if __name__ == "__main__":
    main()
