"""A job on a cluster whose executors die, whose tasks are slow or raise: ``cluster_job.py FOLDER``.

The environment configures the catalog ``lake``. The job prints what it wrote, and keeps the pages that its UI shows.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import urlopen

import pyarrow as pa
from icefield_spark import attach
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

FOLDER = Path(sys.argv[1])
ROWS = 8_000
"""Of each batch, in eight partitions."""


def raising(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows; but the first attempt at a partition raises in the middle of them."""
    yield from _with_trouble(batches, {1: _raise})


def troubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows; but the first attempts at some partitions raise, go slow, and lose their executor on the way."""
    # Another attempt is through long before the slow one.
    yield from _with_trouble(batches, {1: _raise, 3: partial(time.sleep, 60), 5: _die})


def _with_trouble(
    batches: Iterator[pa.RecordBatch], trouble: dict[int, Callable[[], None]]
) -> Iterator[pa.RecordBatch]:
    task = TaskContext.get()
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        if task is not None and task.attemptNumber() == 0 and task.partitionId() in trouble:
            trouble[task.partitionId()]()
        yield batch.slice(batch.num_rows // 2)


def _raise() -> None:
    raise RuntimeError("planted upstream")


def _die() -> None:
    os.kill(executor(), signal.SIGKILL)
    time.sleep(60)


def executor() -> int:
    """The JVM above this worker."""
    process = os.getpid()
    while True:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        process = int(fields[1])
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
            return process


def burst(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that cannot all be computed, however often they are tried."""
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        if batch.column(0)[0].as_py() % ROWS == 0:
            raise RuntimeError("planted for good")
        yield batch


def rows(spark: SparkSession, number: int) -> DataFrame:
    """The rows of a batch."""
    return spark.range(number * ROWS, (number + 1) * ROWS, 1, 8).selectExpr("id", "cast(id % 4 AS string) AS kind")


def fails(what: str, action: Callable[[], object]) -> None:
    """Say that an action fails."""
    try:
        action()
    except Exception as error:
        print("failed as it should:", what, repr(error)[:2_000], flush=True)
        return
    raise SystemExit(f"{what} did not fail")


def keep_pages(start: str) -> None:
    """Every page that can be reached from one, as files."""
    todo, seen = [start], set[str]()
    while todo and len(seen) < 300:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        try:
            with urlopen(page, timeout=30) as answer:
                text = answer.read().decode("utf-8", "replace")
        except (OSError, HTTPError):
            continue
        (FOLDER / "pages" / f"{len(seen)}.html").write_text(f"{page}\n{text}", "utf-8")
        links = (urljoin(page, link.replace("&amp;", "&")) for link in re.findall(r'href="([^"#]+)"', text))
        todo += [each for each in links if each.startswith(start) and "/static/" not in each and "kill" not in each]
    print("pages", len(seen), flush=True)


def main() -> None:
    spark = SparkSession.builder.appName("cluster").getOrCreate()
    ice = attach(spark, "lake")
    print("executors run in", *spark.range(1).rdd.map(lambda row: sys.prefix).collect(), flush=True)
    ice.catalog.create_namespace("db")
    whole = rows(spark, 0)
    ice.create_table("db.t", whole, partition_spec=["kind"], properties={"format-version": "3"})

    ice.append(rows(spark, 0).mapInArrow(troubled, whole.schema), "db.t", distribution="none")
    print("appended by the session", flush=True)
    source = rows(spark, 1).mapInArrow(troubled, whole.schema)
    source.write.format("icefield").option("catalog", "lake").mode("append").save("db.t")
    print("appended by the data source", flush=True)
    fails("the session", lambda: ice.append(rows(spark, 9).mapInArrow(burst, whole.schema), "db.t"))
    broken = rows(spark, 9).mapInArrow(burst, whole.schema).write.format("icefield").option("catalog", "lake")
    fails("the data source", lambda: broken.mode("append").save("db.t"))
    fails("the overwrite", lambda: ice.overwrite(rows(spark, 9).mapInArrow(burst, whole.schema), "db.t", "id >= 7"))
    ice.sql("DELETE FROM db.t WHERE id % 100 = 0")
    print("deleted", flush=True)
    changes = rows(spark, 2).selectExpr(f"id - {ROWS} + {ROWS // 2} AS id", "'new' AS kind")
    ice.merge(
        changes.mapInArrow(raising, changes.schema), "db.t", "target.id = source.id"
    ).when_matched_update_all().when_not_matched_insert_all().commit()
    print("merged", flush=True)
    ice.create_table_as(ice.table("db.t", where="kind = 'new'").mapInArrow(raising, whole.schema), "db.copy")
    print("copied", flush=True)
    assert spark.sparkContext.uiWebUrl is not None
    print(spark.sparkContext.getConf().toDebugString(), flush=True)
    keep_pages(spark.sparkContext.uiWebUrl)
    spark.stop()
    print("through", flush=True)


if __name__ == "__main__":
    main()
