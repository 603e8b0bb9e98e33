"""Statements of Iceberg's own grammar in ``spark.sql`` of an attached catalog, and what they do to the table."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import icefield
import pytest
from icefield_spark import attach
from pyspark import __version__ as version
from pyspark.errors import AnalysisException, ParseException

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def own(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """A session that was not used before the test's catalog was attached as ``prod``, with a table of two versions."""
    attach(spark, catalog, name="prod")
    session = spark.newSession()
    session.sql("CREATE TABLE prod.db.t (id BIGINT NOT NULL, s STRING, ts TIMESTAMP) USING iceberg")
    for number in range(2):
        session.sql(f"INSERT INTO prod.db.t VALUES ({number}, 's', TIMESTAMP '2024-01-01 00:00:00')")
    yield session
    session.sql("USE spark_catalog.default")


@pytest.fixture
def table(own: Any, catalog: icefield.Catalog) -> icefield.Table:
    return catalog.load_table("db.t")


def fields(table: icefield.Table) -> list[str]:
    return [
        f"{field.name} {field.transform}" for field in table.refresh().spec().fields if str(field.transform) != "void"
    ]


def test_partition_fields_are_added_replaced_and_dropped(own: Any, table: icefield.Table) -> None:
    for clause in ("s", "bucket(16, id)", "truncate(4, s)", "days(ts)", "bucket(4, id) AS shard"):
        assert own.sql(f"ALTER TABLE prod.db.t ADD PARTITION FIELD {clause}").collect() == []
    names = ["s identity", "id_bucket_16 bucket[16]", "s_trunc_4 truncate[4]", "ts_day day", "shard bucket[4]"]
    assert [name.rstrip("]").split()[0] for name in fields(table)] == [name.split()[0] for name in names]
    own.sql("ALTER TABLE prod.db.t REPLACE PARTITION FIELD ts_day WITH hours(ts) AS hour")
    for clause in ("s", "bucket(16, id)", "truncate(4, s)", "shard"):
        own.sql(f"ALTER TABLE prod.db.t DROP PARTITION FIELD {clause}")
    assert fields(table) == ["hour hour"]


def test_the_order_and_the_distribution_of_writes_are_set(own: Any, table: icefield.Table) -> None:
    def made(clause: str) -> tuple[list[tuple[int, str]], str]:
        own.sql(f"ALTER TABLE prod.db.t WRITE {clause}")
        order = table.refresh().sort_order()
        found = [(each.source_id, f"{each.direction} {each.null_order}".lower()) for each in order.fields]
        return found, table.properties["write.distribution-mode"]

    by_name, distribution = made("ORDERED BY s DESC NULLS FIRST, id")
    assert [source for source, _ in by_name] == [2, 1]
    assert distribution == "range"
    assert by_name[0][1].startswith("desc")
    assert by_name[1][1].startswith("asc")
    assert made("DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id")[1] == "hash"
    assert made("UNORDERED") == ([], "none")


def test_branches_and_tags_come_change_and_go(own: Any, table: icefield.Table) -> None:
    first, last = (each.snapshot_id for each in table.history())
    for clause in (
        "CREATE BRANCH `audit-branch`",
        "CREATE BRANCH IF NOT EXISTS `audit-branch`",
        f"CREATE TAG old AS OF VERSION {first} RETAIN 365 DAYS",
        "CREATE OR REPLACE BRANCH b RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS",
    ):
        own.sql(f"ALTER TABLE prod.db.t {clause}")
    refs = table.refresh().refs()
    assert (refs["audit-branch"].snapshot_id, refs["old"].snapshot_id) == (last, first)
    assert refs["old"].max_ref_age_ms == 365 * 86_400_000
    assert (refs["b"].min_snapshots_to_keep, refs["b"].max_snapshot_age_ms) == (2, 3 * 86_400_000)
    assert own.sql("SELECT count(*) FROM prod.db.t VERSION AS OF 'old'").first()[0] == 1
    own.sql(f"ALTER TABLE prod.db.t REPLACE BRANCH b AS OF VERSION {first}")
    own.sql("ALTER TABLE prod.db.t DROP TAG IF EXISTS nope")
    own.sql("ALTER TABLE prod.db.t DROP TAG old")
    assert {name: ref.snapshot_id for name, ref in table.refresh().refs().items()} == {
        "main": last, "audit-branch": last, "b": first,
    }  # fmt: skip


def test_identifier_fields_are_set_and_dropped(own: Any, table: icefield.Table) -> None:
    own.sql("ALTER TABLE prod.db.t SET IDENTIFIER FIELDS id")
    assert table.refresh().schema().identifier_field_names() == {"id"}
    with pytest.raises(Exception, match="identifier field 's' cannot be optional"):
        own.sql("ALTER TABLE prod.db.t SET IDENTIFIER FIELDS id, s")
    own.sql("ALTER TABLE prod.db.t DROP IDENTIFIER FIELDS id")
    assert table.refresh().schema().identifier_field_names() == set()


def test_names_are_found_as_the_session_finds_them(own: Any, table: icefield.Table) -> None:
    own.sql("USE prod.db")
    own.sql("alter table t create tag /* a comment */ `x y`;")
    own.sql("USE prod")
    own.sql("SET branch = chosen")
    own.sql("ALTER TABLE db.`t` CREATE BRANCH ${branch}")
    assert set(table.refresh().refs()) == {"main", "x y", "chosen"}
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        own.sql("ALTER TABLE prod.db.nope CREATE TAG a")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE spark_catalog.default.t ADD PARTITION FIELD id",
        "ALTER TABLE prod.db.t ADD PARTITION FELD id",
        "ALTER TABLE prod.db.t CREATE TAG a; SELECT 1",
        "ALTER TABLE prod.db.",
        "SELEC 1",
    ],
)
def test_all_else_that_spark_refuses_is_refused_by_spark(own: Any, statement: str) -> None:
    with pytest.raises(ParseException, match="SYNTAX_ERROR"):
        own.sql(statement)


def test_a_wrong_clause_is_refused_in_one_sentence_and_changes_nothing(own: Any, table: icefield.Table) -> None:
    for clause, said in (
        ("ADD PARTITION FIELD nope", "no column is named 'nope'"),
        ("ADD PARTITION FIELD id id", "the end of the statement was expected in place of: id"),
        ("WRITE", "DISTRIBUTED BY PARTITION, ORDERED BY, LOCALLY ORDERED BY or UNORDERED"),
        ("CREATE TAG a RETAIN x DAYS", "a whole number was expected in place of: x DAYS"),
        ("DROP BRANCH main", "the branch 'main' cannot be dropped"),
    ):
        with pytest.raises(Exception, match=said) as caught:
            own.sql(f"ALTER TABLE prod.db.t {clause}")
        assert len(str(caught.value).strip().splitlines()) == 1
    assert table.metadata_location == table.refresh().metadata_location


def test_what_spark_parses_means_what_it_meant(own: Any, table: icefield.Table) -> None:
    assert own.sql("SELECT id FROM prod.db.t WHERE id = :id", args={"id": 1}).collect() == [(1,)]
    assert own.sql("SELECT id FROM prod.db.t WHERE id = ?", args=[0]).collect() == [(0,)]
    assert own.table("prod.db.t").selectExpr("id + 1 AS n").where("n = 2").count() == 1
    own.sql("ALTER TABLE prod.db.t SET TBLPROPERTIES ('k' = 'v')")
    assert table.refresh().properties["k"] == "v"
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        own.sql("SELECT :gone").collect()


@pytest.mark.skipif(version < "4.1", reason="Spark 4.0 runs a script in another way, 3.5 none")
def test_scripts_and_immediate_statements_run(own: Any, table: icefield.Table) -> None:
    own.sql("EXECUTE IMMEDIATE 'ALTER TABLE prod.db.t CREATE TAG immediate'")
    own.sql("EXECUTE IMMEDIATE 'DELETE FROM prod.db.t WHERE id = ?' USING 0")
    own.sql("BEGIN DECLARE i INT = 5; INSERT INTO prod.db.t (id) VALUES (i); END")
    assert sorted(row.id for row in own.table("prod.db.t").select("id").collect()) == [1, 5]
    assert "immediate" in table.refresh().refs()


def test_threads_clones_and_new_sessions_have_the_grammar(own: Any, table: icefield.Table) -> None:
    sessions = [own, own.newSession(), own.newSession()]

    def tagged(number: int) -> None:
        sessions[number % 3].sql(f"ALTER TABLE prod.db.t CREATE TAG t{number}")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(tagged, range(9)))
    assert set(table.refresh().refs()) == {"main", *(f"t{number}" for number in range(9))}
    clone = own._jsparkSession.cloneSession()
    clone.sql("ALTER TABLE prod.db.t CREATE TAG cloned")
    assert "cloned" in table.refresh().refs()


def test_a_detached_catalog_has_no_grammar(spark: Any, catalog: icefield.Catalog) -> None:
    ice = attach(spark, catalog, name="leaving")
    session = spark.newSession()
    session.sql("CREATE TABLE leaving.db.t (id BIGINT)")
    ice.detach()
    with pytest.raises(Exception, match=r"SYNTAX_ERROR|the catalog leaving was detached"):
        session.sql("ALTER TABLE leaving.db.t ADD PARTITION FIELD id")


def test_a_table_like_another_has_its_columns_partitions_order_and_properties(
    own: Any, table: icefield.Table, catalog: icefield.Catalog
) -> None:
    if not version.startswith("4.3"):
        pytest.skip("earlier versions of Spark have no CREATE TABLE LIKE for catalogs")
    own.sql("ALTER TABLE prod.db.t ADD PARTITION FIELD bucket(4, id)")
    own.sql("ALTER TABLE prod.db.t WRITE ORDERED BY s")
    own.sql("CREATE TABLE prod.db.made LIKE prod.db.t TBLPROPERTIES ('k' = 'v')")
    made, model = catalog.load_table("db.made"), table.refresh()
    assert [str(each) for each in made.schema().fields] == [str(each) for each in model.schema().fields]
    assert [field.name for field in made.spec().fields] == ["id_bucket_4"]
    assert len(made.sort_order().fields) == 1
    assert made.properties == {**model.properties, "k": "v"}
    assert made.location() != model.location()
    assert made.current_snapshot() is None
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        own.sql("CREATE TABLE prod.db.made LIKE prod.db.t")
    own.sql("CREATE TABLE IF NOT EXISTS prod.db.made LIKE prod.db.t")


def test_deleted_rows_are_seen_by_their_column_alone(own: Any, table: icefield.Table) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    own.sql("INSERT INTO prod.db.t (id) SELECT id FROM range(10, 14, 1, 1)")
    own.sql("DELETE FROM prod.db.t WHERE id = 12")
    rows = own.sql("SELECT id, _deleted FROM prod.db.t WHERE id > 9 ORDER BY id").collect()
    assert rows == [(10, False), (11, False), (12, True), (13, False)]
    assert own.sql("SELECT id FROM prod.db.t WHERE _deleted").collect() == [(12,)]
    assert own.sql("SELECT id FROM prod.db.t WHERE id > 9 ORDER BY id").collect() == [(10,), (11,), (13,)]
    with pytest.raises(AnalysisException):
        own.sql("UPDATE prod.db.t SET s = 'back' WHERE _deleted")


def test_the_changes_of_a_table_are_read_between_two_snapshots(own: Any, table: icefield.Table) -> None:
    own.sql("DELETE FROM prod.db.t WHERE id = 0")
    ids = [each.snapshot_id for each in table.refresh().history()]
    found = own.sql("SELECT id, _change_type, _change_ordinal, _commit_snapshot_id FROM prod.db.t.changes").collect()
    assert sorted(found, key=lambda row: row._change_ordinal) == [
        (0, "INSERT", 0, ids[0]), (1, "INSERT", 1, ids[1]), (0, "DELETE", 2, ids[2]),
    ]  # fmt: skip
    reader = own.read.option("start-snapshot-id", ids[0]).option("end-snapshot-id", ids[1])
    assert [row.id for row in reader.table("prod.db.t.changes").collect()] == [1]
    with pytest.raises(Exception, match="has no versions"):
        own.sql(f"SELECT * FROM prod.db.t.changes VERSION AS OF {ids[0]}")


@pytest.mark.skipif(not version.startswith("4.3"), reason="earlier versions of Spark know it for MERGE alone, or not")
def test_a_write_adds_columns_where_it_says_so(own: Any, table: icefield.Table) -> None:
    rows = "SELECT 7L AS id, 's' AS s, TIMESTAMP '2024-01-01 00:00:00' AS ts, 6 AS more"
    with pytest.raises(AnalysisException, match="TOO_MANY_DATA_COLUMNS"):
        own.sql(f"INSERT INTO prod.db.t {rows}")
    own.sql(f"INSERT WITH SCHEMA EVOLUTION INTO prod.db.t {rows}")
    own.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO prod.db.t t USING (SELECT 1L AS id, 's' AS s, current_timestamp() AS ts, "
        "9 AS most) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert [field.name for field in table.refresh().schema().fields] == ["id", "s", "ts", "more", "most"]
    found = own.sql("SELECT id, more, most FROM prod.db.t ORDER BY id").collect()
    assert found == [(0, None, None), (1, None, 9), (7, 6, None)]
