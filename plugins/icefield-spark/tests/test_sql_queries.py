"""``ice.sql`` with queries: the rows are those of Spark over the same rows, and plans read no more than they need."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, NoSuchSnapshot, NoSuchTable
from icefield_spark import attach
from pyspark import __version__ as spark_version
from pyspark.errors import ParseException

pytestmark = pytest.mark.spark

NAN = math.nan
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("Name", pa.string()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("good", pa.bool_()),
    ]
)


def row(id_: int, name: str | None, price: float | None, good: bool | None) -> dict[str, Any]:
    return {
        "id": id_,
        "Name": name,
        "price": price,
        "amount": None if price is None or math.isnan(price) else round(price * 4) / 4 if price < 100 else 7,
        "day": dt.date(2024, 3, id_),
        "at": dt.datetime(2024, 3, id_, 7, 30, tzinfo=dt.UTC),
        "local": dt.datetime(2024, 3, id_, 12),
        "good": good,
    }


ROWS = [
    row(1, "ann", 1.5, True),
    row(2, None, NAN, None),
    row(3, "bob", None, False),
    row(9, "anna", 0.0, None),
    row(10, "Zoë", -0.0, True),
    row(11, "{x}", 20.0, False),
]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    made = []
    for each in rows:
        amount = None if each["amount"] is None else Decimal(str(each["amount"])).quantize(Decimal("0.01"))
        made.append({**each, "amount": amount})
    return pa.Table.from_pylist(made, schema=SCHEMA)


OTHERS = pa.table({"id": [1, 3, 77], "note": ["p", None, "r"]})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icefield.Catalog]:
    """A table with a file for each row, so that a filter that is wrong leaves out a file; and another table."""
    folder = tmp_path_factory.mktemp("shop")
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    with icefield.load_catalog("test", **properties) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.goods", SCHEMA)
        for each in ROWS:
            table.append(table_of([each]))
        catalog.create_table("db.other", OTHERS.schema).append(OTHERS)
        yield catalog


@pytest.fixture
def ice(spark: Any, shop: icefield.Catalog) -> Any:
    return attach(spark, shop)


@pytest.fixture
def goods(shop: icefield.Catalog) -> icefield.Table:
    return shop.load_table("db.goods")


@pytest.fixture
def views(spark: Any) -> Iterator[None]:
    """The same rows as views of Spark's own."""
    columns = (
        "id bigint, Name string, price double, amount decimal(9, 2), day date, at timestamp, local timestamp_ntz, "
        "good boolean"
    )
    spark.createDataFrame(table_of(ROWS), columns).createOrReplaceTempView("goods")
    spark.createDataFrame(OTHERS).createOrReplaceTempView("other_of_spark")
    yield
    spark.catalog.dropTempView("goods")
    spark.catalog.dropTempView("other_of_spark")


def over_views(query: str) -> str:
    plain = query.replace("db.goods.id", "goods.id").replace("`db`.`goods`", "goods").replace("db.goods.name", "name")
    return plain.replace("db.goods", "goods").replace("db.other", "other_of_spark")


CONDITIONS = [
    "id = 3",
    "3 < id",
    "id >= 2.5",
    "id IN (1, 2, 99)",
    "id NOT IN (1, 2)",
    "id NOT IN (1, NULL)",
    "id <=> 3",
    "NOT (id = 1 OR Name = 'bob')",
    "NOT (id > 2 AND good)",
    "id BETWEEN 2 AND 9",
    "id NOT BETWEEN 2 AND 9",
    "name IS NULL",
    "NAME IS NOT NULL",
    "Name = 'ann'",
    "Name <> 'ann'",
    "Name LIKE 'ann%'",
    "Name NOT LIKE 'ann%'",
    "Name LIKE 'a_n%'",
    "Name = '{x}'",
    "Name > 'a'",
    "price > 1",
    "price < 1",
    "price = 0",
    "price <> 0",
    "price >= 20",
    "NOT price < 20",
    "NOT price >= 20",
    "price = double('NaN')",
    "amount = 1.5",
    "amount > 1.505",
    "amount = 7",
    "day = '2024-03-02'",
    "day > DATE '2024-03-09'",
    "day >= DATE'2024-03-09' AND day < '2024-03-11'",
    "at > TIMESTAMP '2024-03-09 00:00:00'",
    "at >= '2024-03-10 00:30:00'",
    "at < '2024-03-02'",
    "local = '2024-03-03 12:00:00'",
    "local < TIMESTAMP_NTZ '2024-03-03 00:00:00'",
    "good",
    "NOT good",
    "good = false OR id = 1",
    "good IS NULL",
    "goods.id = 1 AND db.goods.name = 'ann'",
    "id + 1 = 2",
    "id = 1L",
    "id = '3'",
    "id > -1",
    "id = 3S OR id = 9Y",
    "id = try_cast(300 AS TINYINT)",
    "startswith(name, 'ann')",
    "NOT startswith(name, 'ann')",
    "name <=> 'ann'",
    "name <=> NULL",
    "NOT name <=> 'ann'",
    "amount = 1.50BD",
    "amount = try_cast('1.504' AS DECIMAL(9, 2))",
    "price > 1.25D",
    "price < -1.25D",
    "id = 99999999999999999999",
    "upper(name) = 'ANN'",
    "id IN (SELECT id FROM db.other)",
    "EXISTS (SELECT 1 FROM db.other o WHERE o.id = goods.id AND note = 'p')",
]


@pytest.mark.slow
def test_a_condition_keeps_the_rows_that_spark_keeps(spark: Any, ice: Any, views: None) -> None:
    query = " UNION ALL ".join(
        f"SELECT {number} AS n, goods.id FROM db.goods WHERE {condition}" for number, condition in enumerate(CONDITIONS)
    )
    wanted, found = spark.sql(over_views(query)).collect(), ice.sql(query).collect()
    for number, condition in enumerate(CONDITIONS):
        of_one = [sorted(row.id for row in rows if row.n == number) for rows in (found, wanted)]
        assert of_one[0] == of_one[1], condition
    assert len(wanted) > 50


@pytest.mark.slow
def test_a_condition_is_pushed_where_iceberg_means_the_same(ice: Any) -> None:
    """Files that are read for a condition, of six: at most so many, as Spark makes more of some conditions."""
    for condition, files in (
        ("id = 3", 1), ("3 < id", 3), ("id IN (1, 2, 99)", 2), ("NOT (id > 2 AND good)", 4), ("name IS NULL", 1),
        ("Name LIKE 'ann%'", 2), ("price > 1", 3), ("amount = 1.5", 1), ("day = '2024-03-02'", 1),
        ("at > TIMESTAMP '2024-03-04 00:30:00'", 3), ("local = '2024-03-03 12:00:00'", 1), ("good", 2),
        ("startswith(name, 'ann')", 2), ("name <=> 'bob'", 1), ("id = 3S", 1), ("amount = 1.50BD", 1),
        ("price > 1.25D", 3), ("amount = try_cast('1.504' AS DECIMAL(9, 2))", 6), ("NOT name <=> 'bob'", 6),
        ("id BETWEEN 2 AND 9", 3), ("id NOT BETWEEN 2 AND 9", 3), ("id BETWEEN 3 AND id", 4),
        ("id + 1 = 2", 6), ("id = '3'", 6), ("upper(name) = 'ANN'", 6), ("price = 0", 6), ("name < 3", 6),
        ("at > '2024-03-09 12:30:00'", 6),  # near a change of the clocks
    ):  # fmt: skip
        found = ice.explain(ice.sql(f"SELECT id, name FROM db.goods WHERE {condition}"))
        assert len(found.files) <= files, condition


QUERIES = [
    "SELECT * FROM db.goods ORDER BY id",
    "SELECT count(*), sum(id) FROM db.goods WHERE id > 2",
    "SELECT g.id, o.note FROM db.goods g LEFT JOIN db.other o ON g.id = o.id WHERE o.note IS NULL ORDER BY g.id",
    "SELECT g.id, o.id FROM db.goods g LEFT JOIN db.other o ON g.id = o.id AND o.note = 'p' ORDER BY g.id",
    "SELECT g.id, o.id oid FROM db.goods g RIGHT JOIN db.other o ON g.id = o.id WHERE g.name IS NULL ORDER BY oid",
    "SELECT g.id a, o.id b FROM db.goods g FULL JOIN db.other o ON g.id = o.id AND g.id > 2 ORDER BY a, b",
    "SELECT g.id a, o.id b FROM db.goods g FULL JOIN db.other o ON g.id = o.id WHERE g.id > 2 ORDER BY a, b",
    "SELECT id, note FROM db.goods FULL OUTER JOIN db.other USING (id) WHERE id > 2 ORDER BY id",
    "SELECT id FROM db.goods NATURAL JOIN db.other ORDER BY id",
    "SELECT id FROM db.goods g LEFT ANTI JOIN db.other o ON g.id = o.id ORDER BY id",
    "SELECT id FROM db.goods g LEFT SEMI JOIN db.other o ON g.id = o.id AND o.note = 'p'",
    "WITH a AS (SELECT id, name FROM db.goods WHERE id < 5), other AS (SELECT 1 AS id) "
    "SELECT a.name FROM a JOIN other USING (id)",
    "SELECT id FROM db.goods WHERE id < 3 UNION SELECT id FROM db.other EXCEPT SELECT 1 ORDER BY id",
    "SELECT x.id FROM (SELECT id, price FROM db.goods WHERE good) x, db.other y WHERE x.id = y.id",
    "SELECT id, (SELECT max(note) FROM db.other o WHERE o.id = g.id) FROM db.goods g ORDER BY id",
    "SELECT db.goods.id, `db`.`goods`.`Name` FROM db.goods ORDER BY 1",
    "SELECT count(DISTINCT name), count(good) FROM db.goods",
    "SELECT * FROM (SELECT id, good FROM db.goods) PIVOT (count(*) FOR good IN (true, false)) ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY id DESC) r FROM db.goods WHERE good IS NOT NULL ORDER BY id",
    "SELECT good, count(*) FROM db.goods GROUP BY ALL ORDER BY good",
    "SELECT id, each FROM db.goods LATERAL VIEW explode(split(name, 'n')) e AS each WHERE id < 3 ORDER BY id, each",
    "SELECT '{id} {' || name || '}' AS s FROM db.goods WHERE name = 'ann' -- {comment}",
    "SELECT goods.* FROM db.goods TABLESAMPLE (100 PERCENT) JOIN db.other o ON o.id = goods.id ORDER BY goods.id",
    "FROM db.goods SELECT id WHERE id = 1",
]


@pytest.mark.slow
def test_a_query_gives_the_rows_that_it_gives_over_views(spark: Any, ice: Any, views: None) -> None:
    for query in QUERIES:
        wanted, found = spark.sql(over_views(query)), ice.sql(query)
        assert found.columns == wanted.columns, query
        assert repr(found.collect()) == repr(wanted.collect()), query


def test_a_plan_reads_the_columns_and_files_that_the_query_asks_for(ice: Any) -> None:
    found = ice.explain(ice.sql("SELECT name FROM db.goods WHERE id > 1 AND at < '2024-03-06'"))
    assert found.columns == ("id", "Name", "at")
    assert len(found.files) == 2


def test_rows_of_a_clean_table_are_counted_without_reading_a_file(spark: Any, ice: Any, goods: icefield.Table) -> None:
    found = ice.sql("SELECT count(*) AS n FROM db.goods")
    assert "LocalTableScan" in spark._jvm.PythonSQLUtils.explainString(found._jdf.queryExecution(), "simple")
    assert found.collect() == [(6,)]


def test_deleted_rows_are_not_counted(spark: Any, catalog: icefield.Catalog) -> None:
    table = catalog.create_table("db.few", OTHERS.schema, properties={"write.delete.mode": "merge-on-read"})
    table.append(OTHERS)
    table.delete("id = 1")
    assert attach(spark, catalog).sql("SELECT count(*) FROM db.few").collect() == [(2,)]


@pytest.mark.slow
def test_a_name_may_state_a_version(ice: Any, goods: icefield.Table) -> None:
    first, second = goods.history()[0], goods.history()[1]
    with goods.manage_snapshots() as update:
        update.create_tag(second.snapshot_id, "two").create_branch(first.snapshot_id, "one")
    time_s = second.timestamp_ms / 1000
    for version, count in (
        (f"db.goods VERSION AS OF {first.snapshot_id}", 1),
        (f"test.db.goods FOR VERSION AS OF '{second.snapshot_id}'", 2),
        (f"db.goods FOR SYSTEM_VERSION AS OF {second.snapshot_id} AS g", 2),
        ("db.goods VERSION AS OF 'two'", 2),
        ("db.goods.tag_two", 2),
        ("db.goods.branch_one", 1),
        (f"db.goods.snapshot_id_{second.snapshot_id}", 2),
        (f"db.goods.at_timestamp_{second.timestamp_ms}", 2),
        (f"db.goods TIMESTAMP AS OF timestamp_millis({second.timestamp_ms})", 2),
        (f"db.goods FOR SYSTEM_TIME AS OF '{dt.datetime.fromtimestamp(time_s, dt.UTC).isoformat()}'", 2),
        ("db.goods TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY", 6),
    ):
        assert len(ice.sql(f"SELECT id FROM {version}").collect()) == count, version
    both = f"SELECT count(*) FROM db.goods VERSION AS OF {first.snapshot_id} a, db.goods b WHERE a.id <> b.id"
    assert ice.sql(both).collect() == [(5,)]
    with pytest.raises(NoSuchSnapshot):
        ice.sql("SELECT * FROM db.goods VERSION AS OF 'three'")
    with pytest.raises(InvalidArgument, match="names a version already"):
        ice.sql(f"SELECT * FROM db.goods.tag_two VERSION AS OF {first.snapshot_id}")


@pytest.mark.slow
def test_tables_about_a_table_are_queried(ice: Any, goods: icefield.Table) -> None:
    assert ice.sql("SELECT count(*) FROM db.goods.snapshots WHERE operation = 'append'").collect() == [(6,)]
    found = ice.sql("SELECT f.record_count FROM db.goods.files f JOIN db.goods.manifests m ON f.spec_id = 0")
    assert found.count() == 36
    for name in ("history", "refs", "entries", "partitions", "metadata_log_entries", "all_data_files"):
        assert ice.sql(f"SELECT * FROM db.goods.{name}").count() > 0, name
    assert ice.sql("SELECT * FROM db.goods.delete_files").count() == 0
    assert ice.sql("SELECT * FROM db.goods.position_deletes").count() == 0


@pytest.mark.skipif(spark_version < "4", reason="Spark 3.5 has no SELECT * EXCEPT")
def test_metadata_columns_are_named(ice: Any, goods: icefield.Table) -> None:
    found = ice.sql("SELECT id, _pos, _file LIKE 'file:%.parquet' AS f FROM db.goods WHERE id = 3").collect()
    assert found == [(3, 0, True)]
    for columns in ("*, _pos", "g.*, g._pos"):
        found = ice.sql(f"SELECT {columns} FROM db.goods AS g WHERE id = 3")
        assert found.columns == [*SCHEMA.names, "_pos"]
        assert found.collect()[0][-1] == 0
    assert ice.sql("SELECT db.goods.*, _pos FROM test.db.goods WHERE id = 3").columns == [*SCHEMA.names, "_pos"]
    assert ice.sql("SELECT * EXCEPT (id), _pos FROM db.goods").columns == [*SCHEMA.names[1:], "_pos"]


def test_a_name_after_a_tables_that_means_nothing_is_refused_with_what_does(ice: Any) -> None:
    with pytest.raises(NoSuchTable, match=r"table db\.goods has no table 'nope' about it: .*snapshots"):
        ice.sql("SELECT * FROM db.goods.nope")
    assert ice.sql("SELECT count(*) FROM db.goods.changes").collect() == [(6,)]


def test_names_of_the_current_namespace_and_views(
    spark: Any, ice: Any, goods: icefield.Table, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: spark.catalog.dropTempView("few"))
    ice.sql("USE test.db")
    assert ice.sql("SELECT max(id) FROM goods").collect() == [(11,)]
    ice.sql("CREATE OR REPLACE TEMPORARY VIEW few AS SELECT id FROM goods WHERE id < 3")
    assert ice.sql("SELECT count(*) FROM few JOIN other USING (id)").collect() == [(1,)]
    ice.sql("USE spark_catalog.default")
    assert "few" in spark.sql("EXPLAIN EXTENDED SELECT * FROM few").collect()[0][0]
    explained = ice.sql("EXPLAIN SELECT id FROM test.db.goods WHERE id = 1").collect()[0][0]
    assert "FileScan parquet" in explained
    assert "EqualTo(id,1)" in explained


def test_what_names_no_table_of_the_catalog_goes_to_spark(ice: Any) -> None:
    assert ice.sql("SELECT 1 AS x, '{}' AS y;").collect() == [(1, "{}")]
    assert ice.sql("SET spark.sql.shuffle.partitions").collect()[0][0] == "spark.sql.shuffle.partitions"
    with pytest.raises(ParseException, match="SYNTAX_ERROR"):
        ice.sql("SELECT 1; SELECT 2")


def test_names_are_case_sensitive_where_spark_is(spark: Any, ice: Any, goods: icefield.Table) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert ice.sql("SELECT Name FROM db.goods WHERE Name = 'ann'").collect() == [("ann",)]
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            ice.sql("SELECT name FROM db.goods")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
