"""Versions that options of a reader name: a snapshot, a time, and the rows that were added between two snapshots."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import icefield
import pytest
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def versions(prod: Any, catalog: icefield.Catalog) -> list[int]:
    """The snapshots of a table: three appends of one row, a deletion and another append."""
    prod.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING)")
    for number in range(3):
        prod.sql(f"INSERT INTO prod.db.t VALUES ({number}, 's{number}')")
    prod.sql("DELETE FROM prod.db.t WHERE id = 1")
    prod.sql("INSERT INTO prod.db.t VALUES (3, 's3')")
    return [each.snapshot_id for each in catalog.load_table("db.t").history()]


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.collect())


def readers(spark: Any, options: dict[str, Any]) -> list[Any]:
    reader = spark.read.options(**options)
    return [reader.table("prod.db.t"), reader.format("iceberg").load("prod.db.t")]


def test_two_snapshots_give_the_rows_that_appends_added_between_them(prod: Any, versions: list[int]) -> None:
    for last, expected in ((1, [1]), (2, [1, 2]), (3, [1, 2]), (4, [1, 2, 3]), (None, [1, 2, 3])):
        options = {"start-snapshot-id": versions[0]} | ({} if last is None else {"end-snapshot-id": versions[last]})
        for frame in readers(prod, options):
            assert ids(frame) == expected
            assert frame.count() == len(expected)
            assert ids(frame.where("id >= 2 AND s LIKE 's%'")) == [each for each in expected if each >= 2]
    assert ids(prod.table("prod.db.t")) == [0, 2, 3]


def test_rows_between_snapshots_join_with_the_table_of_now(prod: Any, versions: list[int]) -> None:
    added = readers(prod, {"start-snapshot-id": versions[0]})[0]
    assert ids(added.join(prod.table("prod.db.t"), "id").select("id")) == [2, 3]
    assert ids(prod.table("prod.db.t").join(added, "id", "left_anti")) == [0]


def test_a_range_that_means_nothing_is_refused(prod: Any, versions: list[int]) -> None:
    first, second, *_ = map(str, versions)
    for options, message in (
        ({"end-snapshot-id": second}, "end-snapshot-id needs start-snapshot-id"),
        ({"start-snapshot-id": "x"}, "start-snapshot-id is a number, not 'x'"),
        ({"start-snapshot-id": first, "snapshot-id": second}, "a table is read at one version"),
        ({"start-snapshot-id": first, "branch": "main"}, "a table is read at one version"),
        ({"start-snapshot-id": second, "end-snapshot-id": first}, "is no ancestor of"),
        ({"start-snapshot-id": "7"}, "7"),
        ({"start-timestamp": "1"}, "start-timestamp"),
    ):
        for at in range(2):
            with pytest.raises(PySparkException, match=message):
                readers(prod, options)[at].collect()
    with pytest.raises(PySparkException, match="are for reads"):
        prod.range(1).selectExpr("id", "'x' AS s").writeTo("prod.db.t").option("start-snapshot-id", first).append()
    assert ids(prod.table("prod.db.t")) == [0, 2, 3]


def test_options_of_sparks_name_a_version_and_a_time_for_every_reader(prod: Any, versions: list[int]) -> None:
    time.sleep(0.01)
    now = datetime.fromtimestamp(time.time()).astimezone().isoformat()
    prod.sql("INSERT INTO prod.db.t VALUES (4, 's4')")
    for options, expected in (
        ({"versionAsOf": versions[1]}, [0, 1]),
        ({"timestampAsOf": now}, [0, 2, 3]),
        ({"snapshot-id": versions[2]}, [0, 1, 2]),
    ):
        assert [ids(frame) for frame in readers(prod, options)] == [expected] * 2
