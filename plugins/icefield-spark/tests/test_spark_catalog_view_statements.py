"""Statements on views of an attached catalog in ``spark.sql``, in every version of Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield_spark import attach
from pyspark import __version__ as version

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def own(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """A session that was not used before the test's catalog was attached as ``prod``, with a table of three rows."""
    attach(spark, catalog, name="prod")
    session = spark.newSession()
    session.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING)")
    session.sql("INSERT INTO prod.db.t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
    yield session
    session.sql("USE spark_catalog.default")


def rows(spark: Any, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(statement).collect()]


def test_views_are_created_read_and_replaced(own: Any, catalog: icefield.Catalog) -> None:
    assert own.sql("CREATE VIEW prod.db.v AS SELECT s, count(*) AS n FROM prod.db.t GROUP BY s").collect() == []
    assert rows(own, "SELECT n FROM prod.db.v WHERE s = 'a'") == [(2,)]
    stored = catalog.load_view("db.v")
    assert stored.sql_for("spark") == "SELECT s, count(*) AS n FROM prod.db.t GROUP BY s"
    assert stored.properties["spark.query-column-names"] == "s,n"
    assert stored.properties["create_engine_version"] == f"Spark {own.version}"
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        own.sql("CREATE VIEW prod.db.v AS SELECT 1 AS one")
    own.sql("CREATE VIEW IF NOT EXISTS prod.db.v AS SELECT 1 AS one")
    own.sql("CREATE OR REPLACE VIEW prod.db.v (a COMMENT 'its id', b) COMMENT 'c' TBLPROPERTIES ('k' = 'v') "
            "AS SELECT id, s FROM prod.db.t")  # fmt: skip
    assert rows(own, "SELECT v.a, b FROM prod.db.v ORDER BY a") == [(1, "a"), (2, "b"), (3, "a")]
    described = rows(own, "DESCRIBE prod.db.v")
    assert [(name, kind, comment or "") for name, kind, comment in described] == [
        ("a", "bigint", "its id"), ("b", "string", ""),
    ]  # fmt: skip
    assert catalog.load_view("db.v").properties.items() >= {"comment": "c", "k": "v"}.items()
    with pytest.raises(Exception, match="columns"):
        own.sql("CREATE VIEW prod.db.short (a) AS SELECT id, s FROM prod.db.t")


def test_views_are_changed_listed_shown_and_dropped(own: Any, catalog: icefield.Catalog) -> None:
    own.sql("CREATE VIEW prod.db.v TBLPROPERTIES ('k' = 'v') AS SELECT id FROM prod.db.t")
    own.sql("CREATE VIEW prod.db.other AS SELECT id FROM prod.db.t")
    assert rows(own, "SHOW VIEWS IN prod.db") == [("db", "other", False), ("db", "v", False)]
    assert rows(own, "SHOW VIEWS IN prod.db LIKE 'V*'") == [("db", "v", False)]
    own.sql("ALTER VIEW prod.db.v SET TBLPROPERTIES ('more' = '1')")
    own.sql("ALTER VIEW prod.db.v UNSET TBLPROPERTIES ('k')")
    assert ("more", "1") in rows(own, "SHOW TBLPROPERTIES prod.db.v")
    assert rows(own, "SHOW TBLPROPERTIES prod.db.v ('more')") == [("more", "1")]
    own.sql("ALTER VIEW prod.db.v AS SELECT s, id FROM prod.db.t WHERE id > 1")
    assert catalog.load_view("db.v").properties["more"] == "1"
    assert "id > 1" in rows(own, "SHOW CREATE TABLE prod.db.v")[0][0]
    own.sql("ALTER VIEW prod.db.v RENAME TO prod.db.w")
    assert rows(own, "SELECT id FROM prod.db.w ORDER BY id") == [(2,), (3,)]
    own.sql("DROP VIEW prod.db.w")
    own.sql("DROP VIEW IF EXISTS prod.db.w")
    for statement in ("DROP VIEW prod.db.w", "ALTER VIEW prod.db.w SET TBLPROPERTIES ('a' = 'b')"):
        with pytest.raises(Exception, match=r"no view db\.w in|VIEW_NOT_FOUND"):
            own.sql(statement)
    own.sql("DROP VIEW prod.db.other")
    assert catalog.list_views("db") == []


def test_names_are_found_as_the_session_finds_them(own: Any, catalog: icefield.Catalog) -> None:
    own.sql("USE prod.db")
    own.sql("CREATE VIEW here AS WITH a AS (SELECT id + 1 AS n FROM t) SELECT * FROM a")
    assert rows(own, "SHOW VIEWS") == [("db", "here", False)]
    own.sql("USE spark_catalog.default")
    assert rows(own, "SELECT max(n) FROM prod.db.here") == [(4,)]
    assert catalog.load_view("db.here").default_namespace == ("db",)


def test_temporary_views_and_views_of_spark_stay_sparks(own: Any, catalog: icefield.Catalog) -> None:
    own.sql("USE prod.db")
    own.sql("CREATE TEMPORARY VIEW passing AS SELECT id FROM t")
    own.sql("ALTER VIEW passing AS SELECT id FROM t WHERE id = 1")
    assert rows(own, "SELECT * FROM passing") == [(1,)]
    assert [row[:2] for row in rows(own, "DESCRIBE passing")] == [("id", "bigint")]
    if version < "4.3":  # which lists the views of the catalog alone
        assert rows(own, "SHOW VIEWS") == [("", "passing", True)]
    own.sql("DROP VIEW passing")
    own.sql("CREATE TEMPORARY VIEW t AS SELECT 'hides the table' AS s")
    with pytest.raises(Exception, match=r"temporary view t|INVALID_TEMP_OBJ_REFERENCE"):
        own.sql("CREATE VIEW stays AS SELECT * FROM t")
    own.sql("DROP VIEW t")
    own.sql("CREATE OR REPLACE VIEW spark_catalog.default.sparks AS SELECT 1 AS one")
    assert ("one", "int") in [row[:2] for row in rows(own, "DESCRIBE spark_catalog.default.sparks")]
    own.sql("DROP VIEW spark_catalog.default.sparks")
    assert catalog.list_views("db") == []


def test_tables_are_described_by_spark(own: Any) -> None:
    assert [row[:2] for row in rows(own, "DESCRIBE prod.db.t")] == [("id", "bigint"), ("s", "string")]
    assert rows(own, "SHOW CREATE TABLE prod.db.t")[0][0].startswith("CREATE TABLE")
    assert "format" in dict(rows(own, "SHOW TBLPROPERTIES prod.db.t"))
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|cannot be found"):
        own.sql("DESCRIBE prod.db.nosuch")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT reflect('java.lang.System', 'setProperty', 'icefield.canary', 'yes') AS x",
        "SELECT * FROM text.`/etc/hostname`",
        "SELECT TRANSFORM (id) USING 'cat' AS (x) FROM prod.db.t",
        "SELECT * FROM prod.db.nosuch",
        "SELECT nosuch FROM prod.db.t",
    ],
)
def test_a_view_that_does_more_than_compute_is_not_created(own: Any, catalog: icefield.Catalog, query: str) -> None:
    with pytest.raises(Exception, match=r"view db\.v|NOT_FOUND|UNRESOLVED_COLUMN|nosuch"):
        own.sql(f"CREATE VIEW prod.db.v AS {query}")
    assert catalog.list_views("db") == []


JOB = """
import sys
from icefield_spark import ensure_java, install
from pyspark.sql import SparkSession

ensure_java()
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
settings = {"": "icefield", ".type": "hadoop", ".warehouse": sys.argv[1]}
for name, value in settings.items():
    builder = builder.config(f"spark.sql.catalog.prod{name}", value)
spark = builder.getOrCreate()
install(spark)
spark.sql("CREATE NAMESPACE prod.db")
spark.sql("CREATE TABLE prod.db.t (id BIGINT)")
spark.sql("ALTER TABLE prod.db.t WRITE ORDERED BY id")
spark.sql("CALL prod.system.ancestors_of('db.t')").collect()
spark.stop()
"""


def test_a_job_that_installs_first_has_the_statements_in_its_own_session(tmp_path: Path) -> None:
    command = [sys.executable, "-c", JOB, f"file://{tmp_path}"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_procedures_are_called(own: Any, catalog: icefield.Catalog) -> None:
    first = catalog.load_table("db.t").current_snapshot()
    assert first is not None
    own.sql("INSERT INTO prod.db.t VALUES (4, 'd')")
    second = catalog.load_table("db.t").current_snapshot()
    assert second is not None
    call = f"CALL prod.system.rollback_to_snapshot('db.t', {first.snapshot_id})"
    found = own.sql(call)
    assert found.columns == ["previous_snapshot_id", "current_snapshot_id"]
    assert found.collect() == [(second.snapshot_id, first.snapshot_id)]
    assert found.collect() == [(second.snapshot_id, first.snapshot_id)]
    own.sql("USE prod.db")
    assert rows(own, "CALL system.ancestors_of(table => 't')")[0][0] == first.snapshot_id
    own.sql("CALL prod.system.create_changelog_view(table => 'db.t', changelog_view => 'seen')")
    assert own.table("seen").count() == 3
    with pytest.raises(Exception, match=r"there is no procedure 'system\.nope'"):
        own.sql("CALL prod.system.nope('x')")
