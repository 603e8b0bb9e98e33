"""Changes of rows by a source that gives other rows whenever it is computed: it is computed once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from pyspark.errors import PySparkException

pytest.importorskip("pyspark")

MERGE = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A file with a byte for each time that the source was computed."""
    return tmp_path / "calls"


@pytest.fixture
def source(spark: Any, ice: Any, calls: Path) -> Any:
    """Ten ids, which are others each time: the table has the first ten of the even ones below 400."""
    path = str(calls)

    def drawn(batches: Iterator[Any]) -> Iterator[Any]:
        import os

        import pyarrow as pa

        with open(path, "ab") as file:
            file.write(b".")
        first = os.path.getsize(path) * 20
        for batch in batches:
            if batch.num_rows:
                yield pa.record_batch({"id": pa.array(range(first, first + 20, 2), pa.int64()), "v": ["new"] * 10})

    ice.sql("CREATE TABLE db.t (id bigint, v string)")
    ice.sql("INSERT INTO db.t SELECT id, 'old' FROM range(0, 400, 2)")
    return spark.range(0, 1, 1, 1).mapInArrow(drawn, "id long, v string")


def ids(ice: Any) -> list[int]:
    return sorted(row.id for row in ice.table("db.t").collect())


def by_statement(ice: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("live")
    ice.sql(f"MERGE INTO db.t t USING live s ON t.id = s.id {MERGE}")


def by_query(ice: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("live")
    query = "SELECT id, max(v) AS v FROM live GROUP BY id"
    ice.sql(f"MERGE INTO db.t t USING ({query}) s ON t.id = s.id AND t.v = 'old' {MERGE}")


def by_common_table(ice: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("live")
    ice.sql(f"WITH l AS (SELECT * FROM live) MERGE INTO db.t t USING l s ON s.id = t.id {MERGE}")


def by_whole_table(ice: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("live")
    rest = "WHEN NOT MATCHED BY SOURCE AND t.id < 0 THEN DELETE"
    ice.sql(f"MERGE INTO db.t t USING live s ON t.id = s.id {MERGE} {rest}")


def by_builder(ice: Any, frame: Any) -> None:
    ice.merge(frame, "db.t", ["id"]).when_matched_update_all().when_not_matched_insert_all().commit()


def by_upsert(ice: Any, frame: Any) -> None:
    ice.upsert(frame, "db.t", ["id"])


WAYS = [by_statement, by_query, by_common_table, by_whole_table, by_builder, by_upsert]


@pytest.mark.parametrize("way", WAYS)
def test_a_merge_computes_its_source_once(ice: Any, source: Any, calls: Path, way: Callable[[Any, Any], None]) -> None:
    way(ice, source)
    assert calls.stat().st_size == 1
    assert ids(ice) == list(range(0, 400, 2))
    assert ice.count("db.t", "v = 'new'") == 10


def test_a_merge_takes_a_source_by_chance_as_it_is_once(ice: Any, source: Any) -> None:
    chance = "(SELECT id, max(r) AS r FROM (SELECT id % 90 AS id, rand() AS r FROM range(180)) GROUP BY id)"
    merge = f"MERGE INTO db.t t USING {chance} s ON t.id = s.id AND s.r < 0.5"
    ice.sql(
        f"{merge} WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED AND s.id < 0 THEN INSERT (id) VALUES (s.id)"
    )
    assert ids(ice) == list(range(0, 400, 2))


def test_an_update_whose_condition_asks_for_rows_by_chance_is_refused(ice: Any, source: Any) -> None:
    source.createOrReplaceTempView("live")
    with pytest.raises(PySparkException, match="NON_DETERMINISTIC"):
        ice.sql(
            "WITH l AS (SELECT id, v, rand() AS r FROM live) "
            "UPDATE db.t t SET v = (SELECT max(l.v) FROM l WHERE l.id = t.id) WHERE t.id IN (SELECT id FROM l)"
        )
    assert ice.count("db.t", "v = 'old'") == 200


@pytest.mark.parametrize("kind", ["delete", "overwrite", "append", "compaction"])
def test_other_changes_compute_their_source_once(ice: Any, source: Any, calls: Path, kind: str) -> None:
    source.createOrReplaceTempView("live")
    if kind == "delete":
        ice.sql("DELETE FROM db.t WHERE id IN (SELECT id FROM live)")
        assert len(ids(ice)) == 190
    elif kind == "overwrite":
        ice.overwrite(source, "db.t", "id < 100")
    elif kind == "append":
        ice.append(source, "db.t", distribution="hash")
    else:
        ice.append(source, "db.t")
        ice.maintenance("db.t").rewrite_data_files(rewrite_all=True)
    assert calls.stat().st_size == 1


def test_a_merge_lets_go_of_what_it_kept_and_of_nothing_else(spark: Any, ice: Any, source: Any) -> None:
    kept = spark.range(3).selectExpr("id", "'a' AS v").cache()
    try:
        kept.count()
        held = spark.sparkContext._jsc.getPersistentRDDs().size()
        by_upsert(ice, kept)
        by_upsert(ice, source)
        with pytest.raises(icefield.errors.InvalidArgument):
            ice.merge(kept, "db.t", "target.id = source.id % 1").when_matched_update_all().commit()
        assert spark.sparkContext._jsc.getPersistentRDDs().size() == held
        assert "InMemoryRelation" in kept._jdf.queryExecution().withCachedData().toString()
    finally:
        kept.unpersist()


def test_rows_of_a_table_that_are_cached_stay_so_when_another_statement_reads_the_table(spark: Any, ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, v string)")
    ice.sql("INSERT INTO db.t VALUES (1, 'a')")
    kept = ice.sql("SELECT * FROM db.t").cache()
    try:
        kept.count()
        assert ice.sql("SELECT * FROM db.t").count() == 1
        by_upsert(ice, ice.table("db.t"))
        assert "InMemoryRelation" in kept._jdf.queryExecution().withCachedData().toString()
    finally:
        kept.unpersist()


def test_a_row_of_a_live_table_that_is_touched_while_it_is_merged_gives_no_second_row(
    spark: Any, ice: Any, tmp_path: Path
) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    path = str(tmp_path / "live.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER, v INTEGER, updated INTEGER)")
        database.executemany("INSERT INTO orders VALUES (?, 0, ?)", [(each, each < 10) for each in range(100)])

    class Reader(DataSourceReader):
        def partitions(self) -> Any:
            return [InputPartition(0)]

        def read(self, partition: Any) -> Iterator[Any]:
            import sqlite3

            with sqlite3.connect(path) as database:
                rows = database.execute("SELECT id, v FROM orders WHERE updated = 1").fetchall()
                touched = "SELECT max(id) + 1 FROM orders WHERE updated = 1"
                database.execute(f"UPDATE orders SET updated = 1 WHERE id = ({touched})")
            yield from rows

    class Live(DataSource):
        @classmethod
        def name(cls) -> str:
            return "live_orders"

        def schema(self) -> str:
            return "id bigint, v int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Live)
    ice.sql("CREATE TABLE db.t (id bigint, v int)")
    ice.sql("INSERT INTO db.t SELECT id, 0 FROM range(100)")
    ice.upsert(spark.read.format("live_orders").load(), "db.t", ["id"])
    spark.read.format("live_orders").load().createOrReplaceTempView("orders")
    insert = "WHEN NOT MATCHED THEN INSERT *"
    ice.sql(f"MERGE INTO db.t t USING orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v {insert}")
    assert ids(ice) == list(range(100))
