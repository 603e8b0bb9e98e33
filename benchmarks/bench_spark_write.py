"""Writing on Spark, next to Iceberg's Java runtime and Spark's own Parquet writer.

    python benchmarks/bench_spark_write.py [--rows 10000000] [--runs 3] [plain] [buckets]

Rows (1 million unless given) of ten columns, read from Parquet files, go into a table without partitions
and into one of 16 buckets. How many files each wrote is printed: in buckets Icefield's must be no more than Java's.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

from spark_peers import Asked, asked, compare, on_the_runtimes_spark, rows, session

WITHIN = 1.1
SPECS = {"plain": "", "buckets": "PARTITIONED BY (bucket(16, id))"}


def run(given: Asked) -> bool:
    good = True
    with tempfile.TemporaryDirectory() as folder:
        spark, ice = session(Path(folder) / "warehouse")
        try:
            rows(spark, given.rows).write.parquet(f"{folder}/rows")
            frame = spark.read.parquet(f"{folder}/rows")
            turn = count()
            for name in given.among(list(SPECS)):
                spec = SPECS[name]
                for who in ("ours", "java"):
                    made = f"CREATE TABLE java.db.{who}_{name} ({_columns(frame)}) USING iceberg {spec}"
                    spark.sql(made + " TBLPROPERTIES ('format-version' = '2')")

                def native(spec: str = spec) -> None:
                    writer = frame.withColumn("b", frame.id % 16).write if spec else frame.write
                    path = f"{folder}/native-{next(turn)}"
                    (writer.partitionBy("b") if spec else writer).option("compression", "zstd").parquet(path)

                works = {
                    "icefield": lambda name=name: ice.append(frame, f"db.ours_{name}"),
                    "java": lambda name=name: frame.writeTo(f"java.db.java_{name}").append(),
                    "parquet": native,
                }
                good &= compare(f"{given.rows:,} rows, {name}", given.runs, works, {"icefield": WITHIN})
                files = [_files(spark, f"{who}_{name}") for who in ("ours", "java")]
                print(f"  files of a write: icefield {files[0]}, java {files[1]}")
                good &= name == "plain" or files[0] <= files[1]
        finally:
            spark.stop()
    return good


def _columns(frame: Any) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)


def _files(spark: Any, table: str) -> int:
    found = spark.sql(f"SELECT summary['added-data-files'] FROM java.db.{table}.snapshots ORDER BY committed_at DESC")
    return int(found.first()[0])


if __name__ == "__main__":
    on_the_runtimes_spark()
    if not run(asked(__doc__ or "", list(SPECS), 1_000_000)):
        sys.exit("slower than 1.1 times Iceberg's Java runtime, or in more files")
