"""Streams from and into tables of a catalog by name: ``readStream.table`` and ``writeStream.toTable``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument
from icefield_spark import attach
from icefield_spark.streaming.offsets import Offset
from pyspark.sql import functions

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def prod(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``."""
    attach(spark, catalog, name="prod")
    yield spark
    for query in spark.streams.active:
        query.stop()


def run(writer: Any, checkpoint: Path, table: str = "prod.db.copy") -> Any:
    """Run a stream into a table until it has all that there is."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).toTable(table)
    assert query.awaitTermination(120)
    return query


def ids(spark: Any, table: str = "prod.db.copy") -> list[int]:
    return sorted(row.id for row in spark.table(table).select("id").collect())


def numbers(spark: Any, *parts: tuple[int, int]) -> None:
    spark.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING)")
    for start, end in parts:
        add(spark, start, end)


def add(spark: Any, start: int, end: int) -> None:
    spark.sql(f"INSERT INTO prod.db.t SELECT id, concat('s', id) FROM range({start}, {end}, 1, 1)")


def test_a_stream_copies_what_is_appended_and_goes_on_where_it_stood(prod: Any, tmp_path: Path) -> None:
    numbers(prod, (0, 3), (3, 5))
    run(prod.readStream.table("prod.db.t").writeStream, tmp_path)  # toTable creates the table
    assert ids(prod) == [0, 1, 2, 3, 4]
    add(prod, 5, 7)
    run(prod.readStream.table("prod.db.t").writeStream, tmp_path)
    assert ids(prod) == [0, 1, 2, 3, 4, 5, 6]


def test_a_batch_takes_no_more_files_than_the_option_says(prod: Any, tmp_path: Path) -> None:
    numbers(prod, (0, 3), (3, 5), (5, 6))
    for option in ("streaming-max-files-per-micro-batch", "maxFilesPerTrigger"):
        reader = prod.readStream.option(option, "1").table("prod.db.t")
        query = run(reader.writeStream, tmp_path / option, f"prod.db.{option[:3]}")
        assert [each.numInputRows for each in query.recentProgress if each.numInputRows] == [3, 2, 1]


def test_an_epoch_that_is_run_again_is_in_the_table_once(prod: Any, catalog: icefield.Catalog, tmp_path: Path) -> None:
    numbers(prod, (0, 3))
    prod.sql("CREATE TABLE prod.db.copy (id BIGINT, s STRING)")
    run(prod.readStream.table("prod.db.t").writeStream, tmp_path)
    (last,) = sorted((tmp_path / "commits").glob("[0-9]*"))
    last.unlink()  # a crash after the table's commit and before Spark's own
    (tmp_path / "commits" / f".{last.name}.crc").unlink(missing_ok=True)
    run(prod.readStream.table("prod.db.t").writeStream, tmp_path)
    assert ids(prod) == [0, 1, 2]
    assert len(catalog.load_table("db.copy").snapshots()) == 1


def test_sums_by_key_replace_what_the_table_had_and_keep_their_state(prod: Any, tmp_path: Path) -> None:
    numbers(prod, (0, 4))
    prod.sql("CREATE TABLE prod.db.sums (k BIGINT, total BIGINT)")

    def sums() -> Any:
        frame = prod.readStream.table("prod.db.t").groupBy((functions.col("id") % 2).alias("k")).sum("id")
        return frame.withColumnRenamed("sum(id)", "total").writeStream.outputMode("complete")

    run(sums(), tmp_path, "prod.db.sums")
    add(prod, 4, 6)
    run(sums(), tmp_path, "prod.db.sums")
    assert sorted(map(tuple, prod.table("prod.db.sums").collect())) == [(0, 6), (1, 9)]


def test_a_stream_ends_where_it_meets_a_change_that_is_no_append(prod: Any, tmp_path: Path) -> None:
    numbers(prod, (0, 3))
    prod.sql("DELETE FROM prod.db.t WHERE id = 1")
    add(prod, 3, 4)
    with pytest.raises(Exception, match="is no append"):
        run(prod.readStream.table("prod.db.t").writeStream, tmp_path / "a")
    reader = prod.readStream.option("streaming-skip-overwrite-snapshots", "true").table("prod.db.t")
    run(reader.writeStream, tmp_path / "b", "prod.db.skipped")
    assert ids(prod, "prod.db.skipped") == [0, 1, 2, 3]


def test_rows_of_a_branch_are_followed_and_written(prod: Any, catalog: icefield.Catalog, tmp_path: Path) -> None:
    numbers(prod, (0, 2))
    table = catalog.load_table("db.t")
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()  # type: ignore[union-attr]
    prod.sql("INSERT INTO prod.db.t.branch_b VALUES (7, 'b')")
    run(prod.readStream.option("branch", "b").table("prod.db.t").writeStream, tmp_path)
    assert ids(prod) == [0, 1, 7]


def test_a_stream_does_not_upsert_without_a_word(prod: Any, tmp_path: Path) -> None:
    numbers(prod, (0, 2))
    with pytest.raises(Exception, match="upsert is for format"):
        run(prod.readStream.table("prod.db.t").writeStream.option("upsert", "true"), tmp_path)


def test_an_offset_of_javas_runtime_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Java runtime"):
        Offset.from_json({"version": 1, "snapshot_id": 5, "position": 1, "scan_all_files": False})
