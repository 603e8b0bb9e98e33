"""Views of an attached catalog in plain Spark SQL, and those that try to do more than compute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import IcefieldError
from icefield_spark import attach
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REFUSED = (IcefieldError, PySparkException)
COLUMN = pa.schema([("x", pa.string())])


@pytest.fixture
def prod(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``, with a table of three rows."""
    attach(spark, catalog, name="prod")
    spark.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING)")
    spark.sql("INSERT INTO prod.db.t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
    yield spark
    spark.sql("USE spark_catalog.default")


def rows(spark: Any, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(statement).collect()]


def test_views_are_created_read_changed_listed_and_dropped(prod: Any, catalog: icefield.Catalog) -> None:
    prod.sql("CREATE VIEW prod.db.v AS SELECT s, count(*) AS n FROM prod.db.t GROUP BY s")
    assert rows(prod, "SELECT n FROM prod.db.v WHERE s = 'a'") == [(2,)]
    stored = catalog.load_view("db.v")
    assert stored.sql_for("spark") == "SELECT s, count(*) AS n FROM prod.db.t GROUP BY s"
    assert stored.properties["spark.query-column-names"] == "s,n"
    with pytest.raises(PySparkException, match="ALREADY_EXISTS"):
        prod.sql("CREATE VIEW prod.db.v AS SELECT 1 AS one")
    prod.sql("CREATE VIEW IF NOT EXISTS prod.db.v AS SELECT 1 AS one")
    prod.sql("CREATE OR REPLACE VIEW prod.db.v (a COMMENT 'its id', b) COMMENT 'c' TBLPROPERTIES ('k' = 'v') "
             "AS SELECT id, s FROM prod.db.t")  # fmt: skip
    assert rows(prod, "SELECT v.a, b FROM prod.db.v ORDER BY a") == [(1, "a"), (2, "b"), (3, "a")]
    assert rows(prod, "DESCRIBE prod.db.v") == [("a", "bigint", "its id"), ("b", "string", None)]
    assert rows(prod, "SHOW VIEWS IN prod.db") == [("db", "v", False)]
    prod.sql("ALTER VIEW prod.db.v SET TBLPROPERTIES ('more' = '1')")
    prod.sql("ALTER VIEW prod.db.v UNSET TBLPROPERTIES ('k')")
    assert rows(prod, "SHOW TBLPROPERTIES prod.db.v") == [("more", "1")]
    prod.sql("ALTER VIEW prod.db.v RENAME TO prod.db.w")
    assert prod.table("prod.db.w").count() == 3
    with pytest.raises(PySparkException):
        prod.sql("INSERT INTO prod.db.w VALUES (4, 'c')")
    prod.sql("DROP VIEW prod.db.w")
    prod.sql("DROP VIEW IF EXISTS prod.db.w")
    assert catalog.list_views("db") == []
    prod.sql("USE prod.db")
    prod.sql("CREATE VIEW here AS SELECT id + 1 AS n FROM t")
    prod.sql("USE spark_catalog.default")
    assert rows(prod, "SELECT max(n) FROM prod.db.here") == [(4,)]


def test_views_of_other_engines_look_names_up_where_they_say(prod: Any, catalog: icefield.Catalog) -> None:
    schema = pa.schema([("id", pa.int64())])
    catalog.create_view("db.plain", schema, {"spark": "SELECT id FROM t WHERE id > 1"}, default_namespace=("db",))
    catalog.create_view("db.outer", schema, {"spark": "SELECT max(id) AS id FROM db.plain"})
    prod.createDataFrame([(9,)], "id long").createOrReplaceTempView("t")
    try:
        assert sorted(rows(prod, "SELECT * FROM prod.db.plain")) == [(2,), (3,)]
        assert rows(prod, "SELECT id FROM prod.db.outer") == [(3,)]
    finally:
        prod.catalog.dropTempView("t")
    catalog.create_view("db.trino", schema, {"trino": "SELECT id FROM t"})
    with pytest.raises(REFUSED, match="no query in the dialect 'spark'"):
        prod.sql("SELECT * FROM prod.db.trino")
    catalog.create_view("db.self", schema, {"spark": "SELECT id FROM db.self"})
    with pytest.raises(PySparkException, match=r"view db\.self is made from itself"):
        prod.sql("SELECT * FROM prod.db.self")
    for number in range(20):
        below = "t" if number == 0 else f"chain{number - 1}"
        catalog.create_view(f"db.chain{number}", schema, {"spark": f"SELECT id FROM db.{below}"})
    assert prod.table("prod.db.chain19").count() == 3


def test_the_columns_of_a_view_keep_their_values_when_those_of_its_table_move(prod: Any) -> None:
    prod.sql("CREATE TABLE prod.db.m (a INT, b INT)")
    prod.sql("INSERT INTO prod.db.m VALUES (1, 100)")
    prod.sql("CREATE VIEW prod.db.all AS SELECT * FROM prod.db.m")
    prod.sql("CREATE VIEW prod.db.named (x, y) AS SELECT * FROM prod.db.m")
    prod.sql("ALTER TABLE prod.db.m ALTER COLUMN b FIRST")
    prod.sql("ALTER TABLE prod.db.m ADD COLUMN z INT FIRST")
    assert rows(prod, "SELECT a, b FROM prod.db.all") == [(1, 100)]
    assert rows(prod, "SELECT x, y FROM prod.db.named") == [(1, 100)]


def test_a_view_is_read_with_the_settings_of_the_session_and_prunes_its_table(prod: Any) -> None:
    prod.sql("CREATE TABLE prod.db.days (id BIGINT, day DATE) PARTITIONED BY (day)")
    prod.sql("INSERT INTO prod.db.days SELECT id, date_add(DATE'2024-01-01', cast(id AS INT)) FROM range(0, 9, 1, 1)")
    prod.sql("CREATE VIEW prod.db.late AS SELECT *, cast(day AS TIMESTAMP) AS at FROM prod.db.days")
    frame = prod.sql("SELECT id FROM prod.db.late WHERE day = DATE'2024-01-03'")
    assert frame.collect() == [(2,)]
    assert "files=1 " in frame._jdf.queryExecution().executedPlan().toString()
    zone = prod.conf.get("spark.sql.session.timeZone")
    try:
        for each, hour in (("UTC", 0), ("Asia/Tokyo", 15)):
            prod.conf.set("spark.sql.session.timeZone", each)
            found = prod.sql("SELECT (unix_seconds(at) % 86400) DIV 3600 FROM prod.db.late WHERE id = 1")
            assert found.first()[0] == hour
    finally:
        prod.conf.set("spark.sql.session.timeZone", zone)


CALL = "('java.lang.System', 'setProperty', 'icefield.canary', 'yes')"
PROGRAMS = [
    *(f"{name}{CALL}" for name in ("reflect", "`reflect`", "ReFlEcT", "java_method", "try_reflect")),
    f"system.builtin.reflect{CALL}",
    f"builtin.java_method{CALL}",
    f"IDENTIFIER('re' || 'flect'){CALL}",
    "session.secret",
    "input_file_name()",
    "own_function('a')",
    "spark_catalog.default.own_function('a')",
    "from_xml('<a/>', 'a string', map('rowValidationXSDPath', '{folder}/secret.txt')).a",
    "(SELECT max(value) FROM text.`{folder}/secret.txt`)",
    "(SELECT max(x) FROM secrets)",
    "(SELECT max(x) FROM global_temp.shared_secrets)",
    "'${system:user.home}'",
]
PLACES = [
    "SELECT {run} AS x",
    "SELECT x FROM VALUES ('a') AS v(x) WHERE {run} > ''",
    "SELECT max(x) AS x FROM VALUES ('a') AS v(x) GROUP BY x HAVING {run} > ''",
    "SELECT x FROM VALUES ('a') AS v(x) WHERE EXISTS (SELECT {run})",
    "WITH a AS (SELECT {run} AS x) SELECT * FROM a",
    "SELECT 'a' AS x UNION ALL SELECT {run}",
    "SELECT transform(array('a'), e -> concat(e, {run}))[0] AS x",
    "SELECT x FROM VALUES ('a') AS v(x) JOIN VALUES ('b') AS w(y) ON x < {run}",
    "SELECT x FROM VALUES ('a') AS v(x), LATERAL (SELECT {run})",
    "SELECT x FROM VALUES ('a') AS v(x) LATERAL VIEW explode(array({run})) e AS y",
    "SELECT max(x) OVER (ORDER BY {run}) AS x FROM VALUES ('a') AS v(x)",
    "SELECT x FROM VALUES ('a') AS v(x) ORDER BY {run}",
]
ODD = [
    "SELECT TRANSFORM('a') USING 'cat' AS (x STRING)",
    "FROM VALUES ('a') AS v(x) MAP x USING 'cat' AS (x STRING)",
    "SELECT value AS x FROM text.`{folder}/secret.txt`",
    "SELECT value AS x FROM `text`.`{folder}/secret.txt`",
    "SELECT 'a' || -- ${system:line.separator} reflect" + CALL + " ||\n '' AS x",
    "SELECT x FROM (SELECT 'a' AS x -- ${system:line.separator} UNION ALL SELECT 'b'\n)",
    "SELECT x FROM spark_catalog.default.t WITH (path = '{folder}')",
    "SELECT x FROM secrets",
    "SELECT * FROM STREAM prod.db.t",
    "SET spark.sql.ansi.enabled = false",
    "INSERT OVERWRITE DIRECTORY '{folder}/out' USING json SELECT 'a' AS x",
    "INSERT INTO prod.db.t VALUES (7, 'x')",
    "DROP TABLE prod.db.t",
    "BEGIN SELECT 'a'; END",
    "EXECUTE IMMEDIATE 'SELECT 1'",
]


def test_two_hundred_views_that_run_programs_or_read_what_is_not_the_catalogs_are_refused(
    prod: Any, catalog: icefield.Catalog, tmp_path: Path, canary: Any
) -> None:
    (tmp_path / "secret.txt").write_text("PLANTED\n")
    hidden = prod.createDataFrame([("PLANTED",)], "x string")
    hidden.createOrReplaceTempView("secrets")
    hidden.createOrReplaceGlobalTempView("shared_secrets")
    prod.udf.register("own_function", lambda each: "PLANTED")
    prod.sql("DECLARE OR REPLACE VARIABLE secret STRING DEFAULT 'PLANTED'")
    queries = [place.replace("{run}", run) for place, run in product(PLACES, PROGRAMS)] + ODD
    assert len(queries) >= 200
    ran = []
    try:
        for number, query in enumerate(queries):
            query = query.replace("{folder}", str(tmp_path))
            catalog.create_view(f"db.v{number}", COLUMN, {"spark": query}, default_namespace=("db",))
            with contextlib.suppress(REFUSED):
                ran.append((query, rows(prod, f"SELECT * FROM prod.db.v{number}")))
            assert not canary(), query
    finally:
        prod.sql("DROP TEMPORARY VARIABLE secret")
        prod.catalog.dropTempView("secrets")
        prod.catalog.dropGlobalTempView("shared_secrets")
    assert not ran
    assert not (tmp_path / "out").exists()
    assert prod.table("prod.db.t").count() == 3


def test_properties_of_a_view_do_not_give_it_what_views_of_sparks_may_have(
    prod: Any, catalog: icefield.Catalog, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("PLANTED\n")
    prod.createDataFrame([("PLANTED",)], "x string").createOrReplaceTempView("secrets")
    stated = {
        "view.referredTempViewNames": '[["secrets"]]',
        "view.referredTempFunctionsNames": '["own_function"]',
        "view.sqlConfig.spark.sql.runSQLOnFiles": "true",
        "view.sqlConfig.spark.sql.variable.substitute": "true",
        "table_type": "METRIC_VIEW",
    }
    try:
        for number, query in enumerate(
            ("SELECT x FROM secrets", f"SELECT value AS x FROM text.`{tmp_path}/secret.txt`")
        ):
            catalog.create_view(f"db.v{number}", COLUMN, {"spark": query}, properties=stated)
            with pytest.raises(REFUSED):
                rows(prod, f"SELECT * FROM prod.db.v{number}")
        catalog.create_view("db.fine", COLUMN, {"spark": "SELECT 'a' AS x"}, properties=stated)
        assert rows(prod, "SELECT * FROM prod.db.fine") == [("a",)]
    finally:
        prod.catalog.dropTempView("secrets")
    prod.conf.set("spark.sql.legacy.useCurrentConfigsForView", "true")
    try:
        with pytest.raises(REFUSED, match="useCurrentConfigsForView is true"):
            prod.sql("SELECT * FROM prod.db.fine")
    finally:
        prod.conf.unset("spark.sql.legacy.useCurrentConfigsForView")


def test_a_view_that_could_not_be_read_is_not_created(prod: Any, catalog: icefield.Catalog) -> None:
    for query in (f"SELECT reflect{CALL} AS x", "SELECT '$ {{a}}'".replace("$ {{a}}", "$" + "{a}") + " AS x"):
        prod.conf.set("spark.sql.variable.substitute", "false")
        try:
            with pytest.raises(REFUSED, match=r"reflect|holds"):
                prod.sql(f"CREATE VIEW prod.db.v AS {query}")
        finally:
            prod.conf.unset("spark.sql.variable.substitute")
        assert not catalog.view_exists("db.v")


def test_statements_of_icebergs_own_name_a_table_as_the_session_does(prod: Any, catalog: icefield.Catalog) -> None:
    ice = attach(prod, catalog, name="prod")
    for statement in (
        "ALTER TABLE prod.db.t ADD PARTITION FIELD bucket(4, id)",
        "ALTER TABLE prod.db.t REPLACE PARTITION FIELD id_bucket_4 WITH truncate(2, s)",
        "ALTER TABLE prod.db.t DROP PARTITION FIELD truncate(2, s)",
        "ALTER TABLE prod.db.t WRITE ORDERED BY id DESC",
        "ALTER TABLE prod.db.t CREATE BRANCH b",
        "ALTER TABLE prod.db.t CREATE TAG g",
        "ALTER TABLE prod.db.t DROP TAG g",
        "CREATE VIEW prod.db.made AS SELECT id FROM prod.db.t",
    ):
        ice.sql(statement)
    assert set(catalog.load_table("db.t").refs()) == {"main", "b"}
    assert [str(field.direction) for field in catalog.load_table("db.t").sort_order().fields] == ["desc"]
    assert prod.table("prod.db.made").count() == 3
    called = ice.sql("CALL prod.system.ancestors_of(table => 'prod.db.t')").collect()
    assert len(called) == 1
    assert ice.sql("SELECT count(*) FROM prod.db.t").first()[0] == 3
