"""A short job in a fresh process, next to the same job with Iceberg's Java runtime.

    python benchmarks/bench_spark_cold_job.py [PART ...] [--rows ROWS] [--runs RUNS]

Each run starts a process: it opens a session, creates a table, inserts ROWS rows, queries, deletes and merges. The
parts are those steps, and ``whole job`` is their sum.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import spark_peers
from spark_peers import Asked, Taken, asked, timed

BOUNDS = {"whole job": 1.0, "first MERGE": 1.1, "count and sum": 1.1, "count and sum again": 1.1}
"""How many times Java's CPU the steps may take."""
WHOLE = "whole job"
STEPS = {
    "create": "CREATE TABLE prod.db.t (id BIGINT, k INT, name STRING, price DOUBLE) USING iceberg PARTITIONED BY (k) "
    "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')",
    "first INSERT": "INSERT INTO prod.db.t SELECT id, CAST(id % 8 AS INT), concat('n', id), id / 7 FROM range({rows})",
    "filtered aggregate": "SELECT k, count(*), sum(price) FROM prod.db.t WHERE id > 1000 AND k < 5 GROUP BY k",
    "first DELETE": "DELETE FROM prod.db.t WHERE id % 100 = 3",
    "first MERGE": "MERGE INTO prod.db.t t USING (SELECT id * 50 AS id, 1 AS k, 'm' AS name, 0D AS price "
    "FROM range(5000)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.price = s.price WHEN NOT MATCHED THEN INSERT *",
    "count and sum": "SELECT count(*), sum(id) FROM prod.db.t",
    "count and sum again": "SELECT count(*), sum(price) FROM prod.db.t",
    "second MERGE": "MERGE INTO prod.db.t t USING (SELECT id * 70 AS id, 1 AS k, 'm' AS name, 1D AS price "
    "FROM range(5000)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.price = s.price WHEN NOT MATCHED THEN INSERT *",
}
JAVA = {
    "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
ICEFIELD = {"spark.sql.catalog.prod": "icefield"}


def job(who: str, folder: Path, rows: int) -> None:
    """Run the job, and print the CPU and wall time of each step as JSON."""
    found: dict[str, tuple[float, float]] = {}
    opened: list[Any] = []

    def step(name: str, work: Any) -> None:
        taken = timed(work)
        found[name] = taken.cpu, taken.wall

    step("session", lambda: opened.append(_session(who, folder)))
    spark = opened[0]
    for name, statement in STEPS.items():
        step(name, lambda statement=statement: spark.sql(statement.format(rows=rows)).collect())
    found[WHOLE] = sum(cpu for cpu, _ in found.values()), sum(wall for _, wall in found.values())
    print(json.dumps(found))


def _session(who: str, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        **(ICEFIELD if who == "icefield" else {**JAVA, "spark.jars": os.environ[spark_peers.JAR]}),
        "spark.sql.catalog.prod.type": "hadoop",
        "spark.sql.catalog.prod.warehouse": f"file://{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": f"{folder}/spark",
    }
    builder = SparkSession.builder.master("local[2]").appName("cold")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if who == "icefield":
        from icefield_spark import install

        install(spark)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS prod.db").collect()
    return spark


def compared(given: Asked) -> bool:
    """Run the job of each in turns, print medians by step, and return whether all bounds are kept."""
    found: dict[str, list[dict[str, Taken]]] = {"icefield": [], "java": []}
    for turn in range(given.runs):
        for who in list(found)[:: 1 if turn % 2 == 0 else -1]:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "--job", who, folder, str(given.rows)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            steps = json.loads(done.stdout.splitlines()[-1])
            found[who].append({name: Taken(*taken) for name, taken in steps.items()})
    good = True
    for name in given.among(["session", *STEPS, WHOLE]):
        ours, theirs = (
            Taken(*(statistics.median(getattr(run[name], of) for run in runs) for of in ("cpu", "wall")))
            for runs in found.values()
        )
        ratio, verdict = ours.cpu / theirs.cpu, ""
        if name in BOUNDS:
            good &= ratio <= BOUNDS[name]
            verdict = f"{'PASS' if ratio <= BOUNDS[name] else 'FAIL'} ({BOUNDS[name]})"
        print(
            f"{name:<22} CPU {ours.cpu:6.2f}, Java {theirs.cpu:6.2f} s ({ratio:4.2f}); "
            f"wall {ours.wall:6.2f}, Java {theirs.wall:6.2f} s  {verdict}".rstrip(),
            flush=True,
        )
    return good


if __name__ == "__main__":
    spark_peers.on_the_runtimes_spark()
    if sys.argv[1:2] == ["--job"]:
        job(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(not compared(asked(__doc__, ["session", *STEPS, WHOLE], 200_000)))
