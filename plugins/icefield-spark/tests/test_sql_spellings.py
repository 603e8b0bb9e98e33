"""``ice.sql`` in other words for what it does, and statements that it refuses with a reason."""

from __future__ import annotations

from typing import Any

import icefield
import pytest
from icefield.errors import UnsupportedFeature
from pyspark.errors import ParseException, PySparkException

pytestmark = pytest.mark.spark


@pytest.fixture
def table(ice: Any, catalog: icefield.Catalog) -> icefield.Table:
    ice.sql("CREATE TABLE db.t (id bigint, n int, home struct<city: string, zip: int>)")
    return catalog.load_table("db.t")


def names_of(table: icefield.Table) -> list[str]:
    return [field.name for field in table.refresh().schema().fields]


def docs(table: icefield.Table) -> dict[str, Any]:
    schema = table.refresh().schema()
    return {schema.find_column_name(each): schema.find_field(each).doc for each in schema.field_ids}


def is_cached(ice: Any, name: str) -> bool:
    return "InMemoryTableScan" in ice.sql(f"EXPLAIN SELECT * FROM {name}").first()[0]


def test_columns_of_nested_types_are_added_with_and_without_parentheses(ice: Any, table: icefield.Table) -> None:
    ice.sql("ALTER TABLE db.t ADD COLUMN a struct<x: int, y: array<struct<k: int, v: string>>>")
    ice.sql("ALTER TABLE db.t ADD COLUMNS (b map<string, struct<p: int, q: int>> COMMENT 'p < q', c int)")
    assert names_of(table) == ["id", "n", "home", "a", "b", "c"]
    assert docs(table)["b"] == "p < q"


def test_a_column_is_changed_in_the_words_of_hive(ice: Any, table: icefield.Table) -> None:
    ice.sql("ALTER TABLE db.t CHANGE COLUMN n n bigint COMMENT 'a count' FIRST")
    field = table.refresh().schema().fields[0]
    assert (field.name, str(field.field_type), field.doc) == ("n", "long", "a count")
    ice.sql("ALTER TABLE db.t CHANGE n AFTER id")
    assert names_of(table) == ["id", "n", "home"]
    with pytest.raises(ParseException, match="Renaming column"):
        ice.sql("ALTER TABLE db.t CHANGE COLUMN n m bigint")


def test_several_columns_are_altered_in_one_commit_or_none(ice: Any, table: icefield.Table) -> None:
    with pytest.raises(PySparkException, match="nothing"):
        ice.sql("ALTER TABLE db.t ALTER COLUMN id COMMENT 'key', nothing COMMENT 'gone'")
    assert docs(table)["id"] is None
    before = table.metadata_location
    ice.sql("ALTER TABLE db.t ALTER COLUMN id COMMENT 'key', home.zip TYPE bigint, n FIRST")
    assert (docs(table)["id"], str(table.schema().find_type("home.zip"))) == ("key", "long")
    assert names_of(table) == ["n", "id", "home"]
    assert table.metadata.metadata_log[-1].metadata_file == before


def test_columns_are_replaced_by_new_ones_whatever_they_are_called(ice: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (id) VALUES (1)")
    ice.sql("ALTER TABLE db.t REPLACE COLUMNS (id bigint, day date)")
    assert [(field.field_id, field.name) for field in table.refresh().schema().fields] == [(6, "id"), (7, "day")]
    assert ice.sql("SELECT * FROM db.t").collect() == [(None, None)]


def test_comments_are_made_on_tables_columns_and_namespaces(
    ice: Any, table: icefield.Table, catalog: icefield.Catalog
) -> None:
    ice.sql("COMMENT ON TABLE test.db.t IS 'what happened'")
    ice.sql("COMMENT ON COLUMN db.t.n IS 'a count'")
    ice.sql("ALTER TABLE db.t ALTER COLUMN home.zip COMMENT 'with blanks'")
    ice.sql("COMMENT ON NAMESPACE db IS 'trials'")
    assert table.refresh().properties["comment"] == "what happened"
    assert (docs(table)["n"], docs(table)["home.zip"]) == ("a count", "with blanks")
    assert catalog.load_namespace_properties("db")["comment"] == "trials"
    assert ice.sql("DESCRIBE db.t id").collect() == [("col_name", "id"), ("data_type", "bigint"), ("comment", "NULL")]
    ice.sql("COMMENT ON TABLE db.t IS NULL")
    ice.sql("COMMENT ON NAMESPACE db IS NULL")
    assert "comment" not in table.refresh().properties
    assert "comment" not in catalog.load_namespace_properties("db")


@pytest.mark.slow
def test_default_stands_for_the_default_of_a_column(ice: Any) -> None:
    ice.sql("CREATE TABLE db.d (id bigint, v int DEFAULT 7, w string) TBLPROPERTIES ('format-version' = '3')")
    ice.sql("INSERT INTO db.d VALUES (1, DEFAULT, 'a'), (2, 5, DEFAULT)")
    ice.sql("INSERT INTO db.d (w, v) VALUES ('DEFAULT', DEFAULT)")
    ice.sql("UPDATE db.d SET v = DEFAULT, w = 'b' WHERE id = 2")
    ice.sql(
        "MERGE INTO db.d t USING (SELECT 3L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (s.id, DEFAULT, DEFAULT)"
    )
    found = ice.sql("SELECT * FROM db.d ORDER BY id").collect()
    assert found == [(None, 7, "DEFAULT"), (1, 7, "a"), (2, 7, "b"), (3, 7, None)]


def test_a_table_takes_its_format_and_its_partitions_as_spark_writes_them(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE TABLE db.parts (id bigint) USING orc PARTITIONED BY (kind string COMMENT 'of event', day date)")
    made = catalog.load_table("db.parts")
    assert made.properties["write.format.default"] == "orc"
    assert names_of(made) == ["id", "kind", "day"]
    assert [str(field.transform) for field in made.spec().fields] == ["identity", "identity"]
    with pytest.raises(UnsupportedFeature, match=r"spark_catalog\.db\.rows"):
        ice.sql("CREATE TABLE db.rows (id bigint) USING csv")


@pytest.mark.slow
def test_tables_of_sparks_own_are_made_of_those_of_the_catalog(ice: Any, spark: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (id, n) VALUES (1, 2), (3, 4)")
    try:
        ice.sql("CREATE TABLE spark_catalog.default.copied USING parquet AS SELECT id, n FROM db.t")
        ice.sql("INSERT INTO spark_catalog.default.copied SELECT id, n FROM db.t WHERE id = 3")
        assert spark.sql("SELECT sum(n) FROM default.copied").first()[0] == 10
    finally:
        spark.sql("DROP TABLE IF EXISTS spark_catalog.default.copied")


@pytest.mark.slow
def test_the_rows_of_a_query_are_cached_under_a_name_of_sparks(ice: Any, spark: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (id) VALUES (1), (3)")
    try:
        ice.sql("CACHE LAZY TABLE kept AS SELECT id FROM db.t WHERE id > 1")
        assert is_cached(ice, "kept")
        assert ice.sql("SELECT * FROM kept").collect() == [(3,)]
        ice.sql("UNCACHE TABLE kept")
        assert not is_cached(ice, "kept")
    finally:
        spark.catalog.dropTempView("kept")


@pytest.mark.slow
def test_a_cached_table_shows_the_rows_that_come_later(ice: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (id) VALUES (1)")
    ice.sql("CACHE TABLE db.t")
    try:
        ice.sql("INSERT INTO db.t (id) VALUES (2)")
        assert ice.sql("SELECT id FROM db.t ORDER BY id").collect() == [(1,), (2,)]
    finally:
        ice.sql("UNCACHE TABLE db.t")


@pytest.mark.slow
def test_a_query_in_front_of_inserts_gives_each_its_rows(ice: Any, table: icefield.Table) -> None:
    ice.sql("CREATE TABLE db.even (id bigint)")
    ice.sql("CREATE TABLE db.odd (id bigint)")
    ice.sql("INSERT INTO db.t (id) VALUES (1), (2), (3)")
    ice.sql("FROM db.t INSERT INTO db.even SELECT id WHERE id % 2 = 0 INSERT INTO db.odd SELECT id WHERE id % 2 = 1")
    assert ice.sql("SELECT id FROM db.even").collect() == [(2,)]
    assert ice.sql("SELECT id FROM db.odd ORDER BY id").collect() == [(1,), (3,)]


def test_a_change_is_explained_and_not_made(ice: Any, table: icefield.Table) -> None:
    ice.sql("INSERT INTO db.t (id) VALUES (1)")
    (plan,) = ice.sql("EXPLAIN DELETE FROM db.t WHERE id = 1").collect()
    assert "test.db.t" in plan[0]
    assert ice.sql("SELECT id FROM db.t").collect() == [(1,)]
    assert len(table.refresh().snapshots()) == 1


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ANALYZE TABLE db.t COMPUTE STATISTICS", "ANALYZE TABLE is not supported"),
        ("LOAD DATA INPATH '/nowhere' INTO TABLE db.t", "LOAD DATA is not supported"),
        ("ALTER TABLE db.t ADD PARTITION (n = 1)", "partition management"),
        ("ALTER TABLE db.t ADD CONSTRAINT c CHECK (id > 0)", "does not support table constraint"),
        ("ALTER TABLE db.t CLUSTER BY (id)", "WRITE ORDERED BY"),
    ],
)
def test_a_statement_that_cannot_be_done_is_refused_and_changes_nothing(
    ice: Any, table: icefield.Table, statement: str, why: str
) -> None:
    before = table.metadata_location
    with pytest.raises((UnsupportedFeature, PySparkException), match=why):
        ice.sql(statement)
    assert table.refresh().metadata_location == before


def test_what_has_nothing_to_do_is_done(ice: Any, table: icefield.Table) -> None:
    assert ice.sql("REFRESH TABLE db.t").collect() == []
    ice.sql("USE db")
    assert ice.sql("SHOW CURRENT NAMESPACE").collect() == [("test", "db")]
