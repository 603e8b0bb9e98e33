"""Reading on Spark, next to Iceberg's Java runtime and Spark's own Parquet reader, over a table that Java wrote.

    python benchmarks/bench_spark_read.py [--full | ROWS] [PART ...]

ROWS (2 million, 20 million with ``--full``) of ten columns in ten files. ``wide`` groups over all columns, ``two``
reads two of them under a filter that takes 1 % of the rows and prunes nothing, ``range`` two under a pruning filter.
``rows`` is without deletes, ``positions`` and ``vectors`` under 1 % of position deletes and of deletion vectors, which
Java wrote. ``many`` plans and loads a table of 2,000 files, ``count`` counts rows by metadata. Icefield reads each file
on the road that it chooses, ``auto`` (Spark's own reader, but of few columns under deletes), and all in ``arrow``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from spark_peers import compare, on_the_runtimes_spark, rows, session

AUTO, TWO, WIDE, DELETES = 1.1, 1.1, 1.35, 1.1
FILES, SECONDS = 2_000, 2.0
TABLES = {"rows": 2, "positions": 2, "vectors": 3}
READS = ("wide", "two", "range")
WHOLE = (
    "sum(id) AS a, sum(number) AS b, sum(length(customer)) AS c, sum(length(note)) AS d, count(*) AS e, "
    "sum(price) AS f, max(weight) AS g, max(day) AS h, max(at) AS i, count_if(flag) AS j"
)
NARROW = "count(*) AS a, sum(price) AS b"


def run(count: int, parts: list[str], runs: int) -> bool:
    good = True
    with tempfile.TemporaryDirectory() as folder:
        spark, ice = session(Path(folder) / "warehouse")
        try:
            for table, version in TABLES.items():
                if _asked(table, parts, (*TABLES, "many", "count")):
                    _make(spark, table, version, count)
                    for read in READS:
                        if _asked(read, parts, READS):
                            good &= _read(spark, ice, table, read, count, runs)
            if _asked("many", parts, (*TABLES, "many", "count")):
                good &= _many(spark, ice, Path(folder), runs)
            if _asked("count", parts, (*TABLES, "many", "count")):
                good &= _count(spark, ice, count)
        finally:
            spark.stop()
    return good


def _asked(part: str, parts: list[str], of: tuple[str, ...]) -> bool:
    return part in parts or not set(parts) & set(of)


def _make(spark: Any, table: str, version: int, count: int) -> None:
    made = rows(spark, count)
    made.limit(0).writeTo(f"java.db.{table}").using("iceberg").tableProperty("format-version", str(version)).create()
    made.writeTo(f"java.db.{table}").append()
    if table != "rows":
        spark.sql(f"ALTER TABLE java.db.{table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
        spark.sql(f"DELETE FROM java.db.{table} WHERE pmod(hash(id, 9), 100) = 3")


def _read(spark: Any, ice: Any, table: str, read: str, count: int, runs: int) -> bool:
    fields = [field.name for field in rows(spark, 1).schema.fields]
    condition, columns = {
        "wide": (None, fields),
        "two": ("number >= 100000000 AND number < 142949673", ["number", "price"]),
        "range": (f"id >= {count // 2} AND id < {count // 2 + count // 100}", ["id", "price"]),
    }[read]
    paths = [row[0] for row in spark.sql(f"SELECT file_path FROM java.db.{table}.data_files").collect()]

    def taken(frame: Any) -> Any:
        if read == "wide":
            return frame.selectExpr(*fields).groupBy("state").agg(*_aggregates(WHOLE)).orderBy("state").collect()
        return (frame.where(condition) if condition else frame).agg(*_aggregates(NARROW)).collect()

    def ours(road: str) -> Any:
        return taken(ice.table(f"db.{table}", where=condition, columns=columns, road=road))

    works = {
        "auto": partial(ours, "auto"),
        "arrow": partial(ours, "arrow"),
        "java": lambda: taken(spark.table(f"java.db.{table}")),
        "native": lambda: taken(spark.read.parquet(*paths)),
    }
    assert repr(works["auto"]()) == repr(works["arrow"]()) == repr(works["java"]()), "the rows differ"
    bounds = {"auto": AUTO, "arrow": WIDE if read == "wide" else TWO}
    if table != "rows":
        bounds = dict.fromkeys(bounds, DELETES)
    return compare(f"{table}, {read}", runs, works, bounds)


def _aggregates(listed: str) -> list[Any]:
    from pyspark.sql import functions

    return [functions.expr(each) for each in listed.split(", ")]


def _many(spark: Any, ice: Any, folder: Path, runs: int) -> bool:
    """Compare planning many files without cached footers, and loading them."""
    from icefield_spark.roads.footers import FOOTERS

    rows(spark, 1000, 1).writeTo("java.db.many").using("iceberg").create()
    ((first,),) = spark.sql("SELECT file_path FROM java.db.many.data_files").collect()
    source = Path(first.removeprefix("file:").replace("//", "/"))
    copies = [source.with_name(f"copy-{at}.parquet") for at in range(FILES - 1)]
    for copy in copies:
        shutil.copy(source, copy)
    ice.catalog.load_table("db.many").add_files([f"file://{copy}" for copy in copies])

    def planned(frame: Any) -> int:
        return int(frame._jdf.queryExecution().toRdd().getNumPartitions())

    def ours(road: str) -> int:
        FOOTERS.forget()
        return planned(ice.table("db.many", road=road))

    works = {
        "auto": partial(ours, "auto"),
        "arrow": partial(ours, "arrow"),
        "java": lambda: planned(spark.table("java.db.many")),
    }
    compare(f"{FILES} files planned and loaded", runs, works, {"auto": 99, "arrow": 99}, by_wall=True)
    slowest = 0.0
    for road in ("auto", "arrow"):
        begun = time.perf_counter()
        ours(road)
        slowest = max(slowest, time.perf_counter() - begun)
    print(f"  the slower road took {slowest:.2f} s  {'PASS' if slowest <= SECONDS else 'FAIL'} ({SECONDS} s)")
    works = {
        "auto": lambda: ice.table("db.many", columns=["price"]).agg(*_aggregates(NARROW)).collect(),
        "arrow": lambda: ice.table("db.many", columns=["price"], road="arrow").agg(*_aggregates(NARROW)).collect(),
        "java": lambda: spark.table("java.db.many").agg(*_aggregates(NARROW)).collect(),
    }
    return compare(f"{FILES} files read", runs, works, {"auto": AUTO, "arrow": TWO}) and slowest <= SECONDS


def _count(spark: Any, ice: Any, count: int) -> bool:
    if not spark.catalog.tableExists("java.db.rows"):
        _make(spark, "rows", 2, count)
    before = _jobs(spark)
    begun = time.perf_counter()
    found = [ice.count("db.rows"), ice.sql("SELECT count(*) FROM db.rows").collect()[0][0]]
    taken, jobs = time.perf_counter() - begun, _jobs(spark) - before
    print(f"count() and SELECT count(*): {taken:.2f} s, {jobs} jobs  {'PASS' if jobs == 0 else 'FAIL'}")
    return found == [count] * 2 and jobs == 0


def _jobs(spark: Any) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


if __name__ == "__main__":
    on_the_runtimes_spark()
    given = [each for each in sys.argv[1:] if each != "--full"]
    sizes = [int(each) for each in given if each.isdigit()]
    size = 20_000_000 if "--full" in sys.argv else sizes[0] if sizes else 2_000_000
    runs = int(os.environ.get("RUNS", "3"))
    if not run(size, [each for each in given if not each.isdigit()], runs):
        sys.exit("slower than the factors over Iceberg's Java runtime")
