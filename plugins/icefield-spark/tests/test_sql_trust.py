"""What others wrote into a table or view is read as names, values and queries, and never as programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import IcefieldError, UnsupportedFeature
from pyspark.errors import PySparkException

pytestmark = pytest.mark.slow

NEWLINE = "${system:line.separator}"
REFUSED = (IcefieldError, PySparkException)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


RUN = "reflect('java.lang.System', 'setProperty', 'icefield.canary', 'yes')"

PROGRAMS = [
    f"SELECT {RUN} AS x",
    f"SELECT `reflect`{RUN[7:]} AS x",
    f"SELECT system.builtin.{RUN} AS x",
    f"SELECT try_{RUN} AS x",
    f"SELECT java_method{RUN[7:]} AS x",
    f"SELECT IDENTIFIER('reflect'){RUN[7:]} AS x",
    f"SELECT IDENTIFIER('ref' || 'lect'){RUN[7:]} AS x",
    f"SELECT transform(array(1), e -> {RUN})[0] AS x",
    f"SELECT max(x) OVER (ORDER BY {RUN}) AS x FROM VALUES ('a') AS v(x)",
    f"SELECT x FROM VALUES ({RUN}) AS v(x)",
    f"SELECT x FROM VALUES ('a') AS v(x) WHERE EXISTS (SELECT {RUN})",
    f"WITH a AS (SELECT {RUN} AS x) SELECT * FROM a",
    f"SELECT x FROM VALUES ('a') AS v(x) LATERAL VIEW explode(array({RUN})) e AS y",
    f"SELECT x FROM VALUES ('a') AS v(x), LATERAL (SELECT {RUN})",
    f"SELECT x FROM VALUES ('a') AS v(x) JOIN VALUES ('b') AS w(y) ON x = {RUN}",
    f"SELECT x FROM VALUES ('a') AS v(x) GROUP BY x HAVING max({RUN}) > 'a'",
    f"SELECT * FROM VALUES ('a', 1) AS v(y, z) PIVOT (max({RUN}) AS x FOR y IN ('a'))",
    f"FROM VALUES ('a') AS v(x) |> SELECT {RUN} AS x",
    f"SELECT 'a' || -- {NEWLINE} {RUN} ||\n '' AS x",
    f"SELECT 'a' AS x /* {NEWLINE} */ -- {NEWLINE} , {RUN}\n",
    "SELECT x FROM (SELECT 'a' AS x -- ${system:line.separator} UNION ALL SELECT 'b'\n)",
    "SELECT '${env:HOME}' AS x",
    "SELECT '${system:user.home}' AS x",
    "SELECT '${spark.app.name}' AS x",
    "SELECT TRANSFORM('a') USING 'cat' AS (x STRING)",
    "FROM VALUES ('a') AS v(x) MAP x USING 'cat' AS (x STRING)",
    "SELECT value AS x FROM text.`{folder}/secret.txt`",
    "SELECT value AS x FROM `text`.`{folder}/secret.txt`",
    "SELECT x FROM (SELECT 'a' AS x) WHERE x NOT IN (SELECT value FROM text.`{folder}/secret.txt`)",
    "SELECT session.secret AS x",
    "SELECT system.session.secret AS x",
    "SELECT secret AS x",
    "SELECT x FROM VALUES ('a') AS v(x) WHERE EXISTS (SELECT secret)",
    "WITH a AS (SELECT concat(secret, '') AS x) SELECT * FROM a",
    "SELECT x FROM VALUES ('a') AS v(x) WHERE x < (SELECT max(y) FROM (SELECT (SELECT secret) AS y))",
    "SELECT y AS x FROM VALUES ('a') AS v(x) LATERAL VIEW explode(array(secret)) e AS y",
    "SELECT x FROM VALUES ('a') AS v(x) JOIN VALUES ('b') AS w(y) ON x <> secret",
    "SELECT x FROM secrets",
    "WITH a AS (WITH secrets AS (SELECT 'a' AS x) SELECT * FROM secrets) SELECT secrets.x FROM a, secrets",
    "WITH a AS (SELECT * FROM secrets), secrets AS (SELECT 'a' AS x) SELECT x FROM a",
    "SELECT x FROM IDENTIFIER('sec' || 'rets')",
    "SELECT x FROM global_temp.shared_secrets",
    "SELECT input_file_name() AS x",
    "SELECT from_xml('<a/>', 'a string', map('rowValidationXSDPath', '{folder}/secret.txt')).a AS x",
    "SELECT own_function('a') AS x",
    "SELECT spark_catalog.default.own_function('a') AS x",
    "SELECT x FROM STREAM db.goods",
    "SELECT x FROM spark_catalog.default.t WITH (path = '{folder}')",
    "SET spark.sql.ansi.enabled = false",
    "ADD JAR '{folder}/a.jar'",
    "CREATE TABLE spark_catalog.default.made AS SELECT 'a' AS x",
    "INSERT OVERWRITE DIRECTORY '{folder}/out' USING json SELECT 'a' AS x",
    "FROM db.goods INSERT INTO db.goods SELECT 'a'",
    "EXPLAIN SELECT 'a' AS x",
    "DESCRIBE db.goods",
    "SHOW TABLES",
    "BEGIN SELECT 'a'; END",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "SELECT * FROM python_worker_logs()",
]


def test_no_view_runs_a_program_or_reads_what_is_not_the_catalogs(
    ice: Any, spark: Any, catalog: icefield.Catalog, tmp_path: Path, canary: Any
) -> None:
    catalog.create_table("db.goods", pa.schema([("x", pa.string())])).append(pa.table({"x": ["a"]}))
    (tmp_path / "secret.txt").write_text("PLANTED\n")
    hidden = spark.createDataFrame([("PLANTED",)], "x string")
    hidden.createOrReplaceTempView("secrets")
    hidden.createOrReplaceGlobalTempView("shared_secrets")
    spark.udf.register("own_function", lambda each: "PLANTED")
    spark.sql("DECLARE OR REPLACE VARIABLE secret STRING DEFAULT 'PLANTED'")
    schema = pa.schema([("x", pa.string())])
    ran = []
    try:
        for number, query in enumerate(PROGRAMS):
            query = query.replace("{folder}", str(tmp_path))
            catalog.create_view(f"db.v{number}", schema, {"spark": query}, default_namespace=("db",))
            for statement in (
                f"SELECT * FROM db.v{number}",
                f"CREATE VIEW db.w{number} AS {query}".replace("$", "$ "),
                f"DESCRIBE db.v{number}",
            ):
                try:
                    found = rows(ice.sql(statement))
                except REFUSED:
                    continue
                if statement.startswith("SELECT"):
                    ran.append((query, found))
            assert not canary(), query
    finally:
        spark.sql("DROP TEMPORARY VARIABLE secret")
        spark.catalog.dropTempView("secrets")
        spark.catalog.dropGlobalTempView("shared_secrets")
    assert not ran
    assert not (tmp_path / "out").exists()


QUERIES = [
    "SELECT id AS n FROM goods WHERE kind = 'a' OR kind IS NULL",
    "SELECT g.*, upper(kind) AS u, count(*) OVER (PARTITION BY kind ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND "
    "CURRENT ROW) AS c, rank() OVER w AS r FROM goods g WINDOW w AS (ORDER BY id)",
    "WITH a AS (SELECT id FROM goods), b(n) AS (SELECT id FROM a) SELECT n FROM b JOIN a ON n = id LEFT JOIN goods g "
    "USING (id) CROSS JOIN (VALUES (1)) AS v(z)",
    "SELECT kind, sum(id) FILTER (WHERE id > 1) AS s, count(DISTINCT id) AS d FROM goods GROUP BY kind HAVING "
    "sum(id) > 1 ORDER BY kind NULLS LAST LIMIT 3 OFFSET 0",
    "SELECT kind, id, grouping(kind) AS g, sum(id) AS s FROM goods GROUP BY ROLLUP(kind, id)",
    "SELECT kind, sum(id) AS s FROM goods GROUP BY GROUPING SETS ((kind), ())",
    "SELECT kind, sum(id) AS s FROM goods GROUP BY CUBE(kind)",
    "SELECT id FROM goods UNION ALL SELECT 9 UNION SELECT 1 EXCEPT SELECT 2 INTERSECT SELECT 1",
    "SELECT DISTINCT kind FROM goods SORT BY kind",
    "SELECT CASE kind WHEN 'a' THEN 1 ELSE 2 END AS a, CASE WHEN id > 1 THEN 1 END AS b, id IN (1, 2) AS c, id IN "
    "(SELECT id FROM goods) AS d, (SELECT max(id) FROM goods) AS e, id BETWEEN 1 AND 2 AS f, -id % 2 AS g, id div 2 "
    "AS h, kind || 'x' AS i, kind <=> NULL AS j, kind IS DISTINCT FROM 'a' AS k, kind LIKE 'a%' ESCAPE '!' AS l, "
    "kind ILIKE 'A' AS m, kind RLIKE 'a' AS n, kind LIKE ANY ('a', 'b') AS o, ~id & 3 | 4 ^ 1 AS p FROM goods",
    "SELECT CAST(id AS INT) AS a, id::string AS b, try_cast(kind AS int) AS c, now() + INTERVAL 3 DAYS > now() AS d, "
    "DATE '2024-01-01' "
    "AS e, TIMESTAMP '2024-01-01 00:00:00' AS f, X'ff' AS g, 1L AS h, 1.5D AS i, 2BD AS j, NULL AS k, current_date() "
    "AS l, map('a', 1)['a'] AS m, named_struct('x', id).x AS n, array(1)[0] AS o, struct(id) AS p FROM goods",
    "SELECT transform(array(id), x -> x + 1) AS a, aggregate(array(1, 2), 0, (x, y) -> x + y) AS b, extract(YEAR FROM "
    "DATE '2024-01-01') AS c, trim(BOTH 'x' FROM kind) AS d, substring(kind FROM 1 FOR 2) AS e, position('a' IN kind) "
    "AS f, first(kind) IGNORE NULLS OVER (ORDER BY id) AS g, ceil(1.2) AS h, nvl(kind, 'z') AS i, if(id > 1, 1, 2) AS "
    "j, coalesce(kind, 'q') AS k, date_format(TIMESTAMP '2024-01-01 00:00:00', 'yyyy') AS l, current_user() AS m, "
    "timestampadd(DAY, 1, DATE '2024-01-01') AS n FROM goods",
    "SELECT id, x FROM goods LATERAL VIEW OUTER explode(array(1, 2)) e AS x",
    "SELECT id, q FROM goods, LATERAL (SELECT id + 1 AS q)",
    "SELECT r.id AS n FROM range(5) r JOIN goods g ON r.id = g.id",
    "SELECT * FROM goods PIVOT (sum(id) AS s FOR kind IN ('a' AS one, 'b'))",
    "SELECT * FROM (SELECT id, id + 1 AS more FROM goods) UNPIVOT (v FOR n IN (id, more))",
    "SELECT * FROM (SELECT id, id + 1 AS a, 2 AS b, 3 AS c FROM goods) UNPIVOT INCLUDE NULLS ((v, w) FOR n IN "
    "((id, a) AS x, (b, c) AS y))",
    "SELECT /*+ BROADCAST(g) */ * FROM goods g LEFT SEMI JOIN goods h ON g.id = h.id LEFT ANTI JOIN goods i ON g.id = "
    "i.id + 100",
    "SELECT /*+ MERGE(goods, h), REPARTITION(2, id) */ goods.id FROM goods JOIN (SELECT /*+ COALESCE(1) */ id FROM "
    "db.goods) h ON goods.id = h.id",
    "SELECT stack(2, 1, 2) AS x",
    "SELECT id -- a comment; with 'a quote\n FROM goods /* and another */ WHERE id > 0",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT max(id) AS n FROM test.db.goods WHERE exists(SELECT 1 FROM db.goods h WHERE h.id = goods.id)",
    "SELECT system.bucket(4, id) AS b, system.truncate(2, kind) AS t FROM goods",
]


def test_views_of_everyday_queries_give_the_rows_of_their_queries(ice: Any, catalog: icefield.Catalog) -> None:
    table = catalog.create_table("db.goods", pa.schema([("id", pa.int64()), ("kind", pa.string())]))
    table.append(pa.table({"id": [1, 2, 3, 4], "kind": ["a", "b", "a", None]}))
    ice.sql("USE db")
    for number, query in enumerate(QUERIES):
        ice.sql(f"CREATE VIEW v{number} AS {query}")
        assert sorted(map(str, rows(ice.sql(f"SELECT * FROM v{number}")))) == sorted(map(str, rows(ice.sql(query))))


def test_what_a_view_calls_is_looked_at_in_each_version_of_spark(spark: Any) -> None:
    from icefield_spark.sql.view_functions import FUNCTIONS

    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect() if row[0].replace("_", "a").isalnum()}
    assert known - FUNCTIONS <= {
        *("reflect", "java_method", "try_reflect", "from_protobuf", "to_protobuf", "from_avro", "to_avro"),
        *("schema_of_avro", "from_xml", "schema_of_xml", "input_file_name", "input_file_block_length"),
        *("input_file_block_start", "python_worker_logs", "sql_keywords", "collations"),
    }


def test_the_names_of_nested_fields_are_names_in_every_statement(
    ice: Any, catalog: icefield.Catalog, canary: Any
) -> None:
    run = f"if({RUN} = 'x', named_struct('b', 1), null) :: struct<b"
    for number, name in enumerate(
        [
            f"a:int>) AS junk, ({run}",
            f"a:int>) END AS junk, CASE WHEN true THEN ({run}",
            f"a:int>) IS NULL AND ({run}",
            f"', {RUN}, '",
            f"`, {RUN}, `",
            'it\'s `odd` "so" \\ -- ${env:HOME} \n {x} >',
        ]
    ):
        kind = pa.struct([(name, pa.int32()), ("plain", pa.int32())])
        schema = pa.schema([("id", pa.int64()), ("s", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
        properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        table = catalog.create_table(f"db.t{number}", schema, properties=properties)
        given = [{"id": each, "s": {name: each, "plain": 0}, "l": None, "m": None} for each in (1, 2, 3)]
        table.append(pa.Table.from_pylist(given, schema=schema))
        source = f"MERGE INTO db.t{number} t USING (SELECT 1L AS id UNION SELECT 7L AS id) u ON t.id = u.id"
        ice.sql(f"{source} WHEN MATCHED THEN DELETE")
        ice.sql(f"{source} WHEN NOT MATCHED AND u.id > 1 THEN INSERT (id) VALUES (u.id)")
        ice.sql(f"UPDATE db.t{number} SET s.plain = 5 WHERE id = 2")
        ice.sql(f"{source} WHEN MATCHED THEN UPDATE SET s.plain = 6")
        ice.sql(f"INSERT INTO db.t{number} (id) VALUES (9)")
        ice.sql(f"SHOW CREATE TABLE db.t{number}").collect()
        ice.sql(f"DESCRIBE db.t{number}").collect()
        found = {row["id"]: row["s"] for row in table.refresh().scan().to_arrow().to_pylist()}
        assert found == {2: {name: 2, "plain": 5}, 3: {name: 3, "plain": 0}, 7: {name: None, "plain": 6}, 9: None}
        assert not canary(), name


def test_columns_called_as_variables_keep_their_names(ice: Any, catalog: icefield.Catalog) -> None:
    os.environ.setdefault("HOME", "/")
    name, value = "a${env:HOME}b", "x${env:HOME}'\\y"
    schema = pa.schema([("id", pa.int64()), (name, pa.string()), ("s", pa.struct([(name, pa.int64())]))])
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("d", icefield.types.StringType(), default_value=value)
    given = {"id": 1, name: value, "s": {name: 4}, "d": "q"}
    table.append(pa.Table.from_pylist([given], schema=schema.append(pa.field("d", pa.string()))))
    assert [dict(row.asDict(True)) for row in ice.sql("SELECT * FROM db.t").collect()] == [given]
    ice.sql("CREATE VIEW db.v AS SELECT * FROM db.t")
    assert ice.sql("SELECT * FROM db.v").columns == ["id", name, "s", "d"]
    ice.sql("UPDATE db.t SET id = 2")
    source = "MERGE INTO db.t t USING (SELECT 2L AS id UNION SELECT 7L AS id) u ON t.id = u.id"
    ice.sql(f"{source} WHEN MATCHED THEN UPDATE SET id = 3 WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)")
    found = sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [{**given, "id": 3}, {"id": 7, name: None, "s": None, "d": value}]


def test_what_a_variable_gives_is_what_is_checked_and_run(ice: Any, spark: Any, catalog: icefield.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    table.append(pa.table({"id": [1, 2], "s": ["g1", "g2"]}))
    spark.conf.set("day", "1")
    try:
        assert rows(ice.sql("SELECT id FROM db.t WHERE s = 'g${day}'")) == [(1,)]
        ice.sql("DELETE FROM db.t WHERE s = 'g${day}'")
        assert rows(ice.sql("SELECT id FROM db.t")) == [(2,)]
        ice.sql("CREATE VIEW db.v AS SELECT id FROM db.t WHERE s = 'g${day}2' OR id = 2")
        assert "'g12'" in catalog.load_view("db.v").sql_for("spark")
        spark.conf.set("spark.sql.variable.substitute", "false")
        assert rows(ice.sql("SELECT 'g${day}' AS x FROM db.t")) == [("g${day}",)]
        with pytest.raises(UnsupportedFeature, match="holds"):
            ice.sql("CREATE VIEW db.w AS SELECT 'g${day}' AS x")
    finally:
        spark.conf.unset("spark.sql.variable.substitute")
        spark.conf.unset("day")


@pytest.mark.parametrize("deep", [300, 3000])
def test_a_statement_that_is_nested_too_deeply_is_refused_by_a_typed_error(
    ice: Any, catalog: icefield.Catalog, deep: int
) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    inner = "(" * deep + "1" + ")" * deep
    many = " AND ".join(["id = 1"] * deep)
    nots, cases = "NOT " * deep + "id = 1", "CASE WHEN true THEN " * deep + "1" + " END" * deep
    subqueries = "SELECT * FROM (" * deep + "SELECT 1 AS id" + ")" * deep
    schema = pa.schema([("id", pa.int32())])
    catalog.create_view("db.v", schema, {"spark": f"SELECT {inner} AS id"})
    catalog.create_view("db.w", schema, {"spark": subqueries})
    for statement in (
        f"SELECT {inner} FROM db.t",
        f"SELECT {cases} AS x FROM db.t",
        f"SELECT * FROM db.t WHERE {nots}",
        f"SELECT * FROM db.t WHERE {many}",
        f"SELECT * FROM db.t JOIN ({subqueries}) USING (id)",
        "SELECT * FROM db.v",
        "SELECT * FROM db.w",
        f"CREATE VIEW db.x AS {subqueries}",
        f"DELETE FROM db.t WHERE id = 5 AND {nots}",
        f"DELETE FROM db.t WHERE id = {inner} + 6",
        f"UPDATE db.t SET id = {inner} WHERE id = 9",
        f"MERGE INTO db.t USING (SELECT 9L AS i) s ON id = i AND {many} WHEN MATCHED THEN DELETE",
        f"INSERT INTO db.t SELECT {inner} WHERE false",
        f"ALTER TABLE db.t ADD COLUMN c{deep} int DEFAULT {inner}",
    ):
        try:
            ice.sql(statement)
        except (IcefieldError, PySparkException):
            continue
    assert table.refresh().scan().count() == 1
    with pytest.raises((IcefieldError, PySparkException)):
        ice.table("db.t", where="(" * 3000 + "id = 1" + ")" * 3000)
