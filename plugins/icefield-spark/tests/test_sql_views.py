"""Views that the catalog keeps, in ``ice.sql``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import IcefieldError, InvalidArgument, NoSuchTable, NotSupportedByCatalog
from pyspark.errors import ParseException, PySparkException

ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "kind": ["a", "b", "a", None]})


@pytest.fixture
def goods(catalog: icefield.Catalog) -> icefield.Table:
    table = catalog.create_table("db.goods", ROWS.schema)
    table.append(ROWS)
    return table


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


@pytest.mark.slow
def test_a_view_lives_its_life(ice: Any, catalog: icefield.Catalog, goods: icefield.Table) -> None:
    ice.sql(
        "CREATE VIEW db.few (number COMMENT 'an id', kind) COMMENT 'not all' TBLPROPERTIES ('a' = 'b') AS "
        "SELECT id, kind FROM db.goods WHERE id < 4"
    )
    found = ice.sql("SELECT number, f.kind FROM db.few f WHERE number > 1 ORDER BY number")
    assert rows(found) == [(2, "b"), (3, "a")]
    assert rows(ice.sql("SELECT count(*) FROM db.few")) == [(3,)]
    assert rows(ice.sql("SELECT db.few.number FROM db.few WHERE few.number = 1")) == [(1,)]
    view = catalog.load_view("db.few")
    assert (view.sql_for("spark"), view.default_namespace) == ("SELECT id, kind FROM db.goods WHERE id < 4", ())
    assert [(field.name, field.doc) for field in view.schema().fields] == [("number", "an id"), ("kind", None)]
    assert rows(ice.sql("SHOW VIEWS IN db LIKE 'f*'")) == [("db", "few", False)]
    assert rows(ice.sql("SHOW COLUMNS IN db.few")) == [("number",), ("kind",)]
    assert rows(ice.sql("DESCRIBE db.few")) == [("number", "bigint", "an id"), ("kind", "string", None)]
    assert ("Comment", "not all", "") in rows(ice.sql("DESCRIBE EXTENDED db.few"))
    assert dict(rows(ice.sql("SHOW TBLPROPERTIES db.few"))) == {"a": "b"}
    (statement,) = rows(ice.sql("SHOW CREATE TABLE db.few"))[0]
    ice.sql(statement.replace("test.db.few", "db.again"))
    assert rows(ice.sql("SELECT * FROM db.again EXCEPT SELECT * FROM db.few")) == []
    ice.sql("CREATE OR REPLACE VIEW db.few AS SELECT max(id) AS most FROM db.goods")
    assert rows(ice.sql("SELECT * FROM db.few")) == [(4,)]
    assert len(catalog.load_view("db.few").metadata.versions) == 2
    assert rows(ice.sql("SHOW TBLPROPERTIES db.few")) == []
    ice.sql("ALTER VIEW db.few SET TBLPROPERTIES ('a' = 'c', 'd' = 'e')")
    ice.sql("ALTER VIEW db.few UNSET TBLPROPERTIES ('d')")
    ice.sql("ALTER VIEW db.few UNSET TBLPROPERTIES IF EXISTS ('d')")
    assert dict(rows(ice.sql("SHOW TBLPROPERTIES db.few"))) == {"a": "c"}
    ice.sql("ALTER VIEW db.few AS SELECT min(id) AS least FROM db.goods")
    assert rows(ice.sql("SELECT least FROM db.few")) == [(1,)]
    assert catalog.load_view("db.few").properties["a"] == "c"
    ice.sql("ALTER VIEW db.few RENAME TO db.top")
    assert catalog.list_views("db") == [("db", "again"), ("db", "top")]
    ice.sql("DROP VIEW db.top")
    ice.sql("DROP VIEW IF EXISTS db.top")
    with pytest.raises(PySparkException, match="VIEW_NOT_FOUND"):
        ice.sql("DROP VIEW db.top")
    with pytest.raises(NoSuchTable, match=r"db\.top"):
        ice.sql("ALTER VIEW db.top SET TBLPROPERTIES ('a' = 'b')")


def test_a_name_is_taken_once(ice: Any, catalog: icefield.Catalog, goods: icefield.Table) -> None:
    ice.sql("CREATE VIEW db.v AS SELECT 1 AS one")
    ice.sql("CREATE VIEW IF NOT EXISTS db.v AS SELECT 2 AS two")
    assert rows(ice.sql("SELECT * FROM db.v")) == [(1,)]
    for create, why in {
        "CREATE VIEW db.v AS SELECT 2 AS two": "already exists",
        "CREATE VIEW db.goods AS SELECT 2 AS two": "already exists",
        "CREATE OR REPLACE VIEW db.goods AS SELECT 2 AS two": "does not support CREATE OR REPLACE VIEW",
        "CREATE TABLE db.v (id bigint) USING iceberg": "already exists",
        "DROP TABLE db.v": "Use DROP VIEW",
        "DROP VIEW db.goods": "Use DROP TABLE",
    }.items():
        with pytest.raises(PySparkException, match=why):
            ice.sql(create)
    assert (catalog.list_tables("db"), catalog.list_views("db")) == ([("db", "goods")], [("db", "v")])
    assert rows(ice.sql("SELECT * FROM db.v")) == [(1,)]
    for change in (
        "INSERT INTO db.v VALUES (1)",
        "DELETE FROM db.v WHERE one = 1",
        "UPDATE db.v SET one = 2",
        "MERGE INTO db.v USING db.goods s ON v.one = s.id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(NoSuchTable, match=r"no table db\.v in .* it is a view, which has no rows of its own"):
            ice.sql(change)
    ice.sql("DROP NAMESPACE db CASCADE")
    assert not catalog.namespace_exists("db")


@pytest.mark.slow
def test_names_are_looked_up_where_the_view_was_made(
    ice: Any, catalog: icefield.Catalog, goods: icefield.Table
) -> None:
    catalog.create_namespace("other")
    ice.sql("USE db")
    ice.sql("CREATE VIEW low AS WITH chosen AS (SELECT * FROM goods) SELECT id FROM chosen WHERE id < 3")
    ice.sql("CREATE VIEW other.lower AS SELECT id + 0 AS id FROM test.db.low JOIN goods USING (id) WHERE id < 2")
    ice.sql("USE other")
    assert rows(ice.sql("SELECT * FROM lower")) == [(1,)]
    assert rows(ice.sql("SELECT l.id FROM lower l JOIN db.low m ON l.id = m.id")) == [(1,)]
    ice.sql("CREATE TABLE db.copied AS SELECT * FROM lower")
    ice.sql("DELETE FROM db.goods WHERE id IN (SELECT id FROM test.other.lower)")
    assert rows(ice.sql("SELECT * FROM db.low")) == [(2,)]
    ice.sql("MERGE INTO db.goods t USING db.low s ON t.id = s.id WHEN MATCHED THEN UPDATE SET kind = 'z'")
    assert goods.refresh().scan("kind = 'z'").to_arrow().column("id").to_pylist() == [2]


def test_a_view_shows_what_its_tables_have_now_under_the_columns_that_it_states(
    ice: Any, goods: icefield.Table
) -> None:
    ice.sql("CREATE VIEW db.v AS SELECT *, CAST(1 AS smallint) AS small FROM (SELECT id FROM db.goods)")
    ice.sql("CREATE VIEW db.every AS SELECT * FROM db.goods")
    ice.sql("INSERT INTO db.goods VALUES (5, 'e')")
    assert rows(ice.sql("SELECT max(id), max(small) FROM db.v")) == [(5, 1)]
    assert dict(ice.sql("SELECT * FROM db.v").dtypes) == {"id": "bigint", "small": "int"}
    ice.sql("ALTER TABLE db.goods ADD COLUMN more string")
    assert ice.sql("SELECT * FROM db.every").columns == ["id", "kind"]
    ice.sql("ALTER TABLE db.goods ALTER COLUMN more FIRST")
    assert rows(ice.sql("SELECT * FROM db.every WHERE id = 5")) == [(5, "e")]
    ice.sql("ALTER TABLE db.goods DROP COLUMN more")
    ice.sql("ALTER TABLE db.goods DROP COLUMN kind")
    with pytest.raises(PySparkException, match="column kind cannot be resolved"):
        ice.sql("SELECT * FROM db.every")


@pytest.mark.slow
def test_a_view_keeps_its_columns_whatever_order_its_table_gets(ice: Any) -> None:
    """Every query and list of names, under random changes of the table's columns, beside a model of names."""
    queries = {
        "star": ("", "SELECT * FROM db.t", ["a", "b", "c"]),
        "named": (" (x, y, z)", "SELECT * FROM db.t", ["a", "b", "c"]),
        "swapped": (" (c, a, b)", "SELECT * FROM db.t", ["a", "b", "c"]),
        "more": ("", "SELECT t.*, 7 AS seven FROM db.t t", ["a", "b", "c", "seven"]),
        "twice": (" (p, q, r, s, t, u)", "SELECT l.*, r.* FROM db.t l CROSS JOIN db.t r", ["a", "b", "c"] * 2),
        "over": ("", "SELECT * FROM db.star", ["a", "b", "c"]),
        "Folded": (" (A, B, C)", "SELECT * FROM (SELECT a AS A, b AS B, c AS C FROM db.t)", ["a", "b", "c"]),
    }
    ice.sql("CREATE TABLE db.t (a int, b int, c int)")
    ice.sql("INSERT INTO db.t VALUES (1, 10, 100)")
    values = {"a": 1, "b": 10, "c": 100, "seven": 7}
    for name, (columns, query, _) in queries.items():
        ice.sql(f"CREATE VIEW db.{name}{columns} AS {query}")
    chance, moves = random.Random(7), ["b FIRST", "c FIRST", "a AFTER b", "b AFTER c", "a AFTER c"]
    for step in range(8):
        change = f"ADD COLUMN n{step} int FIRST" if step % 4 == 3 else f"ALTER COLUMN {chance.choice(moves)}"
        ice.sql(f"ALTER TABLE db.t {change}")
        for name, (_, _, made_from) in queries.items():
            assert rows(ice.sql(f"SELECT * FROM db.{name}")) == [tuple(values[each] for each in made_from)], name
    ice.sql("ALTER TABLE db.t RENAME COLUMN b TO d")
    with pytest.raises(PySparkException, match="column b cannot be resolved"):
        ice.sql("SELECT * FROM db.star")


def test_a_view_without_the_names_of_its_query_has_its_columns_by_its_own_names(
    ice: Any, catalog: icefield.Catalog, goods: icefield.Table
) -> None:
    def made(name: str, *columns: str, **more: Any) -> None:
        kinds = {"id": pa.int64(), "kind": pa.string(), "x": pa.int64(), "y": pa.string()}
        schema = pa.schema([(column, kinds[column]) for column in columns])
        catalog.create_view(f"db.{name}", schema, {"spark": "SELECT * FROM db.goods"}, **more)

    made("same", "id", "kind")
    made("longer", "id", "kind", properties={"spark.query-column-names": "id,kind,gone"})
    made("renamed", "x", "y")
    made("stale", "id", "kind", properties={"spark.query-column-names": "old,names"})
    for change in ("SELECT 1", "ALTER TABLE db.goods ALTER COLUMN kind FIRST"):
        ice.sql(change)
        for name in ("same", "longer"):
            assert rows(ice.sql(f"SELECT * FROM db.{name} WHERE id = 1")) == [(1, "a")]
        for name, column in {"renamed": "x", "stale": "old"}.items():
            with pytest.raises(PySparkException, match=f"column {column} cannot be resolved"):
                ice.sql(f"SELECT * FROM db.{name}")


def test_a_view_that_is_made_from_itself_is_refused(ice: Any, catalog: icefield.Catalog, goods: icefield.Table) -> None:
    ice.sql("CREATE VIEW db.a AS SELECT id FROM db.goods")
    ice.sql("CREATE VIEW db.b AS SELECT id FROM db.a")
    for query in ("SELECT id FROM db.a", "SELECT id FROM db.b", "SELECT 1 AS id WHERE EXISTS (SELECT 1 FROM db.b)"):
        with pytest.raises((InvalidArgument, PySparkException), match=r"is made from itself|RECURSIVE_VIEW"):
            ice.sql(f"CREATE OR REPLACE VIEW db.a AS {query}")
    view = catalog.load_view("db.a")
    assert view.sql_for("spark") == "SELECT id FROM db.goods"
    view.replace(view.schema(), {"spark": "SELECT id FROM db.b"})
    with pytest.raises(InvalidArgument, match="is made from itself"):
        ice.sql("SELECT * FROM db.b")


@pytest.mark.slow
def test_views_that_double_with_each_other_are_read_up_to_a_bound(ice: Any, catalog: icefield.Catalog) -> None:
    schema = pa.schema([("id", pa.int64())])
    catalog.create_view("db.v0", schema, {"spark": "SELECT 1L AS id"})
    for number in range(1, 30):
        query = f"SELECT id FROM db.v{number - 1} UNION ALL SELECT id FROM db.v{number - 1}"
        catalog.create_view(f"db.v{number}", schema, {"spark": query})
    assert rows(ice.sql("SELECT count(*) FROM db.v3")) == [(8,)]
    with pytest.raises(InvalidArgument, match="at most 200 others"):
        ice.sql("SELECT * FROM db.v29")


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE db.goods",
        "INSERT INTO db.goods VALUES (9, 'x')",
        "SET spark.sql.ansi.enabled = false",
        "SELECT 1 AS id) UNION ALL (SELECT 2",
        "SELECT 1 AS id; DROP TABLE db.goods",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.home') AS id",
        "SELECT TRANSFORM (id) USING 'cat' AS (id string) FROM db.goods",
        "SELECT id FROM secrets",
        "SELECT id FROM db.missing",
        "SELECT * FROM json.`/etc/passwd`",
        "SELECT {id} FROM db.goods",
    ],
)
def test_what_somebody_wrote_as_a_view_is_a_query_of_the_catalogs_tables_or_refused(
    ice: Any, spark: Any, catalog: icefield.Catalog, goods: icefield.Table, query: str
) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW secrets AS SELECT 1 AS id")
    catalog.create_view("db.evil", pa.schema([("id", pa.string())]), {"spark": query})
    with pytest.raises((IcefieldError, PySparkException)):
        ice.sql("SELECT * FROM db.evil")
    assert goods.refresh().scan().count() == 4
    with pytest.raises((IcefieldError, PySparkException)):
        ice.sql(f"CREATE VIEW db.more AS {query}")
    assert catalog.list_views("db") == [("db", "evil")]


def test_what_a_view_cannot_be_is_said(ice: Any, catalog: icefield.Catalog, goods: icefield.Table) -> None:
    catalog.create_view("db.trino", pa.schema([("id", pa.int64())]), {"trino": "SELECT 1"})
    with pytest.raises(NotSupportedByCatalog, match="it has: trino"):
        ice.sql("SELECT * FROM db.trino")
    ice.sql("CREATE VIEW db.v AS SELECT id FROM db.goods")
    with pytest.raises(NoSuchTable, match="is a view"):
        ice.sql("SELECT * FROM db.v VERSION AS OF 1")
    with pytest.raises(PySparkException, match="not enough data columns"):
        ice.sql("CREATE VIEW db.w (a, b) AS SELECT id FROM db.goods")
    with pytest.raises(ParseException, match="both IF NOT EXISTS and REPLACE"):
        ice.sql("CREATE OR REPLACE VIEW IF NOT EXISTS db.v AS SELECT 1 AS id")


def test_a_catalog_that_keeps_no_views_says_so(spark: Any, tmp_path: Path) -> None:
    from icefield_spark import attach

    with icefield.load_catalog("plain", type="directory", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("db")
        session = attach(spark, catalog)
        with pytest.raises(NotSupportedByCatalog):
            session.sql("CREATE VIEW db.v AS SELECT 1 AS one")


def test_tables_of_spark_are_in_views_by_their_whole_names(ice: Any, spark: Any, catalog: icefield.Catalog) -> None:
    spark.sql("CREATE OR REPLACE VIEW spark_catalog.default.inner_numbers AS SELECT 7 AS id")
    try:
        ice.sql("CREATE VIEW db.v AS SELECT id FROM spark_catalog.default.inner_numbers")
        assert rows(ice.sql("SELECT * FROM db.v")) == [(7,)]
        query = {"spark": "SELECT a.id FROM inner_numbers a, default.inner_numbers b, test.db.v c"}
        version = {"default_namespace": ["default"], "default_catalog": "spark_catalog"}
        catalog.create_view("db.w", pa.schema([("id", pa.int32())]), query, **version)
        assert rows(ice.sql("SELECT * FROM db.w")) == [(7,)]
    finally:
        spark.sql("DROP VIEW spark_catalog.default.inner_numbers")
