"""What ``ice.sql`` stores in which rows: replaced and truncated ones, and the policies of Spark."""

from __future__ import annotations

from typing import Any

import icefield
import pytest
from icefield.errors import UnsupportedFeature
from icefield_spark.assignment import fits_strictly
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType
from session_settings import settings

pytestmark = pytest.mark.spark

POLICY = "spark.sql.storeAssignmentPolicy"


@pytest.fixture
def table(ice: Any, catalog: icefield.Catalog) -> icefield.Table:
    ice.sql("CREATE TABLE db.t (id bigint, part string, v double) USING iceberg PARTITIONED BY (part, bucket(2, id))")
    ice.sql("INSERT INTO db.t SELECT id, IF(id % 2 = 0, 'a', 'b'), id FROM range(6)")
    return catalog.load_table("db.t")


def ids(ice: Any) -> list[Any]:
    return [row[0] for row in ice.sql("SELECT id FROM db.t ORDER BY id").collect()]


@pytest.mark.slow
def test_rows_of_a_condition_and_of_a_partition_are_replaced_and_go(ice: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t REPLACE WHERE part = 'a' AND id BETWEEN 0 AND 2 SELECT 10, 'a', 0.5")
    assert ids(ice) == [1, 3, 4, 5, 10]
    ice.sql("INSERT INTO db.t REPLACE WHERE v IS NOT NULL AND id IN (3, 4) VALUES (20, 'z', NULL)")
    assert ids(ice) == [1, 5, 10, 20]
    for refused in ("id + 1 = 2", "id BETWEEN 0 AND v"):
        with pytest.raises(UnsupportedFeature, match="comparisons of columns with constants"):
            ice.sql(f"INSERT INTO db.t REPLACE WHERE {refused} SELECT 1, 'a', 1.0")
    with pytest.raises(PySparkException, match="nothing"):
        ice.sql("INSERT INTO db.t REPLACE WHERE nothing = 1 SELECT 1, 'a', 1.0")
    with pytest.raises(PySparkException, match="partition management"):
        ice.sql("TRUNCATE TABLE db.t PARTITION (part = 'b')")
    assert ids(ice) == [1, 5, 10, 20]
    ice.sql("INSERT INTO db.t REPLACE WHERE id = 1 OR v = 5 SELECT 6, 'a', 1.0")
    assert ids(ice) == [6, 10, 20]
    ice.sql("INSERT INTO db.t REPLACE WHERE part <> 'z' SELECT 7, 'b', 1.0")
    assert ids(ice) == [7, 20]
    ice.sql("INSERT INTO db.t TABLE db.t")
    assert ids(ice) == [7, 7, 20, 20]


def test_partition_names_only_what_rows_are_partitioned_by(ice: Any, table: icefield.Table) -> None:
    before = table.current_snapshot()
    for refused in (
        "INSERT OVERWRITE db.t PARTITION (v = 1) SELECT 7, 'a'",
        "INSERT INTO db.t PARTITION (part = 'a', id = 1) SELECT 7",
        "INSERT OVERWRITE db.t PARTITION (part, v) SELECT 7, 'a', 1",
    ):
        with pytest.raises(PySparkException, match=r"non-partition column.*`(v|id)`"):
            ice.sql(refused)
    assert table.refresh().current_snapshot() == before


@pytest.mark.slow
def test_values_are_stored_as_the_policy_says(spark: Any, ice: Any, table: icefield.Table) -> None:
    before = table.current_snapshot()
    with settings(spark, {POLICY: "STRICT"}):
        for refused in ("1D, 'a', 1D", "1, 'a', 1.5", "'1', 'a', 1D"):
            with pytest.raises(PySparkException):
                ice.sql(f"INSERT INTO db.t SELECT {refused}")
    with settings(spark, {POLICY: "LEGACY"}), pytest.raises(PySparkException, match="LEGACY"):
        ice.sql("INSERT INTO db.t SELECT 1, 'a', 'x'")
    with pytest.raises(PySparkException, match="OVERFLOW"):
        ice.sql("INSERT INTO db.t SELECT 9e30D, 'a', 1")
    assert table.refresh().current_snapshot() == before
    with settings(spark, {POLICY: "STRICT"}):
        ice.sql("INSERT INTO db.t SELECT 7, DATE '2024-01-01', FLOAT(1.5)")
    ice.sql("INSERT INTO db.t SELECT 8.4D, 9, 1.5")
    found = ice.sql("SELECT * FROM db.t WHERE id > 6 ORDER BY id").collect()
    assert found == [(7, "2024-01-01", 1.5), (8, "9", 1.5)]


@pytest.mark.parametrize(
    ("given", "kind", "fits"),
    [
        ("smallint", "int", True),
        ("bigint", "int", False),
        ("bigint", "float", True),
        ("int", "decimal(9, 0)", False),
        ("int", "decimal(12, 2)", True),
        ("decimal(9, 0)", "int", True),
        ("decimal(10, 0)", "int", False),
        ("decimal(9, 2)", "double", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("array<int>", "array<bigint>", True),
        ("struct<a: int>", "struct<a: string>", True),
        ("map<string, int>", "string", False),
        ("boolean", "int", False),
    ],
)
def test_strict_is_what_sparks_up_cast_is(spark: Any, given: str, kind: str, fits: bool) -> None:
    assert fits_strictly(*(StructType.fromDDL(f"c {each}").fields[0].dataType for each in (given, kind))) is fits
    encoder = spark._jvm.org.apache.spark.sql.catalyst.expressions.Cast
    parsed = [spark._jvm.org.apache.spark.sql.types.DataType.fromDDL(each) for each in (given, kind)]
    assert encoder.canUpCast(*parsed) is fits


@pytest.mark.slow
def test_names_are_compared_as_the_session_does(spark: Any, ice: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (ID, Part) VALUES (30, 'a')")
    ice.sql("UPDATE db.t SET PART = 'c' WHERE Id = 30")
    ice.sql("ALTER TABLE db.t RENAME COLUMN V TO w")
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        for refused in (
            "INSERT INTO db.t (ID) VALUES (1)",
            "INSERT INTO db.t BY NAME SELECT 1 AS ID",
            "UPDATE db.t SET PART = 'd'",
            "ALTER TABLE db.t DROP COLUMN W",
            "SELECT ID FROM db.t",
            "MERGE INTO db.t t USING (SELECT 1L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (ID) VALUES (1)",
        ):
            with pytest.raises(PySparkException):
                ice.sql(refused)
        ice.sql("ALTER TABLE db.t ADD COLUMN Id string")
        ice.sql("INSERT INTO db.t (id, Id) VALUES (31, 'x')")
        assert ice.sql("SELECT id, Id FROM db.t WHERE id > 29 ORDER BY id").collect() == [(30, None), (31, "x")]


def test_a_merge_from_fewer_columns_is_refused_unless_the_table_may_evolve(
    spark: Any, ice: Any, table: icefield.Table
) -> None:
    before, kept = table.metadata_location, {row.id: row.v for row in ice.table("db.t").collect()}
    merge = (
        "INTO db.t t USING (SELECT 5L AS id, 'new' AS more) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    with pytest.raises(PySparkException, match="`part` cannot be resolved"):
        ice.sql(f"MERGE {merge}")
    assert table.refresh().metadata_location == before
    if spark.version >= "4.3":
        ice.sql(f"MERGE WITH SCHEMA EVOLUTION {merge}")
        found = {row.id: (row.v, row.more) for row in ice.table("db.t").collect()}
        assert found == {**{each: (v, None) for each, v in kept.items()}, 5: (kept.get(5), "new")}


def test_inserts_are_staged_for_a_later_word(spark: Any, ice: Any, table: icefield.Table) -> None:
    ice.sql("ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.id", "trial")
    try:
        ice.sql("INSERT INTO db.t VALUES (40, 'a', 1)")
    finally:
        spark.conf.unset("spark.wap.id")
    assert 40 not in ids(ice)
    ice.sql("CALL test.system.publish_changes('db.t', 'trial')")
    assert 40 in ids(ice)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("statement", "published"),
    [
        ("DELETE FROM db.t WHERE id = 4", [0, 1, 2, 3, 5]),
        ("DELETE FROM db.t WHERE abs(id) = 4", [0, 1, 2, 3, 5]),
        ("DELETE FROM db.t", []),
        ("UPDATE db.t SET id = id + 10 WHERE id = 5", [0, 1, 2, 3, 4, 15]),
        (
            "MERGE INTO db.t t USING (SELECT 5L AS id UNION ALL SELECT 9L) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            [0, 1, 2, 3, 4, 9],
        ),
    ],
)
def test_changes_of_rows_are_staged_for_a_later_word(
    spark: Any, ice: Any, table: icefield.Table, mode: str, statement: str, published: list[int]
) -> None:
    modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    ice.sql(f"ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true', {modes})")
    before = ids(ice)
    spark.conf.set("spark.wap.id", "trial")
    try:
        ice.sql(statement)
        assert ids(ice) == before
    finally:
        spark.conf.unset("spark.wap.id")
    ice.sql("CALL test.system.publish_changes('db.t', 'trial')")
    assert ids(ice) == published
