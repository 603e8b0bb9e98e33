"""What ``ice.append`` and its like do by settings of the session: how types are stored, and which branch is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from session_settings import settings


@pytest.fixture
def table(catalog: icefield.Catalog) -> icefield.Table:
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("d", pa.decimal128(5, 2)),
            ("t", pa.string()),
            ("day", pa.date32()),
            ("s", pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int64()))])),
        ]
    )
    return catalog.create_table("db.t", schema)


@pytest.mark.spark
def test_values_are_stored_by_a_frame_as_the_policy_says(spark: Any, ice: Any, table: icefield.Table) -> None:
    wide = spark.sql(
        "SELECT 7L AS I, 1.239D AS d, 12 AS t, TIMESTAMP '2020-01-02 03:04:05' AS day, "
        "named_struct('y', array(1), 'x', 2) AS s"
    )
    ice.append(wide, "db.t")
    (row,) = table.refresh().scan().to_arrow().to_pylist()
    assert (row["i"], str(row["d"]), row["t"], str(row["day"])) == (7, "1.24", "12", "2020-01-02")
    assert row["s"] == {"x": 2.0, "y": [1]}
    with settings(spark, {"spark.sql.storeAssignmentPolicy": "STRICT"}):
        with pytest.raises(InvalidArgument, match=r"column 'I' is int, and bigint does not fit"):
            ice.append(wide, "db.t")
        ice.append(spark.sql("SELECT CAST(1 AS SMALLINT) AS i, 3 AS t"), "db.t")
    with settings(spark, {"spark.sql.storeAssignmentPolicy": "LEGACY"}):
        with pytest.raises(UnsupportedFeature, match="LEGACY"):
            ice.overwrite(wide, "db.t")
        ice.append(spark.sql("SELECT 2 AS i"), "db.t")  # there is nothing to cast
    assert sorted(table.refresh().scan().to_arrow()["i"].to_pylist()) == [1, 2, 7]


@pytest.mark.slow
@pytest.mark.spark
def test_what_does_not_fit_is_an_error_and_never_a_null(spark: Any, ice: Any, table: icefield.Table) -> None:
    with pytest.raises(InvalidArgument, match="cannot be stored"):
        ice.append(spark.sql("SELECT 'seven' AS i"), "db.t")
    with pytest.raises(PySparkException, match="OVERFLOW"):
        ice.append(spark.sql("SELECT id + 2147483648L AS i FROM range(1)"), "db.t")
    with pytest.raises(InvalidArgument, match="'more'"):
        ice.append(spark.sql("SELECT 7L AS i, 1 AS more"), "db.t")
    with pytest.raises(InvalidArgument, match=r"'s\.z'"):
        ice.append(spark.sql("SELECT named_struct('x', 1, 'z', 2) AS s"), "db.t")
    assert table.refresh().scan().count() == 0


@pytest.mark.slow
@pytest.mark.spark
def test_a_column_with_a_point_in_its_name_is_written_and_read(spark: Any, ice: Any, catalog: Any) -> None:
    frame = spark.range(3).select(f.col("id").alias("a.b"), (f.col("id") % 2).alias("c d"))
    ice.create_table_as(frame, "db.p", partition_spec=["c d"])
    ice.append(frame.select(f.col("`a.b`").cast("int"), "c d"), "db.p")
    for road in ("arrow", "spark"):
        assert sorted(row["a.b"] for row in ice.table("db.p", road=road).collect()) == [0, 0, 1, 1, 2, 2]
    assert [row["a.b"] for row in ice.table("db.p", columns=["a.b"], where="`a.b` > 1").collect()] == [2, 2]
    assert ice.sql("SELECT count(*) FROM db.p WHERE `a.b` = 1").collect() == [(2,)]
    ice.sql("UPDATE db.p SET `a.b` = 9 WHERE `a.b` = 2")
    assert ice.table("db.p").where("`a.b` = 9").count() == 2


@pytest.mark.spark
def test_a_time_may_be_a_datetime_or_a_string(spark: Any, ice: Any, table: icefield.Table) -> None:
    ice.append(spark.sql("SELECT 1 AS i"), "db.t")
    moment = catalog_time(ice)
    ice.append(spark.sql("SELECT 2 AS i"), "db.t")
    for given in (moment, datetime.fromtimestamp(moment / 1000, UTC), f"{datetime.fromtimestamp(moment / 1000, UTC)}"):
        assert [row.i for row in ice.table("db.t", as_of=given).collect()] == [1]


def catalog_time(ice: Any) -> int:
    return int(ice.catalog.load_table("db.t").current_snapshot().timestamp_ms)


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_reads_and_writes_its_branch_of_tables_for_audits(
    spark: Any, ice: Any, catalog: icefield.Catalog, table: icefield.Table
) -> None:
    ice.sql("ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    ice.append(spark.sql("SELECT 1 AS i"), "db.t")
    plain = catalog.create_table("db.plain", table.schema())

    def seen(name: str = "db.t") -> list[int]:
        found = sorted(row.i for row in ice.table(name).collect())
        assert sorted(row.i for row in ice.sql(f"SELECT i FROM {name}").collect()) == found
        assert ice.count(name) == len(found)
        return found

    with settings(spark, {"spark.wap.branch": "audit"}):
        assert seen() == [1]  # the branch is not there yet
        ice.append(spark.sql("SELECT 2 AS i"), "db.t")
        ice.sql("INSERT INTO db.t (i) VALUES (3), (4)")
        ice.delete("db.t", "i = 4")
        ice.sql("UPDATE db.t SET i = 5 WHERE i = 3")
        assert seen() == [1, 2, 5]
        assert ice.sql("SELECT i FROM db.t VERSION AS OF 'main'").collect() == [(1,)]
        ice.append(spark.sql("SELECT 6 AS i"), "db.plain")
        assert plain.refresh().refs().keys() == {"main"}
        with settings(spark, {"spark.wap.id": "load-1"}), pytest.raises(InvalidArgument, match="both set"):
            ice.append(spark.sql("SELECT 2 AS i"), "db.t")
    assert seen() == [1]
    ice.sql("CALL system.fast_forward('db.t', 'main', 'audit')")
    assert seen() == [1, 2, 5]


@pytest.mark.spark
def test_a_frame_is_staged_for_a_later_word(spark: Any, ice: Any, table: icefield.Table) -> None:
    ice.sql("ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    with settings(spark, {"spark.wap.id": "trial"}):
        ice.append(spark.sql("SELECT 2 AS i"), "db.t")
    assert ice.count("db.t") == 0
    ice.sql("CALL system.publish_changes('db.t', 'trial')")
    assert ice.count("db.t") == 1
