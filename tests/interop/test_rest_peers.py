"""Other engines use `icefield serve` over SQLite, with a token: Icefield and all engines read the rows of each engine.

Icefield bypasses the server and uses the database directly, which shows that both ways lead to the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Catalog, Table
from plain_rows import comparable, plain_rows
from rest_engines import ClickHouse, Reader, duckdb_catalog, pyiceberg_client, readers, spark_catalog
from rest_lake import Served, served_by_command
from servers.spark_runtime import SparkError, SparkRuntime
from shared_with_spark import Rows, Shared, arrow, fresh, properties_of, source, values

pytestmark = pytest.mark.slow

KINDS = pytest.mark.parametrize(
    ("version", "mode"),
    [
        pytest.param(2, "copy-on-write", marks=pytest.mark.soak),
        pytest.param(2, "merge-on-read", marks=pytest.mark.soak),
        (3, "merge-on-read"),
    ],
)
OPTIONAL = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_by_command(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def ours(served: Served) -> Iterator[Catalog]:
    """The catalog behind the server, with an empty namespace ``db``."""
    with served.past() as catalog:
        catalog.create_namespace_if_not_exists("db")
        for name in catalog.list_tables("db"):
            catalog.drop_table(name)
        for name in catalog.list_views("db"):
            catalog.drop_view(name)
        yield catalog


@pytest.fixture(scope="module")
def lake(spark_runtime: SparkRuntime, served: Served) -> str:
    """Spark's name of the server."""
    return spark_catalog(spark_runtime, served)


@pytest.fixture(scope="module")
def planned(spark_runtime: SparkRuntime, served: Served) -> str:
    """Spark's name of the server, which is to plan scans."""
    return spark_catalog(spark_runtime, served, **{"scan-planning-mode": "server"})


@pytest.fixture(scope="module")
def peer(served: Served) -> Any:
    """PyIceberg's client."""
    pytest.importorskip("pyiceberg")
    return pyiceberg_client(served)


@pytest.fixture(scope="module")
def attached(duck: Any, served: Served) -> str:
    """DuckDB's name of the server."""
    return duckdb_catalog(duck, served)


@pytest.fixture(scope="module")
def house(click: Any, served: Served) -> ClickHouse:
    return ClickHouse(click, served)


@pytest.fixture
def all_read(
    spark_runtime: SparkRuntime, lake: str, planned: str, peer: Any, duck: Any, attached: str, house: ClickHouse
) -> Callable[..., None]:
    """A check that all engines, except those in ``but``, read the same rows of a table as Icefield."""
    engines = spark_runtime, (lake, planned), peer, duck, attached, house

    def check(table: Table, *, but: tuple[str, ...] = ()) -> None:
        schema = table.refresh().schema()
        expected = comparable(plain_rows(table.scan().to_arrow(), schema), schema)
        found: dict[str, Reader] = readers(schema, *engines)
        for engine in found.keys() - set(but):
            assert comparable(found[engine]("db.t"), schema) == expected, engine

    return check


# -- written here, read there -----------------------------------------------------------------------------------------


@KINDS
@pytest.mark.spec("VER-13", "DEL-01", "DEL-02")
def test_every_engine_reads_through_the_server_what_is_changed_past_it(
    ours: Catalog, all_read: Callable[..., None], version: int, mode: str
) -> None:
    properties = {**properties_of(version, "parquet", mode), "write.delete.granularity": "file"}
    table = ours.create_table("db.t", OPTIONAL, partition_spec=["part"], properties=properties)
    # ClickHouse 26.9 mistakes deletion vectors for files of another format.
    but = ("clickhouse",) if version == 3 else ()
    for start in (0, 20):
        table.append(arrow(fresh(range(start, start + 20), 0.5)))
    all_read(table)
    table.delete("id in (1, 2, 3, 25)")
    table.update("id < 6", {"value": 7.5})
    all_read(table, but=but)
    table.upsert(arrow({6: ("b", 8.0), 7: ("b", 8.5), 100: (None, 9.0)}), ["id"])
    all_read(table, but=but)
    with table.update_schema() as update:
        update.rename_column("value", "worth")
        update.add_column("more", "string")
    with table.update_spec() as spec:
        spec.remove_field("part")
        spec.add_field("id", "bucket[4]")
    table.append(pa.table({"id": [200, 201], "part": ["z", None], "worth": [1.0, None], "more": ["m", None]}))
    table.delete("id = 30")
    all_read(table, but=but)


# -- written by Spark -------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.spec("VER-13", "DEL-33", "DEL-34")
def test_spark_and_icefield_change_rows_in_turn_through_the_server_and_past_it(
    ours: Catalog,
    spark_runtime: SparkRuntime,
    lake: str,
    all_read: Callable[..., None],
    version: int,
    mode: str,
) -> None:
    shared = Shared(ours, spark_runtime, f"{lake}.db.t")
    stated = ", ".join(f"'{key}'='{value}'" for key, value in properties_of(version, "parquet", mode).items())
    shared.sql(
        "CREATE TABLE {t} (id bigint NOT NULL, part string, value double) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ({stated})"
    )
    shared.rows |= fresh(range(20), 0.5)
    shared.sql(f"INSERT INTO {{t}} VALUES {values(shared.rows)}")
    shared.expect()
    shared.table.append(arrow(fresh(range(20, 40), 0.5)))
    shared.rows |= fresh(range(20, 40), 0.5)
    shared.sql("DELETE FROM {t} WHERE id IN (1, 2, 21)")
    for id_ in (1, 2, 21):
        del shared.rows[id_]
    shared.expect()
    shared.table.delete("id in (3, 22)")
    for id_ in (3, 22):
        del shared.rows[id_]
    shared.sql("UPDATE {t} SET value = 2 WHERE id IN (4, 24)")
    shared.rows |= dict.fromkeys((4, 24), ("a", 2.0))
    shared.expect()
    merged: Rows = {5: ("c", 5.0), 100: ("d", 6.0)}
    shared.sql(
        f"MERGE INTO {{t}} AS t USING {source(merged)} AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    shared.rows |= merged
    shared.expect()
    shared.table.update("id = 6", {"value": 3.0})
    shared.rows[6] = ("a", 3.0)
    shared.expect()
    all_read(shared.table, but=("clickhouse",) if version == 3 else ())
    spark_runtime.sql(f"CALL {lake}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    shared.expect()
    assert not any(task.delete_files for task in shared.table.scan().plan_files())
    all_read(shared.table)


def test_tables_namespaces_branches_and_views_of_spark_are_found_past_the_server(
    ours: Catalog, spark_runtime: SparkRuntime, lake: str
) -> None:
    def sql(statement: str) -> list[dict[str, Any]]:
        return spark_runtime.sql(statement.format(c=lake))

    sql("CREATE NAMESPACE {c}.made WITH PROPERTIES ('note' = 'é')")
    sql("CREATE NAMESPACE {c}.made.`in side`")
    assert ours.load_namespace_properties("made")["note"] == "é"
    assert ours.list_namespaces("made") == [("made", "in side")]
    sql("CREATE TABLE {c}.made.t USING iceberg AS SELECT id, 'x' AS kind FROM range(5)")
    table = ours.load_table("made.t")
    assert table.scan().count() == 5
    sql("ALTER TABLE {c}.made.t CREATE BRANCH work")
    sql("INSERT INTO {c}.made.t.branch_work VALUES (10, 'y')")
    sql("ALTER TABLE {c}.made.t CREATE TAG first AS OF VERSION " + str(table.current_snapshot().snapshot_id))
    table.refresh()
    assert [table.scan(ref=ref).count() for ref in ("main", "work", "first")] == [5, 6, 5]
    with table.manage_snapshots() as manage:
        manage.fast_forward("main", "work")
    assert sql("SELECT count(*) AS n FROM {c}.made.t") == [{"n": 6}]
    for change in (
        "ADD COLUMN more struct<a: int>",
        "ALTER COLUMN kind FIRST",
        "RENAME COLUMN kind TO sort",
        "ADD PARTITION FIELD bucket(4, id)",
        "WRITE ORDERED BY id DESC",
        "SET TBLPROPERTIES ('a' = 'b')",
    ):
        sql("ALTER TABLE {c}.made.t " + change)
    table.refresh()
    assert [field.name for field in table.schema().fields] == ["sort", "id", "more"]
    assert [field.name for field in table.spec().fields] == ["id_bucket_4"]
    assert table.properties["a"] == "b"
    assert len(table.sort_order().fields) == 1
    sql("REPLACE TABLE {c}.made.t USING iceberg AS SELECT 1 AS one")
    assert table.refresh().scan().to_arrow().to_pylist() == [{"one": 1}]
    sql("ALTER TABLE {c}.made.t RENAME TO made.u")
    assert ours.list_tables("made") == [("made", "u")]
    metadata = ours.load_table("made.u").metadata_location
    sql("DROP TABLE {c}.made.u")
    sql(f"CALL {{c}}.system.register_table(table => 'made.again', metadata_file => '{metadata}')")
    assert ours.load_table("made.again").scan().count() == 1
    sql("CREATE VIEW {c}.made.v (number COMMENT 'a number') AS SELECT one FROM {c}.made.again")
    assert sql("SELECT * FROM {c}.made.v") == [{"number": 1}]
    assert "made.again" in ours.load_view("made.v").sql_for("spark")
    sql("CREATE OR REPLACE VIEW {c}.made.v AS SELECT one + 1 AS two FROM {c}.made.again")
    sql("ALTER VIEW {c}.made.v RENAME TO {c}.made.w")
    assert ours.list_views("made") == [("made", "w")]
    assert len(ours.load_view("made.w").metadata.versions) == 2
    sql("DROP VIEW {c}.made.w")
    sql("DROP TABLE {c}.made.again PURGE")
    sql("DROP NAMESPACE {c}.made.`in side`")
    sql("DROP NAMESPACE {c}.made")
    assert not ours.namespace_exists("made")


# -- written by DuckDB ------------------------------------------------------------------------------------------------


def test_what_duckdb_writes_through_the_server_all_others_read(
    ours: Catalog, duck: Any, attached: str, all_read: Callable[..., None]
) -> None:
    name = f"{attached}.db.t"
    duck.execute(f"CREATE TABLE {name} (id bigint, part varchar, value double)")
    duck.execute(f"INSERT INTO {name} VALUES {values(fresh(range(30), 0.5)).replace('L,', ',').replace('D)', ')')}")
    table = ours.load_table("db.t")
    assert table.scan().count() == 30
    all_read(table)
    duck.execute(f"DELETE FROM {name} WHERE id IN (1, 2)")
    table.refresh().delete("id = 3")
    duck.execute(f"UPDATE {name} SET value = 4 WHERE id = 4")
    duck.execute(
        f"MERGE INTO {name} t USING (VALUES (5, 'z', 5.0), (50, 'z', 6.0)) s(id, part, value) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET value = s.value WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, s.value)"
    )
    expected = {**dict.fromkeys({*range(30)} - {1, 2, 3}, 0.5), 4: 4.0, 5: 5.0, 50: 6.0}
    assert {row["id"]: row["value"] for row in table.refresh().scan().to_arrow().to_pylist()} == expected
    all_read(table)
    duck.execute(f"ALTER TABLE {name} ADD COLUMN more integer")
    duck.execute(f"INSERT INTO {name} VALUES (60, 'm', 1.0, 7)")
    assert table.refresh().scan("more = 7").to_arrow()["id"].to_pylist() == [60]
    all_read(table)


def test_changes_of_several_tables_by_duckdb_are_one_step(ours: Catalog, duck: Any, attached: str) -> None:
    for name in ("db.t", "db.u"):
        ours.create_table(name, OPTIONAL)
    duck.execute("BEGIN")
    duck.execute(f"INSERT INTO {attached}.db.t VALUES (1, 'a', 1.0)")
    duck.execute(f"INSERT INTO {attached}.db.u VALUES (2, 'b', 2.0)")
    assert [ours.load_table(name).scan().count() for name in ("db.t", "db.u")] == [0, 0]
    duck.execute("COMMIT")
    assert [ours.load_table(name).scan().count() for name in ("db.t", "db.u")] == [1, 1]
    duck.execute("BEGIN")
    duck.execute(f"INSERT INTO {attached}.db.t VALUES (3, 'a', 1.0)")
    duck.execute(f"INSERT INTO {attached}.db.u VALUES (4, 'b', 2.0)")
    ours.load_table("db.u").append(arrow({5: ("c", 3.0)}))
    with pytest.raises(Exception, match="branch main has changed"):
        duck.execute("COMMIT")
    assert [ours.load_table(name).scan().count() for name in ("db.t", "db.u")] == [1, 2]
    duck.execute(f"DROP TABLE {attached}.db.u")
    assert ours.list_tables("db") == [("db", "t")]


# -- written by ClickHouse --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_what_clickhouse_writes_through_the_server_all_others_read(
    ours: Catalog, house: ClickHouse, all_read: Callable[..., None], version: int
) -> None:
    table = ours.create_table(
        "db.t", OPTIONAL, partition_spec=["part"], properties=properties_of(version, "parquet", "merge-on-read")
    )
    table.append(arrow(fresh(range(10), 0.5)))
    name = house.table("db.t")
    house.run(f"INSERT INTO {name} VALUES (90, 'c', 1.5), (91, 'a', 2.5), (92, NULL, NULL)")
    assert table.refresh().scan().count() == 13
    all_read(table)
    if version == 2:
        table.delete("id = 3")
        house.run(f"ALTER TABLE {name} DELETE WHERE id = 90")
        house.run(f"ALTER TABLE {name} UPDATE value = 7 WHERE id = 91")
        assert sorted(table.refresh().scan("id > 8").to_arrow()["value"].to_pylist(), key=str) == [0.5, 7.0, None]
        all_read(table)
    house.run(f"ALTER TABLE {name} ADD COLUMN more Nullable(String)")
    table.refresh().append(pa.table({"id": [200], "part": ["a"], "value": [1.0], "more": ["x"]}))
    house.run(f"INSERT INTO {name} VALUES (201, 'c', 1.5, 'y')")
    assert table.refresh().scan("more is not null").count() == 2
    all_read(table)


def test_a_table_that_clickhouse_drops_is_gone_although_it_asks_again(
    ours: Catalog, house: ClickHouse, served: Served
) -> None:
    table = ours.create_table("db.t", OPTIONAL)
    before = served.done()["dropTable"]
    with pytest.raises(Exception, match="Table does not exist"):  # ClickHouse 26.9 takes the 204 for a lost reply
        house.run(f"DROP TABLE {house.table('db.t')}")
    assert served.done()["dropTable"] == before + 1
    assert not ours.table_exists("db.t")
    assert table.io.exists(table.metadata_location)


# -- written by all ---------------------------------------------------------------------------------------------------


def test_all_engines_write_to_one_table_in_turn(
    ours: Catalog,
    spark_runtime: SparkRuntime,
    lake: str,
    peer: Any,
    duck: Any,
    attached: str,
    house: ClickHouse,
    all_read: Callable[..., None],
) -> None:
    table = ours.create_table("db.t", OPTIONAL, properties=properties_of(2, "parquet", "merge-on-read"))
    first = 0
    for _ in range(2):
        table.refresh().append(arrow(fresh(range(first, first + 5), 0.5)))
        if not first:  # ClickHouse 26.9 wants totals in the summary before, and DuckDB 1.5.5 leaves them out
            house.run(f"INSERT INTO {house.table('db.t')} VALUES (5, 'c', 1.0)")
        peer.load_table("db.t").append(arrow({first + 6: ("p", 2.0)}).cast(OPTIONAL))
        spark_runtime.sql(f"INSERT INTO {lake}.db.t VALUES {values({first + 7: ('s', 3.0)})}")
        duck.execute(f"INSERT INTO {attached}.db.t VALUES ({first + 8}, 'd', 4.0)")
        duck.execute(f"DELETE FROM {attached}.db.t WHERE id = {first}")
        spark_runtime.sql(f"DELETE FROM {lake}.db.t WHERE id = {first + 5}")
        peer.load_table("db.t").delete(f"id = {first + 1}")
        table.refresh().delete(f"id = {first + 8}")
        all_read(table)
        table.maintenance.rewrite_data_files()
        spark_runtime.sql(f"UPDATE {lake}.db.t SET value = 9 WHERE id = {first + 2}")
        all_read(table)
        first += 100
    left = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
    assert left == [*range(2, 5), 6, 7, *range(102, 105), 106, 107]


def test_of_engines_that_write_at_once_through_the_server_and_past_it_no_row_is_lost_or_doubled(
    ours: Catalog, spark_runtime: SparkRuntime, lake: str, peer: Any, duck: Any, attached: str, served: Served
) -> None:
    patient = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "200"}
    ours.create_table("db.t", OPTIONAL, properties=patient)
    done: dict[str, list[int]] = {"spark": [], "pyiceberg": [], "duckdb": [], "icefield": []}
    refused: list[str] = []
    barrier = Barrier(len(done))

    def past(number: int) -> None:
        with served.past() as catalog:
            catalog.load_table("db.t").append(arrow({number: ("i", 0.0)}).cast(OPTIONAL))

    statements: dict[str, Callable[[int], Any]] = {
        "spark": lambda number: spark_runtime.sql(f"INSERT INTO {lake}.db.t VALUES {values({number: ('s', 0.0)})}"),
        "pyiceberg": lambda number: peer.load_table("db.t").append(arrow({number: ("p", 0.0)}).cast(OPTIONAL)),
        "duckdb": lambda number: duck.execute(f"INSERT INTO {attached}.db.t VALUES ({number}, 'd', 0.0)"),
        "icefield": past,
    }

    def write(engine: str, base: int) -> None:
        barrier.wait()
        for number in range(base, base + 12):
            try:
                statements[engine](number)
                done[engine].append(number)
            except Exception as error:
                refused.append(f"{engine}: {error}")

    threads = [Thread(target=write, args=(engine, 1000 * at)) for at, engine in enumerate(done)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = ours.load_table("db.t")
    written = sorted(number for numbers in done.values() for number in numbers)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == written
    assert len(done["icefield"]) == len(done["spark"]) == 12
    assert all("has changed" in each or "CommitFailed" in each for each in refused), refused
    snapshots = table.snapshots()
    assert [each.sequence_number for each in snapshots] == [*range(1, len(written) + 1)]
    assert all(later.parent_snapshot_id == former.snapshot_id for former, later in pairwise(snapshots))


def test_who_has_no_token_is_told_so_by_every_engine(
    served: Served, spark_runtime: SparkRuntime, duck: Any, ours: Catalog
) -> None:
    ours.create_table("db.t", OPTIONAL)
    wrong = Served(served.uri, "another-token-than-that", served.folder)
    with pytest.raises(SparkError, match="NotAuthorized"):
        spark_runtime.sql(f"SHOW TABLES IN {spark_catalog(spark_runtime, wrong)}.db")
    with pytest.raises(Exception, match=r"401|[Uu]nauthorized|NotAuthorized"):
        pyiceberg_client(wrong)
    with pytest.raises(Exception, match=r"401|[Uu]nauthorized|NotAuthorized"):
        duckdb_catalog(duck, wrong)
