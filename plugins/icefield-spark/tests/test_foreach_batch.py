"""Functions of ``foreachBatch`` in real streams: what is done with a batch is done in the batch's own session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield_spark.streaming import epoch_properties, is_written

pytest.importorskip("pyspark")
pytestmark = pytest.mark.slow

MERGE = "MERGE INTO db.t t USING batch s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
NEW = [(1, "new"), (2, "new")]

Run = Callable[..., None]


@pytest.fixture
def start(spark: Any, ice: Any, tmp_path: Path) -> Run:
    """Runs a function with all that a folder of files has and that its stream has not read yet."""
    ice.sql("CREATE TABLE db.t (id bigint, v string)")
    ice.sql("INSERT INTO db.t VALUES (1, 'old')")
    folder = str(tmp_path / "in")
    spark.sql("SELECT 1L AS id, 'new' AS v UNION ALL SELECT 2L, 'new'").write.json(folder)

    def run(function: Callable[[Any, int], None], session: Any = None) -> None:
        rows = (session or spark).readStream.schema("id long, v string").json(folder)
        writer = rows.writeStream.foreachBatch(function).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    return run


def rows(ice: Any, name: str = "db.t") -> list[tuple[Any, ...]]:
    return sorted(map(tuple, ice.table(name).collect()))


@pytest.fixture(params=["sql", "common", "merge", "upsert", "temporary", "select", "namespace"])
def changes(request: pytest.FixtureRequest, ice: Any) -> Callable[[Any], None]:
    """A way to merge a batch into the table."""

    def named(batch: Any, statement: str) -> None:
        batch.createOrReplaceTempView("batch")
        ice.sql(statement)

    def temporary(batch: Any) -> None:
        named(batch, "CREATE OR REPLACE TEMPORARY VIEW joined AS SELECT b.* FROM batch b LEFT JOIN db.t ON b.id = t.id")
        assert batch.sparkSession.table("joined").count() == 2
        ice.sql(MERGE.replace("batch", "joined"))

    def select(batch: Any) -> None:
        batch.createOrReplaceTempView("batch")
        mine = ice.table("db.t", where="id < 0")
        mine.createOrReplaceTempView("mine")  # of the same session as the batch
        both = batch.sparkSession.sql("SELECT * FROM batch UNION ALL SELECT * FROM mine")
        assert ice.sql("SELECT count(*) FROM batch").collect()[0][0] == 2
        ice.overwrite(both, "db.t", "id < 10")

    def namespace(batch: Any) -> None:
        named(batch, MERGE.replace("db.t", "t"))

    def merge(batch: Any) -> None:
        ice.merge(batch, "db.t", ["id"]).when_matched_update_all().when_not_matched_insert_all().commit()

    if request.param == "namespace":
        ice.sql("USE db")
    ways: dict[str, Callable[[Any], None]] = {
        "sql": lambda batch: named(batch, MERGE),
        "common": lambda batch: named(batch, f"WITH b AS (SELECT * FROM batch) {MERGE.replace('batch', 'b')}"),
        "merge": merge,
        "upsert": lambda batch: ice.upsert(batch, "db.t", ["id"]),
        "temporary": temporary,
        "select": select,
        "namespace": namespace,
    }
    return ways[request.param]


def test_a_batch_is_merged_from_within_its_stream_beside_views_of_the_same_names(
    spark: Any, ice: Any, start: Run, changes: Callable[[Any], None]
) -> None:
    for name in ("batch", "mine", "joined"):
        spark.sql("SELECT 5L AS id, 'stale' AS v").createOrReplaceTempView(name)

    def function(batch: Any, number: int) -> None:
        spark.createDataFrame([(7,)], "n int")  # makes the session active that the stream was started from
        changes(batch)

    try:
        start(function)
    finally:
        for name in ("batch", "mine", "joined"):
            spark.catalog.dropTempView(name)
    assert rows(ice) == NEW


def test_a_stream_of_another_session_than_the_attached_one_finds_its_own_views(
    spark: Any, ice: Any, start: Run
) -> None:
    other = spark.newSession()

    def function(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        ice.sql(MERGE)
        assert ice.spark.conf.get("spark.sql.shuffle.partitions") == "3"

    other.conf.set("spark.sql.shuffle.partitions", "3")
    start(function, other)
    assert rows(ice) == NEW
    assert ice.spark is spark  # outside of the stream it is as before


def test_a_function_that_failed_behind_its_changes_runs_again_and_changes_the_table_once(
    spark: Any, ice: Any, start: Run
) -> None:
    ice.sql("CREATE TABLE db.log (id bigint, v string)")
    calls = []

    def function(batch: Any, number: int) -> None:
        calls.append(number)
        if not is_written(ice.catalog.load_table("db.log"), "log", number):
            ice.append(batch, "db.log", snapshot_properties=epoch_properties("log", number))
        batch.createOrReplaceTempView("batch")
        ice.sql(MERGE)
        if len(calls) == 1:
            raise RuntimeError("planted")

    with pytest.raises(Exception, match="planted"):
        start(function)
    start(function)
    assert calls == [0, 0]
    assert (rows(ice), rows(ice, "db.log")) == (NEW, NEW)


def test_a_frame_of_another_session_is_written_as_that_session_says(
    spark: Any, ice: Any, catalog: icefield.Catalog
) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, v string) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    other = spark.newSession()
    other.conf.set("spark.wap.branch", "audit")
    frame = other.sql("SELECT 1L AS id, 'a' AS v")
    ice.append(frame, "db.t")
    ice.upsert(other.sql("SELECT 1L AS id, 'b' AS v"), "db.t", ["id"])
    table = catalog.load_table("db.t")
    assert (table.scan().count(), table.scan(ref="audit").to_arrow().to_pylist()) == (0, [{"id": 1, "v": "b"}])
