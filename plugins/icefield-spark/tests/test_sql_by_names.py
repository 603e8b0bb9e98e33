"""``ice.sql`` where Spark cannot be given the catalog, as through Spark Connect: tables are found by their names."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import IcefieldError, InvalidArgument, NoSuchTable, UnsupportedFeature
from icefield_spark.sql import by_names as module
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

QUERIES = 400 if os.environ.get("ICEFIELD_SOAK") else 60
NAMES = ["a", "b", "a b", "db.t", "{rows_of_0}", "x' OR 1=1", "--", "", "ä", "${spark.app.name}"]
ROWS = pa.table(
    {
        "id": pa.array([*range(40), None], pa.int64()),
        "part": pa.array([number // 10 for number in range(40)] + [None], pa.int32()),
        "name": [NAMES[number % 10] if number % 7 else None for number in range(41)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(number) if number % 5 else None for number in range(41)],
        "flag": [[True, False, None][number % 3] for number in range(41)],
        "x": [float("nan") if number == 3 else number / 4 for number in range(41)],
        "t": [{"id": number * 2} for number in range(41)],
    }
)


@pytest.fixture
def table(catalog: icefield.Catalog) -> icefield.Table:
    table = catalog.create_table("db.t", ROWS.schema)
    for start in range(0, 41, 10):
        table.append(ROWS.slice(start, 10))
    return table


@pytest.fixture
def mirror(spark: Any, table: icefield.Table) -> Iterator[str]:
    """A view of Spark's own with the rows of the table."""
    spark.read.parquet(*table.inspect.data_files()["file_path"].to_pylist()).createOrReplaceTempView("mirror")
    yield "mirror"
    spark.catalog.dropTempView("mirror")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The filters of the scans that queries read."""
    filters: list[str] = []
    planned = module.planned_frame

    def noted(spark: Any, scan: Any, **options: Any) -> Any:
        filters.append(str(scan.row_filter))
        return planned(spark, scan, **options)

    monkeypatch.setattr(module, "planned_frame", noted)
    return filters


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def literal(value: Any) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def condition(chance: random.Random, deep: int = 0) -> str:
    """A condition: some are pushed, others look nearly the same and are not."""
    sign = chance.choice(["=", "<", "<=", ">", ">=", "<>", "<=>", "=="])
    number, name = chance.randint(-2, 42), literal(chance.choice(NAMES))
    day = f"2024-0{chance.randint(1, 2)}-1{chance.randint(0, 9)}"
    plain = [
        f"id {sign} {number}",
        f"q.id {sign} {number}",
        f"id {sign} '{number}'",
        f"id {sign} {number}L",
        f"id {sign} {number}.5",
        f"q.t.id {sign} {number}",
        f"t.id {sign} {number}",
        f"`id` {sign} {number}",
        f"ID {sign} {number}",
        f"{number} {sign} id",
        f"id + 1 {sign} {number}",
        f"part {sign} 2147483648",
        f"part BETWEEN 1 AND {number % 4}",
        f"part IN (1, {number % 4}, NULL)",
        f"name {sign} {name}",
        f"name {sign} 'a' 'b'",
        f"name {sign} {number}",
        f'name {sign} "a"',
        "name LIKE 'a%' -- AND id = 3\n",
        f"day {sign} DATE '{day}'",
        f"day {sign} '{day}'",
        f"day {sign} CAST('{day} 10:00:00' AS TIMESTAMP)",
        f"flag {sign} true",
        "flag",
        "NOT flag",
        f"x {sign} {number}",
        f"{chance.choice(['id', 'name', 'day', 'flag', 'x'])} IS {chance.choice(['', 'NOT '])}NULL",
        f"NOT (name IS NULL AND id {sign} {number})",
        f"id {sign} {number} /* AND part = 1 */",
        f"id IN (SELECT id FROM range({number}))",
    ]
    if deep < 2 and chance.random() < 0.6:
        made = [condition(chance, deep + 1) for _ in range(2)]
        return chance.choice(["{} AND {}", "({}) OR {}", "NOT ({}) AND {}", "({}\n) AND ({}\n)"]).format(*made)
    return chance.choice(plain)


def query(chance: random.Random) -> str:
    where = condition(chance)
    if chance.random() < 0.5:
        where = f"{where} AND {condition(chance)}"
    return chance.choice(
        [
            f"SELECT * FROM {{}} q WHERE {where}",
            f"SELECT id, name AS part FROM {{}} AS q WHERE {where}",
            f"select count(*), max(name) n from {{}} q where {where}\n group by part having count(*) > 1",
            f"SELECT id FROM {{}} AS q WHERE {where}\n ORDER BY id LIMIT 5",
            f"SELECT DISTINCT part, flag FROM {{}} q WHERE {where}",
            "SELECT part FROM {} AS q(id, name, part, day, flag, x, t) WHERE part IS NOT NULL AND id < 5",
            f"SELECT id, row_number() OVER (ORDER BY id) AS n FROM {{}} q WHERE {where}",
            f"WITH q AS (SELECT * FROM {{}} WHERE part < 3) SELECT id FROM q WHERE {where}",
            f"SELECT id FROM {{}} q WHERE {where}\n UNION ALL SELECT 7",
            f"SELECT * FROM (SELECT * FROM {{}} LIMIT 100) q WHERE {where}",
            f"SELECT q.id, e FROM {{}} q LATERAL VIEW explode(array(1, 2)) l AS e WHERE {where}",
        ]
    )


@pytest.mark.slow
@pytest.mark.counted
def test_queries_give_the_rows_that_spark_gives_over_its_own_files(by_names: Any, spark: Any, mirror: str) -> None:
    chance, compared = random.Random(7), 0
    spark.conf.set("spark.sql.variable.substitute", "false")
    try:
        for _ in range(QUERIES):
            text = query(chance)
            try:
                wanted = rows(spark.sql(text.replace("{}", mirror)))
            except PySparkException:  # a cast that fails, a type that does not compare
                continue
            assert rows(by_names.sql(text.replace("{}", "db.t"))) == wanted, text
            compared += 1
    finally:
        spark.conf.unset("spark.sql.variable.substitute")
    assert compared > QUERIES // 2


@pytest.mark.parametrize(
    ("where", "pushed"),
    [
        ("id = 3", "id = 3"),
        ("id >= -3 AND rand() < 2", "id >= -3"),
        ("t.id = 3", "id = 3"),
        ("`part` < 2 AND name = 'a b'", "part < 2 and name = 'a b'"),
        ("day > DATE '2024-01-09'", "day > '2024-01-09'"),
        ("flag = true AND name IS NOT NULL", "flag = true and name is not null"),
        ("x IS NULL", "x is null"),
    ],
)
def test_a_comparison_with_a_literal_leaves_out_files(
    by_names: Any, table: icefield.Table, read: list[str], where: str, pushed: str
) -> None:
    by_names.sql(f"SELECT id FROM db.t WHERE {where}")
    assert read == [pushed]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM db.t WHERE id = 3 OR part = 1",
        "SELECT id FROM db.t WHERE id = '3' AND part = 2.0 AND day = '2024-01-01' AND name = 3 AND x > 1",
        "SELECT id FROM db.t WHERE name = 'it\\'s' AND id = 3",
        'SELECT id FROM db.t WHERE name = "a" AND id = 3',
        "SELECT id FROM db.t WHERE t.t.id = 3",
        "SELECT id FROM db.t TABLESAMPLE (10 ROWS) AS q WHERE id = 3",
        "SELECT a.id FROM db.t a JOIN range(3) b WHERE a.id = 3",
        "SELECT id FROM db.t WHERE id = 3 AND part IN (SELECT 1)",
        "SELECT id FROM db.t AS q(part, id, name, day, flag, x, t) WHERE id = 3",
        "WITH q AS (SELECT 1) SELECT id FROM db.t WHERE id = 3",
        "SELECT id FROM db.t WHERE id = 3 UNION SELECT 1",
        "FROM db.t |> LIMIT 2 |> WHERE id = 3",
        "SELECT id FROM db.t -- \n WHERE id = 3",
        "SELECT id FROM db.t /* WHERE id = 3 */",
    ],
)
def test_nothing_else_is_pushed(by_names: Any, table: icefield.Table, read: list[str], query: str) -> None:
    if "|>" in query and by_names.spark.version < "4":
        pytest.skip("pipes are of Spark 4")
    by_names.sql(query).collect()
    assert read == ["true"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO db.t SELECT * FROM db.t", "ice.append"),
        ("WITH q AS (SELECT 1) INSERT INTO db.t SELECT * FROM q", "attach the catalog"),
        ("CREATE TABLE db.u AS SELECT 1 AS id", "ice.create_table_as"),
        ("CREATE TABLE db.u (id int)", "ice.create_table"),
        ("CREATE TEMPORARY VIEW u AS SELECT * FROM db.t", "createTempView"),
        ("CREATE NAMESPACE more", "create_namespace"),
        ("DROP TABLE db.t", "drop_table"),
        ("TRUNCATE TABLE db.t", "DELETE FROM"),
        ("ALTER TABLE db.t ADD COLUMN y int", "update_schema"),
        ("COMMENT ON TABLE db.t IS 'x'", "set_properties"),
        ("SHOW TABLES IN db", "list_tables"),
        ("DESCRIBE db.t", "load_table"),
        ("CACHE TABLE u AS SELECT * FROM db.t", "cache of a frame"),
        ("SET x = 3", "attach the catalog"),
        ("SELECT * FROM db.seen", "is a view"),
        ("SELECT system.bucket(4, id) FROM db.t", "does not know the function"),
        ("SELECT * FROM db.t VERSION AS OF 1 + 2", "take a literal"),
        ("SELECT * FROM db.t TIMESTAMP AS OF current_timestamp()", "take a literal"),
        ("SELECT * FROM db.t TABLESAMPLE (3 ROWS)", "alias"),
        ("SELECT db.t.id FROM db.t", "alias"),
        ("SELECT db.t.* FROM db.t", "alias"),
        ("SELECT * FROM IDENTIFIER('db.t')", "write the name itself"),
        ("DELETE FROM IDENTIFIER('db.t')", "write the name itself"),
        ("DELETE FROM db.t -- all \\\n WHERE id = 3", "comment"),
        ("DELETE FROM db.t WHERE id IN (SELECT id FROM db.t)", "cannot read db.t"),
        ("EXPLAIN DELETE FROM db.t", "reads queries"),
    ],
)
def test_what_is_not_done_by_names_is_refused_in_one_sentence(
    by_names: Any, catalog: icefield.Catalog, table: icefield.Table, statement: str, said: str
) -> None:
    catalog.create_view("db.seen", table.schema(), {"spark": "SELECT * FROM db.t"})
    with pytest.raises(UnsupportedFeature, match=said.replace("(", r"\(")) as refused:
        by_names.sql(statement)
    assert "\n" not in str(refused.value).partition(statement)[0]
    assert (by_names.count("db.t"), catalog.list_tables("db")) == (41, [("db", "t")])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 'FROM db.t {} {rows_of_0} {{' AS a, id FROM db.t WHERE id = 3", ("FROM db.t {} {rows_of_0} {{", 3)),
        ("SELECT /* FROM db.t {x} */ id FROM db.t -- JOIN db.u ON {y}\n WHERE id = 3", (3,)),
        ("SELECT /*+ REPARTITION(2) */ id FROM `db`.`t` AS `{q}` WHERE `{q}`.id = 3", (3,)),
        ("SELECT name FROM db.t WHERE id = 24", ("{rows_of_0}",)),
        ("SELECT count(*) FROM db.t WHERE name = '{rows_of_0}'", (3,)),
        ("SELECT count(*) FROM db.t WHERE name = 'x\\' OR 1=1'", (3,)),
        ("WITH t AS (SELECT 5 AS id) SELECT id FROM t", (5,)),
        ("WITH q AS (SELECT id FROM db.t) SELECT max(id) FROM q", (39,)),
        ("WITH `db.t` AS (SELECT 1 AS id) SELECT a.id, b.id FROM `db.t` a, db.t b WHERE b.id = 3", (1, 3)),
        ("SELECT a.id FROM db.t a, db.t b WHERE a.id = b.id + 39", (39,)),
        ("SELECT t.t.id FROM db.t WHERE t.id = 3", (6,)),
        ("SELECT 1 AS `db.t`", (1,)),
        ("FROM db.t SELECT id WHERE id = 3", (3,)),
        ("VALUES (3)", (3,)),
    ],
)
def test_texts_that_hold_names_and_braces_keep_their_rows(
    by_names: Any, table: icefield.Table, query: str, found: tuple[Any, ...]
) -> None:
    assert by_names.sql(query).collect() == [found]


def test_settings_that_change_how_texts_are_read_are_refused_where_they_matter(
    by_names: Any, spark: Any, table: icefield.Table
) -> None:
    for setting, query in (
        ("spark.sql.parser.escapedStringLiterals", "SELECT '\\' AS a, id FROM db.t -- '"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", 'SELECT "id" FROM db.t'),
    ):
        spark.conf.set(setting, "true")
        try:
            with pytest.raises(UnsupportedFeature, match=setting):
                by_names.sql(query)
            assert by_names.sql("SELECT id FROM db.t WHERE id = 3").collect() == [(3,)]
        finally:
            spark.conf.unset(setting)


def test_parameters_and_variables_of_a_text_are_no_way_to_other_names(
    by_names: Any, spark: Any, table: icefield.Table
) -> None:
    for query in ("SELECT * FROM db.t WHERE id = :p", "SELECT * FROM db.t WHERE id = ?", "SELECT * FROM {db.t}"):
        with pytest.raises((PySparkException, IcefieldError)):
            by_names.sql(query).collect()
    spark.conf.set("icefield.tests.name", "db.t")
    try:
        assert by_names.sql("SELECT count(*) FROM ${icefield.tests.name}").collect() == [(41,)]
        assert by_names.sql("SELECT '${icefield.tests.name}'").collect() == [("db.t",)]
    finally:
        spark.conf.unset("icefield.tests.name")


def test_names_state_versions_and_tables_about_a_table(
    by_names: Any, catalog: icefield.Catalog, table: icefield.Table
) -> None:
    table = catalog.load_table("db.t")
    first = table.history()[0]
    with table.manage_snapshots() as update:
        update.create_tag(first.snapshot_id, "first")
    late = dt.datetime(2100, 1, 1).isoformat(" ")
    for name, count in (
        (f"db.t VERSION AS OF {first.snapshot_id}", 10),
        (f"db.t FOR VERSION AS OF '{first.snapshot_id}' AS q", 10),
        ("test.db.t VERSION AS OF 'first'", 10),
        ("db.t.tag_first", 10),
        (f"db.t.snapshot_id_{first.snapshot_id} q", 10),
        (f"db.t TIMESTAMP AS OF '{late}'", 41),
        ("db.t.snapshots", 5),
        ("db.t.files AS f", 5),
    ):
        assert by_names.sql(f"SELECT count(*) FROM {name}").collect() == [(count,)], name
    with pytest.raises(NoSuchTable, match="has no table 'nosuch'"):
        by_names.sql("SELECT * FROM db.t.nosuch")
    with pytest.raises(NoSuchTable, match=r"no table db\.nosuch"):
        by_names.sql("SELECT * FROM db.nosuch").collect()
    with pytest.raises(InvalidArgument, match="cannot be understood"):
        by_names.sql("SELECT * FROM db.t WHERE WHERE")


def test_a_temporary_view_comes_before_the_namespace_that_use_named(
    by_names: Any, spark: Any, table: icefield.Table
) -> None:
    by_names.sql("USE db")
    assert by_names.sql("SELECT max(id) FROM t").collect() == [(39,)]
    with pytest.raises(UnsupportedFeature, match="is not the namespace"):
        by_names.sql("SELECT current_schema()")
    spark.sql("CREATE TEMPORARY VIEW t AS SELECT 'mine' AS id")
    try:
        assert by_names.sql("SELECT id FROM t").collect() == [("mine",)]
        assert by_names.sql("SELECT max(id) FROM db.t AS q").collect() == [(39,)]
    finally:
        spark.catalog.dropTempView("t")


def test_changes_calls_and_icebergs_alter_work_by_names(
    by_names: Any, catalog: icefield.Catalog, table: icefield.Table, caplog: pytest.LogCaptureFixture
) -> None:
    by_names.sql("UPDATE db.t SET name = 'u' WHERE id % 2 = 1")
    by_names.sql("DELETE FROM db.t q WHERE q.id >= 5 AND part IS NOT NULL")
    by_names.sql(
        "MERGE INTO db.t USING (SELECT id, 'm' AS name FROM db.t WHERE id = 1) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name"
    )
    found = by_names.sql("SELECT id, name FROM db.t WHERE id < 5 AND name IS NOT NULL ORDER BY id").collect()
    assert found == [(1, "m"), (2, "a b"), (3, "u"), (4, "{rows_of_0}")]
    by_names.sql("ALTER TABLE db.t ADD PARTITION FIELD bucket(4, id)")
    by_names.sql("ALTER TABLE db.t CREATE TAG done")
    (row,) = by_names.sql(
        "CALL system.rewrite_data_files('db.t', where => 'id < 3', options => map('rewrite-all', 'true'))"
    ).collect()
    assert row.rewritten_data_files_count > 0
    fresh = catalog.load_table("db.t")
    assert (len(fresh.spec().fields), "done" in fresh.refs()) == (1, True)
    assert by_names.sql("EXPLAIN SELECT id FROM db.t WHERE id = 3").count() == 1
    assert [record.message.count("by their names alone") for record in caplog.records if "names" in record.message] == [
        1
    ]
