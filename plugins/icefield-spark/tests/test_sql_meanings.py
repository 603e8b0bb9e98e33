"""A statement on tables of Icefield means what the same statement means on rows of Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import icefield
import pytest
from icefield.errors import IcefieldError
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOODS = r"""SELECT * FROM VALUES (1L, 1, 'g1', 1.00BD), (2L, 2, 'g2', 1.70BD), (3L, 1, r'a\db', 3.00BD),
  (4L, 4, 'adb', 4.00BD), (5L, null, 'it''s', null) AS v(id, x, s, amount)"""
PARTS = """SELECT * FROM VALUES (1L, 7, 'q'), (2L, 1, 'r'), (3L, 9, 's'), (4L, 1, 'x') AS v(id, x, s)"""

ESCAPED = "spark.sql.parser.escapedStringLiterals"
DOUBLE = "spark.sql.ansi.doubleQuotedIdentifiers"
PLAIN: dict[str, str] = {}


@pytest.fixture
def both(spark: Any, ice: Any) -> Iterator[None]:
    """Two tables, ``db.goods`` and ``db.parts``, and views of the same rows that Spark keeps."""
    for name, query in (("goods", GOODS), ("parts", PARTS)):
        spark.sql(query).createOrReplaceTempView(name)
        ice.sql(f"CREATE TABLE db.{name} AS {query}")
    yield
    for name in ("goods", "parts"):
        spark.catalog.dropTempView(name)


def rows(frame: Any) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


QUERIES = [
    (PLAIN, "SELECT id FROM {}goods LEFT SEMI JOIN {}parts ON goods.id = parts.id WHERE x = 1"),
    (PLAIN, "SELECT id FROM {}goods LEFT ANTI JOIN {}parts ON goods.id = parts.id WHERE x = 1"),
    (PLAIN, "SELECT id FROM {}goods g ANTI JOIN {}parts p ON g.id = p.id AND p.x = 1 WHERE s > 'a' AND x = 1"),
    (PLAIN, "SELECT id FROM {}goods g SEMI JOIN {}parts p ON g.x = p.x JOIN {}parts q USING (id) WHERE q.x = 7"),
    (PLAIN, "SELECT id FROM {}goods LEFT SEMI JOIN {}parts USING (id) WHERE s = 'g1'"),
    (PLAIN, "SELECT * FROM {}parts AS q(x, id, s) WHERE x = 2"),
    (PLAIN, "SELECT q.s FROM {}parts q(id, s, x) WHERE id > 1 AND s = 1"),
    (PLAIN, "SELECT count(*) FROM {}goods g JOIN {}parts AS p(n, id, x) ON g.id = p.id WHERE n = 2"),
    (PLAIN, "SELECT id FROM {}goods WHERE amount = CAST(1.7 AS BIGINT)"),
    (PLAIN, "SELECT id FROM {}goods WHERE amount < CAST('1.70' AS DECIMAL(2, 1)) AND id >= CAST(0.9 AS INT)"),
    (PLAIN, "SELECT id FROM {}goods WHERE x = CAST(true AS INT) OR id = CAST(DATE'2024-01-01' > '2023-01-01' AS INT)"),
    (PLAIN, "SELECT id, '${{meaning}}' AS m FROM {}goods WHERE s = 'g${{meaning}}'"),
    (PLAIN, "SELECT id FROM {}goods WHERE id = ${{meaning}} OR s = 'it''s'"),
    ({"spark.sql.variable.substitute": "false"}, "SELECT id FROM {}goods WHERE s <> 'g${{meaning}}'"),
    (PLAIN, r"SELECT id FROM {}goods WHERE s IN ('a\\db', 'it\'s')"),
    (PLAIN, r"SELECT id FROM {}goods WHERE s = r'a\db' OR s LIKE 'a\\\\%'"),
    ({ESCAPED: "true"}, r"SELECT id FROM {}goods WHERE s = 'a\db'"),
    ({ESCAPED: "true"}, r"SELECT id FROM {}goods WHERE s IN ('a\db', 'g1')"),
    ({DOUBLE: "true"}, 'SELECT id, s FROM {}parts WHERE s >= "s"'),
    ({DOUBLE: "true"}, 'SELECT "id" FROM {}parts AS "p" WHERE "p"."s" = \'x\' OR "x" = 7'),
    ({DOUBLE: "false"}, 'SELECT id, s FROM {}parts WHERE s >= "s"'),
]


def test_queries_give_the_rows_that_they_give_of_sparks_own(spark: Any, ice: Any, both: None) -> None:
    spark.conf.set("meaning", "1")
    wrong = []
    for settings, query in QUERIES:
        before = {key: spark.conf.get(key) for key in settings}
        for key, value in settings.items():
            spark.conf.set(key, value)
        try:
            own = rows(spark.sql(query.format(*[""] * 3)))
            found = rows(ice.sql(query.format(*["db."] * 3)))
        finally:
            for key, value in before.items():
                spark.conf.set(key, value)
        if found != own:
            wrong.append((query, found, own))
    spark.conf.unset("meaning")
    assert not wrong


def test_deletes_take_the_rows_that_the_session_means(spark: Any, ice: Any, both: None) -> None:
    spark.conf.set("meaning", "2")
    spark.conf.set(ESCAPED, "true")
    try:
        ice.sql(r"DELETE FROM db.goods WHERE s = 'a\db'")
        ice.sql("DELETE FROM db.goods WHERE s = 'g${meaning}'")
    finally:
        spark.conf.unset(ESCAPED)
        spark.conf.unset("meaning")
    spark.conf.set(DOUBLE, "true")
    try:
        ice.sql('DELETE FROM db.parts WHERE s = "s" AND "id" < 4')
    finally:
        spark.conf.unset(DOUBLE)
    assert rows(ice.sql("SELECT id FROM db.goods")) == ["(1,)", "(4,)", "(5,)"]
    assert rows(ice.sql("SELECT id FROM db.parts")) == ["(4,)"]


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED AND rand() < 0.5 THEN UPDATE SET s = 'new'",
        "WHEN MATCHED THEN UPDATE SET s = 'new' WHEN NOT MATCHED AND uuid() > '8' THEN INSERT (id) VALUES (u.id)",
        "WHEN NOT MATCHED BY SOURCE AND (SELECT count(*) FROM db.parts WHERE rand() < 0.5) < 2 THEN DELETE",
    ],
)
def test_a_merge_by_chance_is_refused_and_changes_nothing(ice: Any, both: None, clauses: str) -> None:
    before = rows(ice.sql("SELECT * FROM db.goods"))
    with pytest.raises(PySparkException, match=r"NON_DETERMINISTIC|SUBQUERY"):
        ice.sql(f"MERGE INTO db.goods t USING (SELECT id FROM range(60)) u ON t.id = u.id {clauses}")
    assert rows(ice.sql("SELECT * FROM db.goods")) == before


def test_ddl_finds_columns_in_any_case(ice: Any, catalog: icefield.Catalog) -> None:
    columns = "Id bigint, D date, A string, S struct<N: int>"
    ice.sql(f"CREATE TABLE db.t ({columns}) PARTITIONED BY (bucket(4, ID), months(d), truncate(2, A))")
    fields = [(each.name, str(each.transform)) for each in catalog.load_table("db.t").spec().fields]
    assert fields == [("Id_bucket", "bucket[4]"), ("D_month", "month"), ("A_trunc", "truncate[2]")]
    ice.sql("CREATE TABLE db.u PARTITIONED BY (d) AS SELECT 1L AS Id, DATE'2024-01-01' AS D, 'x' AS A")
    assert [each.name for each in catalog.load_table("db.u").spec().fields] == ["D"]
    for row in range(3):
        ice.sql(f"INSERT INTO db.t VALUES ({row}, DATE'2024-01-01', 'a{row}', named_struct('N', {row}))")
        ice.sql(f"INSERT INTO db.u VALUES ({row}, DATE'2024-01-01', 'a{row}')")
    ice.sql("ALTER TABLE db.t WRITE ORDERED BY d DESC, a")
    ice.sql("ALTER TABLE db.t ADD PARTITION FIELD bucket(2, s.n)")
    ice.sql("ALTER TABLE db.t DROP PARTITION FIELD months(d)")
    ice.sql("ALTER TABLE db.t ALTER COLUMN id COMMENT 'the number'")
    ice.sql("ALTER TABLE db.t ADD COLUMN s.m int AFTER n")
    ice.sql("ALTER TABLE db.t RENAME COLUMN id TO iD")
    ice.sql("ALTER TABLE db.t RENAME COLUMN iD TO Id")
    with pytest.raises(IcefieldError):
        ice.sql("ALTER TABLE db.t RENAME COLUMN id TO a")
    names = ["Id", "D", "A", "S", "S.N", "S.m"]
    assert sorted(catalog.load_table("db.t").schema().column_names) == sorted(names)
    for order in ("d DESC, a ASC NULLS LAST", "bucket(4, ID) DESC NULLS FIRST, s.n", "zorder(ID, a)"):
        for table in ("t", "u"):
            if table == "u" and "s.n" in order:
                continue
            call = f"table => 'db.{table}', strategy => 'sort', sort_order => '{order}'"
            ice.sql(f"CALL system.rewrite_data_files({call}, options => map('rewrite-all', 'true'))")
    ice.sql("CREATE TABLE db.l (a bigint, d bigint, n string)")
    ice.sql("INSERT INTO db.l VALUES (1, 1, 'x'), (null, 2, 'y'), (3, 3, null)")
    call = "table => 'db.l', sort_order => 'A ASC NULLS LAST, D DESC, N', options => map('rewrite-all', 'true')"
    ice.sql(f"CALL system.rewrite_data_files(strategy => 'sort', {call})")
    assert catalog.load_table("db.l").scan().to_arrow()["a"].to_pylist() == [1, 3, None]


@pytest.mark.parametrize("rest", ["(Id bigint, ID string)", "AS SELECT 1L AS Id, 'x' AS ID", "(s int, id int, S int)"])
def test_columns_that_differ_by_case_alone_are_refused(
    spark: Any, ice: Any, catalog: icefield.Catalog, rest: str
) -> None:
    with pytest.raises(PySparkException, match="COLUMN_ALREADY_EXISTS"):
        ice.sql(f"CREATE TABLE db.t {rest}")
    assert not catalog.table_exists("db.t")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        ice.sql(f"CREATE TABLE db.t {rest}")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert catalog.table_exists("db.t")
