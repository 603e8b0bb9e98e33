"""Values that are constant in a data file, beside the rows that Spark's own reader reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import icefield
import pyarrow.parquet as pq
import pytest
from delete_files import commit, data_files, deletion_vectors, write_file
from icefield_spark.roads.groups import Member, groups_of

pytestmark = pytest.mark.spark

KINDS = {
    "boolean": "id % 2 = 0",
    "int": "INT(id) - 2",
    "bigint": "id * 3000000000",
    "float": "CAST(IF(id = 3, 'NaN', concat('-', id, '.5')) AS FLOAT)",
    "double": "CAST(IF(id = 3, '-Infinity', concat(id, '.1')) AS DOUBLE)",
    "decimal(20, 3)": "CAST(concat('-12345678901234567.00', id) AS DECIMAL(20, 3))",
    "date": "DATE '1582-10-10' + INT(id)",
    "timestamp": "TIMESTAMP '1888-01-01 00:00:00.123456' + make_interval(0, 0, 0, INT(id))",
    "timestamp_ntz": "TIMESTAMP_NTZ '2024-02-29 12:00:00' + make_interval(0, 0, 0, INT(id))",
    "string": "concat('ä/\"', id, '\\n')",
    "binary": "unhex(concat('00FF0', id))",
}


@pytest.fixture
def table_of(spark: Any, ice: Any) -> Iterator[Callable[..., icefield.Table]]:
    """Make a table ``db.t`` partitioned by a column ``p`` that no file has: only the manifests state its values."""

    def made(kind: str, value: str, files: int = 4) -> icefield.Table:
        spark.sql(f"SELECT id, CAST({value} AS {kind}) AS p FROM range({files})").createOrReplaceTempView("given")
        ice.sql(f"CREATE TABLE db.t (id bigint, p {kind}) PARTITIONED BY (p)")
        ice.sql("INSERT INTO db.t SELECT * FROM given")
        table = ice.catalog.load_table("db.t")
        schema = icefield.Schema(table.schema().fields[0])
        lacking = []
        for task in table.scan().plan_files():
            path, partition = task.file.file_path.removeprefix("file://"), task.file.partition
            lacking.append(
                write_file(table, schema, pq.read_table(path, columns=["id"]), "parquet", partition=partition)
            )
        table.delete("true")
        commit(table, *lacking)
        return table.refresh()

    yield made
    spark.catalog.dropTempView("given")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_type_of_value_is_read_compared_and_null_as_in_arrow(
    spark: Any, ice: Any, table_of: Callable[..., icefield.Table], kind: str
) -> None:
    value = f"IF(id = 2, NULL, {KINDS[kind]})"
    table_of(kind, value)
    assert {*ice.explain("db.t").count_by_road()} == {"spark"}
    for where in ("true", "p IS NULL", "p IS NOT NULL", f"p = (SELECT max({value}) FROM range(4))", "p < p", "p <= p"):
        found = [row.id for row in ice.table("db.t").where(where).select("id").orderBy("id").collect()]
        assert found == [row.id for row in spark.table("given").where(where).orderBy("id").collect()], where
    shown = "SELECT id, p, CAST(p AS STRING) AS s, hash(p) FROM {} ORDER BY id"
    wanted = spark.sql(shown.format("given")).collect()
    assert str(ice.sql(shown.format("db.t")).collect()) == str(wanted)
    rows = ice.table("db.t", road="arrow").selectExpr("id", "p", "CAST(p AS STRING) AS s", "hash(p)").orderBy("id")
    assert str(rows.collect()) == str(wanted)


def test_files_with_different_values_are_one_relation_whose_conditions_leave_out_files(
    ice: Any, table_of: Callable[..., icefield.Table]
) -> None:
    table_of("int", "INT(id)", files=40)
    frame = ice.sql("SELECT id, p FROM db.t WHERE p + id IN (8, 62) AND pmod(p, 3) = 1")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan") == 1, plan
    assert "PartitionFilters: [isnotnull" in plan, plan
    assert sorted(map(tuple, frame.collect())) == [(4, 4), (31, 31)]
    assert [row.p for row in ice.sql("SELECT p FROM db.t WHERE id = 7").collect()] == [7]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_negative_zero_keeps_its_sign_beside_zero(ice: Any, table_of: Callable[..., icefield.Table], kind: str) -> None:
    table_of(kind, "(id - 1) * CAST('-0.0' AS DOUBLE)", files=3)  # Spark replaces IF(x, -0.0, 0.0) by -0.0
    found = ice.sql("SELECT id, CAST(p AS STRING) AS s FROM db.t WHERE p = 0 ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(0, "0.0"), (1, "-0.0"), (2, "-0.0")]


def test_a_column_of_a_file_may_have_the_name_of_a_constant(ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (_0 bigint, __0 bigint, _start bigint) TBLPROPERTIES ('format-version' = '3')")
    for number in (1, 2):
        ice.sql(f"INSERT INTO db.t VALUES ({number}, {number * 10}, {number * 100})")
    table = ice.catalog.load_table("db.t")
    commit(table, *deletion_vectors(table, {file: [] for file in data_files(table)}))
    found = ice.table("db.t", columns=["_0", "__0", "_start", "_row_id", "_pos"]).orderBy("_0")
    assert [tuple(row) for row in found.collect()] == [(1, 10, 100, 0, 0), (2, 20, 200, 1, 0)]


def test_equal_scans_in_a_statement_are_computed_once(ice: Any, table_of: Callable[..., icefield.Table]) -> None:
    table_of("int", "INT(id)")
    counted = "SELECT p, count(*) AS n FROM db.t GROUP BY p"
    frame = ice.sql(f"SELECT * FROM ({counted}) UNION ALL SELECT * FROM ({counted})")
    assert len(frame.collect()) == 8
    assert "ReusedExchange" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    ("rows", "sizes"), [([5], [2]), ([1 << 18], [2]), ([(1 << 18) + 1], [1, 1]), ([1 << 17, (1 << 17) + 1], [1, 2])]
)
def test_few_rows_without_deletes_are_read_beside_those_with(rows: list[int], sizes: list[int]) -> None:
    def member(count: int, deletes: tuple[Any, ...]) -> Member:
        file = SimpleNamespace(file_path="some", file_size_in_bytes=1, record_count=count)
        task: Any = SimpleNamespace(file=file, delete_files=deletes)
        return Member(task, "some", {}, {}, False, False, ())

    groups = list(groups_of([member(1 << 20, (None,)), *(member(count, ()) for count in rows)]))
    assert [len(group.tasks) for group in groups] == sizes
    assert [group.deleted is not None for group in groups] == [True, False][: len(sizes)]
