"""Merges and updates of frames: what conditions say of the table, and expressions that are columns of Spark's."""

from __future__ import annotations

from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield_spark.comparisons import Side
from icefield_spark.conditions import Said, _said_by_text, said_of
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types

ROWS = [(n, None if n % 7 == 3 else n % 4, f"s{n % 5}", n / 4 if n % 6 else float("nan")) for n in range(24)]
COLUMNS = "id long, part int, name string, x double"


def columns(ddl: str) -> spark_types.StructType:
    return spark_types.StructType.fromDDL(ddl)


T = Side("t", spark_types.StructType([
    spark_types.StructField("id", spark_types.LongType()),
    spark_types.StructField("part", spark_types.IntegerType()),
    spark_types.StructField("name", spark_types.StringType()),
    spark_types.StructField("day", spark_types.DateType()),
]))  # fmt: skip
S = Side("s", spark_types.StructType([spark_types.StructField("key", spark_types.LongType())]))


@pytest.mark.parametrize(
    ("text", "predicates", "pairs", "whole"),
    [
        ("id = 3", [("=", "id", "3")], [], True),
        ("t.id >= -3 AND name = 'a b'", [(">=", "id", "-3"), ("=", "name", "a b")], [], True),
        ("day < DATE '1970-01-03'", [("<", "day", "2")], [], True),
        ("id = 3 OR id = 4", [], [], False),
        ("name = 'x' OR name = ' AND id = 3 AND '", [], [], False),
        ("name = 3", [], [], False),
        ("part = 99999999999", [], [], False),
        ("id = '3'", [], [], False),
        ("day = '1970-01-03'", [], [], False),
        ("NOT id = 3", [], [], False),
        ("id BETWEEN 1 AND 3", [], [], False),
        ("name = 'it\\'s'", [], [], False),
        ("u.id = 3", [], [], False),
    ],
)
def test_a_text_says_only_what_is_certain_without_a_plan(
    text: str, predicates: list[Any], pairs: list[Any], whole: bool
) -> None:
    found = _said_by_text(text, T, None)
    said = [(e["function"], e["arguments"][0]["column"][0], e["arguments"][1]["value"]) for e in found.predicates]
    assert (said, found.pairs, found.is_whole) == (predicates, pairs, whole)


def test_a_text_says_which_columns_of_both_sides_are_equal() -> None:
    found = _said_by_text("t.id = s.key AND t.part = 3", T, S)
    assert (found.pairs, len(found.predicates), found.is_whole) == ([("id", "key")], 1, False)
    assert _said_by_text("s.key = t.id", T, S).pairs == [("id", "key")]
    for text in ("id = key", "part = 3", "t.id = t.part", "t.id = s.nosuch", "t.id = s.key OR t.part = 3"):
        assert _said_by_text(text, T, S) == Said(is_whole=False)


@pytest.fixture
def table(ice: Any) -> icefield.Table:
    return ice.create_table_as(ice.spark.createDataFrame(ROWS, COLUMNS), "db.t")  # type: ignore[no-any-return]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "exact"),
    [
        ("id = 3", True),
        ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", True),
        ("id NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, NULL)", True),
        ("part NOT IN (1, 2)", True),
        ("NOT (part = 1 OR name LIKE 's1%')", True),
        ("part <=> NULL AND id > 3", True),
        ("x > 3", True),
        ("x = 'NaN'", True),
        ("id > 5.5 AND part = '2'", True),
        ("false", True),
        ("true", True),
        ("part", False),
        ("pmod(id, 5) = 1 AND part = 2", False),
        ("id IN (SELECT id FROM range(4)) AND part > 0", False),
        ("rand() < 2 AND part = 1", False),
    ],
)
def test_a_plan_says_which_rows_a_condition_takes(
    spark: Any, table: icefield.Table, condition: str, exact: bool
) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    condition = "part = 1 AND CAST(part AS string) = '1'" if condition == "part" else condition
    wanted = {row.id for row in frame.where(condition).collect()}
    said = said_of(spark, condition, Side("t", columns(COLUMNS)))
    kept = set(table.scan(row_filter=said.concern(table)).to_arrow()["id"].to_pylist())
    assert kept >= wanted
    found = said.exact(table)
    if exact:
        assert found is not None
    if found is not None:
        assert set(table.scan(row_filter=found).to_arrow()["id"].to_pylist()) == wanted


@pytest.mark.spark
def test_a_plan_says_which_columns_of_both_sides_are_equal(spark: Any) -> None:
    mine, source = Side("t", columns(COLUMNS)), Side("s", columns("key int, name string, n long"))
    pairs = {
        "t.id = s.key AND t.part > 1": [("id", "key")],
        "s.name = t.name AND t.id = s.n": [("name", "name"), ("id", "n")],
        "t.id = int(s.n)": [],
        "t.id <=> s.n": [],
        "t.id = s.n OR t.part = 3": [],
        "t.id + 1 = s.n": [],
        "false": [],
    }
    assert {text: sorted(said_of(spark, text, mine, source).pairs) for text in pairs} == {
        text: sorted(each) for text, each in pairs.items()
    }


@pytest.mark.spark
@pytest.mark.slow
def test_conditions_and_values_may_be_columns(spark: Any, ice: Any, table: icefield.Table) -> None:
    ice.update("db.t", {"name": f.concat("name", f.lit("!")), "part": f.col("t.part") + 1}, f.col("id") < 2)
    source = spark.createDataFrame([(5, 50), (99, 1)], "id long, part int")
    merge = ice.merge(source, "db.t", f.col("target.id") == f.col("source.id"))
    merge.when_matched_update({"part": f.col("source.part") + f.col("target.part")}, f.col("source.part") > 3)
    merge.when_not_matched_insert({"id": "id", "name": f.lit("new")}, f.col("part") == 1).commit()
    found = {row.id: (row.part, row.name) for row in ice.table("db.t").collect()}
    wanted = {id_: (part, name) for id_, part, name, _ in ROWS}
    wanted |= {0: (1, "s0!"), 1: (2, "s1!"), 5: (51, "s0"), 99: (None, "new")}
    assert found == wanted


@pytest.mark.spark
@pytest.mark.slow
def test_values_of_a_clause_are_computed_for_its_rows_alone(spark: Any, ice: Any, table: icefield.Table) -> None:
    source = spark.createDataFrame([(5, 0), (99, 2)], "id long, n int")
    merge = ice.merge(source, "db.t", ["id"]).when_matched_update({"part": "source.n"})
    merge.when_not_matched_insert({"id": "id", "part": "10 / n"}).commit()
    assert sorted((r.id, r.part) for r in ice.table("db.t").where("id in (5, 99)").collect()) == [(5, 0), (99, 5)]
    rest = ice.merge(source, "db.t", "target.id = source.id").when_not_matched_by_source_delete("part > 0")
    rest.when_not_matched_by_source_update({"name": "concat(name, '?')"}, "part IS NULL").commit()
    found = {row.id: row.name for row in ice.table("db.t").collect()}
    wanted = {id_: name if part == 0 else f"{name}?" for id_, part, name, _ in ROWS if not part}
    assert found == {**wanted, 5: "s0", 99: None}


@pytest.mark.spark
def test_a_clause_that_cannot_be_done_changes_nothing(spark: Any, ice: Any, table: icefield.Table) -> None:
    source = spark.createDataFrame([(5, 0)], "id long, n int")

    def merge() -> Any:
        return ice.merge(source, "db.t", ["id"])

    for refused in (
        lambda: merge().when_matched_update({"part": "explode(array(1, 2))"}).commit(),
        lambda: merge().when_matched_update({"part": "count(*)"}).commit(),
        lambda: merge().when_matched_update({"part": "1 AS other"}).commit(),
        lambda: merge().when_matched_update({"part": "source.n", "PART": "1"}).commit(),
        lambda: merge().when_not_matched_insert({"id": "target.id"}).commit(),
        lambda: merge().when_not_matched_by_source_update({"part": "n"}).commit(),
        lambda: merge().when_not_matched_insert_all().commit(),
        lambda: ice.update("db.t", {"nosuch": "1"}),
        lambda: ice.update("db.t", {"part": "'x'"}),
    ):
        with pytest.raises((InvalidArgument, UnsupportedFeature, PySparkException)):
            refused()
    assert table.refresh().metadata_location == ice.catalog.load_table("db.t").metadata_location
    assert len(table.snapshots()) == 1
