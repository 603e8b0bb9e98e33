"""Spark is started and stopped several times in one process, each time with a catalog: ``restart_job.py FOLDER``.

Executors are processes of their own. It prints what is left of each round, as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import icefield
from icefield_spark import attach, ensure_java
from pyspark import SparkContext
from pyspark.sql import SparkSession


def session(folder: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local-cluster[1,1,512]")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", f"{folder}/spark-warehouse")
        .getOrCreate()
    )


def left() -> dict[str, Any]:
    """Threads of Python, objects of Python that the JVM holds, and folders of the temporary directory."""
    gateway: Any = SparkContext._gateway
    for _ in range(100):  # the JVM lets go of an object of Python when it collects garbage
        gc.collect()
        gateway.jvm.System.gc()
        if not gateway.gateway_property.pool.dict:
            break
        time.sleep(0.1)
    held = sorted(type(each).__name__ for each in gateway.gateway_property.pool.dict.values())
    folders = [each.name for each in Path(tempfile.gettempdir()).glob("icefield-*")]
    return {"threads": threading.active_count(), "held": held, "folders": len(folders)}


def main(folder: Path) -> None:
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    catalog = icefield.load_catalog("lake", type="directory", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("db")
    for number in range(3):
        spark = session(folder)
        attach(spark, catalog, name="prod")
        spark.sql("CREATE TABLE IF NOT EXISTS prod.db.t (id BIGINT)")
        spark.sql("INSERT INTO prod.db.t VALUES (1)")
        spark.sql(f"ALTER TABLE prod.db.t CREATE TAG t{number}")
        rows = spark.sql("SELECT prod.system.bucket(4, id) FROM prod.db.t DISTRIBUTE BY id").count()
        assert spark.newSession().table("prod.db.t").count() == rows == number + 1
        spark.stop()
        print(json.dumps(left()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
