"""Queries, inserts and a stream in threads of one session: no error, right counts, and nothing that is kept."""

from __future__ import annotations

import gc
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECONDS = 600 if os.environ.get("ICEFIELD_SOAK") else 0

BATCH = 10
QUERIES = (
    "SELECT count(*) AS rows, sum(id) AS total FROM prod.db.t",
    "WITH v AS (SELECT * FROM prod.db.t) SELECT count(*) AS rows, sum(v.id) AS total FROM v",
    "SELECT count(*) AS rows, sum(a.id) AS total FROM prod.db.t a JOIN prod.db.t b ON a.id = b.id",
)


@pytest.mark.counted
def test_queries_inserts_and_a_stream_run_at_once(prod: Any, tmp_path: Path) -> None:
    prod.sql("CREATE TABLE prod.db.t (id BIGINT, k INT) PARTITIONED BY (k)")
    prod.sql("CREATE TABLE prod.db.copy (id BIGINT, k INT)")
    inserted, asked, errors = [0], [0], list[BaseException]()

    def insert() -> None:
        start = inserted[0] * BATCH
        prod.sql(f"INSERT INTO prod.db.t SELECT id, CAST(id % 2 AS INT) FROM range({start}, {start + BATCH}, 1, 1)")
        inserted[0] += 1
        if inserted[0] % 50 == 0:
            prod.sql("CALL prod.system.rewrite_data_files('db.t')")

    def ask() -> None:
        fewest = inserted[0] * BATCH
        row = prod.sql(QUERIES[asked[0] % len(QUERIES)]).first()
        assert row.rows >= fewest
        assert row.rows % BATCH == 0, "a statement reads one version"
        assert (row.total or 0) == row.rows * (row.rows - 1) // 2
        asked[0] += 1

    def follow() -> None:
        stream = prod.readStream.option("streaming-skip-overwrite-snapshots", "true").table("prod.db.t").writeStream
        query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.toTable("prod.db.copy").awaitTermination()

    def repeated(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                for turn in count():
                    if errors or (turn > 2 and time.monotonic() > end):
                        break
                    work()
            except BaseException as error:
                errors.append(error)

        return threading.Thread(target=run)

    for work in (insert, ask, follow):
        work()
    before, end = held(prod), time.monotonic() + SECONDS
    threads = [repeated(work) for work in (insert, ask, follow)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 300)
    assert not errors, errors
    assert not any(thread.is_alive() for thread in threads)
    follow()
    rows = inserted[0] * BATCH
    for table in ("prod.db.t", "prod.db.copy"):
        assert sorted(row.id for row in prod.table(table).select("id").collect()) == list(range(rows))
    after = held(prod)
    print(f"{inserted[0]} inserts, {asked[0]} queries; before {before}, after {after}")
    assert min(inserted[0], asked[0]) > 3
    assert after["callbacks"] <= before["callbacks"] + 50
    assert after["files"] <= before["files"] + 20
    assert after["megabytes"] <= before["megabytes"] + 150


def held(spark: Any) -> dict[str, int]:
    """The objects of Python that the JVM holds, temporary files, and the memory of this process."""
    pool = spark.sparkContext._gateway.gateway_property.pool.dict
    least = len(pool)
    for _ in range(20):  # the JVM says by itself what it no longer needs
        spark._jvm.System.gc()
        gc.collect()
        time.sleep(0.25)
        least = min(least, len(pool))
    files = list(Path(tempfile.gettempdir()).glob("icefield*"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"callbacks": least, "files": len(files), "megabytes": peak // 1024}
