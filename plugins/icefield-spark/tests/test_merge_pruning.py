"""Conditions of a MERGE on the table alone: which files they leave out, and that no row is lost by it."""

from __future__ import annotations

from typing import Any

import icefield
import pytest
from icefield.errors import ValidationFailed
from icefield_spark.catalog import tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = {f"2024-01-0{day}" for day in range(1, 6)}


@pytest.fixture
def planned(ice: Any, spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The days of the files that each merge read, of a table that has a file for each of five."""
    ice.sql("CREATE TABLE db.t (id bigint, day date, s string, v string) PARTITIONED BY (day)")
    rows = "SELECT id, DATE'2024-01-01' + INT(id % 5) AS day, concat('s', id % 5) AS s, 'old' AS v FROM range(20)"
    ice.sql(f"INSERT INTO db.t {rows}")
    spark.sql(rows).createOrReplaceTempView("mine")
    ids = "SELECT id, DATE'2024-01-09' AS at, 'x' AS w FROM VALUES (2L), (7L), (8L), (30L), (NULL) AS v(id)"
    spark.sql(ids).createOrReplaceTempView("given")
    found: list[set[str]] = []
    commit = tables.commit_changes

    def noted(session: Any, target: Any, *given: Any, **options: Any) -> None:
        files = target.table.inspect.data_files()
        days = dict(zip(files["file_path"].to_pylist(), files["partition"].to_pylist(), strict=True))
        found.append({str(days[path]["day"]) for path in target.plan.numbers})
        commit(session, target, *given, **options)

    monkeypatch.setattr(tables, "commit_changes", noted)
    return found


@pytest.mark.parametrize(
    ("on", "days"),
    [
        ("t.id = g.id AND t.day = DATE'2024-01-03'", {"2024-01-03"}),
        ("t.id = g.id AND day = '2024-01-03'", {"2024-01-03"}),
        ("DATE'2024-01-03' = t.day AND t.id + 0 = g.id", {"2024-01-03"}),
        ("t.id = g.id AND t.day >= '2024-01-02' AND t.day < '2024-01-04'", {"2024-01-02", "2024-01-03"}),
        ("t.id <=> g.id AND t.day BETWEEN '2024-01-02' AND '2024-01-03'", {"2024-01-02", "2024-01-03"}),
        ("t.id = abs(g.id) AND t.day IN ('2024-01-03', '2024-01-04')", {"2024-01-03", "2024-01-04"}),
        ("(t.day = '2024-01-03' OR t.day = '2024-01-05') AND t.id + 0 = g.id", {"2024-01-03", "2024-01-05"}),
        ("t.id + 0 = g.id AND t.s = 's2'", {"2024-01-03"}),
        ("t.id + 0 = g.id AND (t.day = '2024-01-03' OR g.w = 'x')", DAYS),
        ("t.id + 0 = g.id AND (t.day = '2024-01-03' OR t.id = g.id)", DAYS),
        ("t.id + 0 = g.id AND NOT t.day = '2024-01-03'", DAYS - {"2024-01-03"}),
        ("t.id + 0 = g.id AND g.at = '2024-01-09'", DAYS),
        ("t.id + 0 = g.id AND t.day = '2024-02-01'", set()),
        ("t.day = '2024-01-03' AND false", {"2024-01-03"}),
    ],
)
def test_what_the_condition_says_of_the_table_leaves_out_files_and_no_row(
    spark: Any, ice: Any, planned: list[set[str]], on: str, days: set[str]
) -> None:
    updates = "WHEN MATCHED THEN UPDATE SET v = 'new'"
    inserts = "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (g.id, g.at, 'added')"
    ice.sql(f"MERGE INTO db.t t USING given g ON {on} {updates} {inserts}")
    met = f"EXISTS (SELECT 1 FROM given g WHERE {on})"
    wanted = spark.sql(
        f"SELECT id, day, CASE WHEN {met} THEN 'new' ELSE v END AS v FROM mine t UNION ALL "
        f"SELECT id, at, 'added' FROM given g WHERE NOT EXISTS (SELECT 1 FROM mine t WHERE {on})"
    ).collect()
    found = ice.table("db.t", columns=["id", "day", "v"]).collect()
    assert sorted(map(tuple, found), key=repr) == sorted(map(tuple, wanted), key=repr)
    assert len(planned) == 1
    assert planned[0] <= days


@pytest.mark.parametrize("rest", ["THEN DELETE", "AND t.v = 'old' THEN UPDATE SET v = 'left'"])
def test_rows_that_no_row_of_the_source_meets_are_read_wherever_they_are(
    ice: Any, planned: list[set[str]], rest: str
) -> None:
    on = "t.id = g.id AND t.day = DATE'2024-01-03'"
    merge = f"MERGE INTO db.t t USING given g ON {on} WHEN MATCHED THEN UPDATE SET v = 'new'"
    ice.sql(f"{merge} WHEN NOT MATCHED BY SOURCE {rest}")
    found = {row.id: row.v for row in ice.table("db.t").collect()}
    left = {} if "DELETE" in rest else {number: "left" for number in range(20) if number not in (2, 7)}
    assert found == {2: "new", 7: "new", **left}
    assert planned == [DAYS]


def test_rows_that_others_add_where_the_condition_says_no_are_no_conflict(
    ice: Any, catalog: icefield.Catalog, planned: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tables.commit_changes

    def after(day: str) -> None:
        def late(*given: Any, **options: Any) -> None:
            monkeypatch.setattr(tables, "commit_changes", noted)
            ice.sql(f"INSERT INTO db.t VALUES (2, DATE'{day}', 's', 'theirs')")
            noted(*given, **options)

        monkeypatch.setattr(tables, "commit_changes", late)
        on = "t.id + 0 = g.id AND t.day = DATE'2024-01-03'"
        ice.sql(f"MERGE INTO db.t t USING given g ON {on} WHEN MATCHED THEN UPDATE SET v = 'new'")

    after("2024-01-04")
    assert ice.count("db.t", "v = 'new'") == 2
    with pytest.raises(ValidationFailed):
        after("2024-01-03")


KEYS = {
    "int": "INT({n})",
    "bigint": "{n} * 3000000000",
    "string": "lpad(STRING({n}), 6, 'ä')",
    "date": "DATE '1969-01-01' + INT({n})",
    "timestamp": "TIMESTAMP '1969-12-31 23:00:00.123456' + make_interval(0, 0, 0, 0, 0, INT({n}))",
    "timestamp_ntz": "TIMESTAMP_NTZ '2024-03-10 02:30:00.123456' + make_interval(0, 0, 0, 0, 0, INT({n}))",
    "decimal(20, 3)": "CAST({n} AS DECIMAL(20, 3)) / 7",
    "binary": "CAST(lpad(STRING({n}), 6, '0') AS BINARY)",
}


@pytest.mark.parametrize("count", [1, 300], ids=["few", "many"])
@pytest.mark.parametrize("kind", KEYS)
def test_the_keys_of_a_source_leave_out_files_in_each_type(
    spark: Any, ice: Any, monkeypatch: pytest.MonkeyPatch, kind: str, count: int
) -> None:
    key, planned, commit = KEYS[kind], list[int](), tables.commit_changes
    ice.sql(f"CREATE TABLE db.t (k {kind}, n bigint) TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')")
    for first in (0, 1000, 2000):
        rows = f"SELECT CAST({key.format(n='id')} AS {kind}), id FROM range({first}, {first + 1000}, 1, 1)"
        ice.sql(f"INSERT INTO db.t {rows}")

    def noted(session: Any, target: Any, *given: Any, **options: Any) -> None:
        planned.append(len(target.plan.numbers))
        commit(session, target, *given, **options)

    monkeypatch.setattr(tables, "commit_changes", noted)
    source = f"SELECT CAST({key.format(n='id')} AS {kind}) AS k FROM range(1100, {1100 + count}) UNION ALL SELECT NULL"
    ice.sql(f"MERGE INTO db.t t USING ({source}) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = -n")
    assert planned == [3 if kind == "binary" and count > 1 else 1]
    found = sorted(row.n for row in ice.sql("SELECT n FROM db.t WHERE n < 0").collect())
    assert found == list(range(-1099 - count, -1099))


@pytest.mark.parametrize("count", [1, 300], ids=["few", "many"])
def test_keys_that_python_has_no_dates_for_leave_out_no_file(spark: Any, ice: Any, count: int) -> None:
    ice.sql("CREATE TABLE db.t (k date, n bigint)")
    ice.sql("INSERT INTO db.t SELECT DATE '+12000-01-01' + INT(id), id FROM range(10)")
    source = f"SELECT DATE '+12000-01-01' + INT(id) AS k FROM range(4, {4 + count})"
    ice.sql(f"MERGE INTO db.t t USING ({source}) s ON t.k = s.k WHEN MATCHED THEN DELETE")
    assert ice.sql("SELECT n FROM db.t ORDER BY n LIMIT 5").collect()[3] == (3,)
    assert ice.count("db.t") == (9 if count == 1 else 4)
