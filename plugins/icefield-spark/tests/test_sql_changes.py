"""``ice.sql`` with INSERT, DELETE, UPDATE, MERGE and CALL."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import IcefieldError, InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield_spark.catalog import tables
from pyspark import __version__ as version
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

Found = Callable[[], set[str]]
Committed = Callable[[str], set[str]]

MODES = [
    pytest.param(2, "copy-on-write", marks=pytest.mark.slow),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    pytest.param(3, "merge-on-read", marks=pytest.mark.slow),
]


def create(ice: Any, version: int, mode: str) -> None:
    modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    ice.sql(
        "CREATE TABLE db.t (id bigint NOT NULL, part string, price double, home struct<city: string, zip: int>) "
        f"USING iceberg PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    ice.sql(
        "INSERT INTO db.t SELECT id, IF(id % 2 = 0, 'a', 'b'), id * 1.5, named_struct('city', 'c' || id, 'zip', 7) "
        "FROM range(0, 10, 1, 1)"
    )


def rows(ice: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in ice.sql("SELECT id, part, price, home.city FROM db.t ORDER BY id, part").collect()]


def first(n: int) -> list[tuple[Any, ...]]:
    return [(i, "ab"[i % 2], i * 1.5, f"c{i}") for i in range(n)]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mode"), MODES)
def test_rows_are_changed_as_the_statements_say(
    ice: Any, catalog: icefield.Catalog, committed: Committed, data_files: Found, version: int, mode: str
) -> None:
    create(ice, version, mode)
    wanted = {row[0]: row for row in first(10)}
    ice.sql("DELETE FROM db.t WHERE id = 3 OR (id > 8 AND part = 'b')")
    del wanted[3], wanted[9]
    assert rows(ice) == sorted(wanted.values())
    ice.sql(
        "UPDATE db.t SET db.t.price = t.price + 1, home.city = upper(home.city), part = 'z' "
        "WHERE test.db.t.id IN (1, 4)"
    )
    for id_ in (1, 4):
        wanted[id_] = (id_, "z", id_ * 1.5 + 1, f"C{id_}")
    assert rows(ice) == sorted(wanted.values())
    ice.sql("DELETE FROM db.t t WHERE EXISTS (SELECT 1 FROM db.t u WHERE u.id = t.id + 1 AND u.part = 'z')")
    del wanted[0]
    assert rows(ice) == sorted(wanted.values())
    ice.sql(
        "MERGE INTO db.t t USING "
        "(SELECT * FROM VALUES (1, 'm'), (2, 'd'), (7, 'k'), (50, 'n'), (51, 'x') AS v(id, what)) s "
        "ON t.id = s.id "
        "WHEN MATCHED AND s.what = 'd' THEN DELETE "
        "WHEN MATCHED AND s.what <> 'k' THEN UPDATE SET price = -1, part = s.what "
        "WHEN NOT MATCHED AND what = 'n' THEN INSERT (id, part) VALUES (id, concat(what, '{}')) "
        "WHEN NOT MATCHED BY SOURCE AND id = 8 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND price > 7 THEN UPDATE SET price = price * 2"
    )
    wanted[1] = (1, "m", -1.0, "C1")
    wanted[50] = (50, "n{}", None, None)
    for id_, row in list(wanted.items()):
        if id_ not in (1, 2, 7, 8, 50) and row[2] > 7:
            wanted[id_] = (*row[:2], row[2] * 2, row[3])
    del wanted[2], wanted[8]
    assert rows(ice) == sorted(wanted.values())
    table = catalog.load_table("db.t")
    before = table.current_snapshot()
    with pytest.raises(InvalidArgument, match="several rows of the source"):
        ice.sql(
            "MERGE INTO db.t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET price = 0"
        )
    ice.sql("UPDATE db.t SET price = 0 WHERE id = 1000")
    ice.sql("DELETE FROM db.t WHERE id = 1000")
    assert table.refresh().current_snapshot() == before
    if version == 3:
        found = ice.sql("SELECT id, _row_id FROM db.t").collect()
        # The first file has the even ids, the second the odd ones.
        assert all(row._row_id == row.id // 2 + 5 * (row.id % 2) for row in found if row.id < 10)
        assert len({row._row_id for row in found}) == len(found)
    marks = table.inspect.delete_files().num_rows
    assert marks == 0 if mode == "copy-on-write" else marks > 0
    known = set(table.inspect.all_data_files()["file_path"].to_pylist())
    assert committed("db.t") <= known
    assert data_files() - known == set(table.inspect.all_delete_files()["file_path"].to_pylist()) & data_files()


@pytest.mark.skipif(version < "4.1", reason="Spark 4.0 asks an INSERT for every column")
@pytest.mark.slow
def test_rows_are_inserted_by_position_by_name_and_by_partition(spark: Any, ice: Any) -> None:
    create(ice, 2, "copy-on-write")
    ice.sql("INSERT INTO db.t (part, id) VALUES ('n', 20)")
    ice.sql("INSERT INTO db.t BY NAME SELECT 'm' AS Part, 21 AS id")
    ice.sql("WITH s AS (SELECT 22 AS id) INSERT INTO db.t (id) SELECT id FROM s")
    assert rows(ice)[10:] == [(20, "n", None, None), (21, "m", None, None), (22, None, None, None)]
    ice.sql("INSERT OVERWRITE db.t PARTITION (part = 'a') SELECT 30, 1.0, NULL")
    assert [row[:2] for row in rows(ice)] == [
        (1, "b"), (3, "b"), (5, "b"), (7, "b"), (9, "b"), (20, "n"), (21, "m"), (22, None), (30, "a")
    ]  # fmt: skip
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        ice.sql("INSERT OVERWRITE TABLE db.t VALUES (40, 'b', 0, NULL), (41, 'q', 0, NULL)")
    finally:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    assert [row[0] for row in rows(ice)] == [20, 21, 22, 30, 40, 41]
    ice.sql("INSERT OVERWRITE db.t SELECT id, part, price, home FROM db.t WHERE id > 40")
    assert [row[0] for row in rows(ice)] == [41]
    for refused in (
        "INSERT INTO db.t VALUES (1, 'a')",
        "INSERT INTO db.t (id, nothing) VALUES (1, 2)",
        "INSERT INTO db.t VALUES ('x', 'a', 1.0, NULL)",
        "INSERT INTO db.t (part) VALUES ('a')",
        "INSERT INTO db.t.snapshots SELECT 1",
    ):
        with pytest.raises((IcefieldError, PySparkException)):
            ice.sql(refused)
    assert [row[0] for row in rows(ice)] == [41]


@pytest.mark.slow
def test_what_others_commit_meanwhile_is_a_conflict(
    ice: Any, catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other commit comes between reading and writing."""
    create(ice, 2, "merge-on-read")
    commit = tables.commit_changes

    def after_another(*given: Any, **options: Any) -> None:
        catalog.load_table("db.t").delete("id = 5")
        commit(*given, **options)

    monkeypatch.setattr(tables, "commit_changes", after_another)
    with pytest.raises(ValidationFailed):
        ice.sql("UPDATE db.t SET price = 0 WHERE id > 2")
    assert [row[0] for row in rows(ice)] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert all(row[2] == row[0] * 1.5 for row in rows(ice))


@pytest.mark.skipif(version < "4.1", reason="Spark 4.0 asks an INSERT for every column")
@pytest.mark.slow
def test_branches_are_written_to(ice: Any, catalog: icefield.Catalog) -> None:
    create(ice, 2, "merge-on-read")
    ice.sql("ALTER TABLE db.t CREATE BRANCH audit")
    ice.sql("INSERT INTO db.t.branch_audit (id) VALUES (77)")
    ice.sql("DELETE FROM db.t.branch_audit WHERE id < 9")
    ice.sql("UPDATE db.t.branch_audit SET price = 5 WHERE id = 77")
    assert rows(ice) == first(10)
    assert ice.sql("SELECT id, price FROM db.t VERSION AS OF 'audit' ORDER BY id").collect() == [(9, 13.5), (77, 5.0)]
    (moved,) = ice.sql("CALL test.system.fast_forward('db.t', 'main', 'audit')").collect()
    assert moved.branch_updated == "main"
    assert [row[0] for row in rows(ice)] == [9, 77]


@pytest.mark.skipif(version < "4.1", reason="Spark 4.0 asks an INSERT for every column")
@pytest.mark.slow
def test_procedures_are_called_by_position_and_by_name(ice: Any, catalog: icefield.Catalog) -> None:
    create(ice, 2, "merge-on-read")
    table = catalog.load_table("db.t")
    start = table.current_snapshot()
    assert start is not None
    ice.sql("DELETE FROM db.t WHERE id = 1")
    ice.sql("INSERT INTO db.t (id, part) VALUES (10, 'a')")
    (changes,) = ice.sql(
        "CALL system.create_changelog_view(table => 'db.t', changelog_view => 'changes', "
        f"options => map('start-snapshot-id', '{start.snapshot_id}'))"
    ).collect()
    assert changes.changelog_view == "changes"
    found = ice.sql("SELECT id, _change_type FROM changes ORDER BY id").collect()
    assert found == [(1, "DELETE"), (10, "INSERT")]
    head = table.refresh().current_snapshot()
    assert head is not None
    (moved,) = ice.sql(f"CALL test.system.rollback_to_snapshot('db.t', {start.snapshot_id})").collect()
    assert moved == (head.snapshot_id, start.snapshot_id)
    assert rows(ice) == first(10)
    ice.sql(f"CALL system.set_current_snapshot(table => 'test.db.t', snapshot_id => {head.snapshot_id}L)")
    assert [row[0] for row in ice.sql("CALL system.ancestors_of('db.t')").collect()][-1] == start.snapshot_id
    assert len(rows(ice)) == 10
    (made,) = ice.sql(
        "CALL system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
    ).collect()
    assert made.rewritten_data_files_count == 3
    ice.sql("CALL system.rewrite_manifests('db.t')")
    ice.sql("CALL system.rewrite_position_delete_files('db.t', map('rewrite-all', 'true'))")
    assert ice.sql("CALL system.compute_table_stats('db.t', columns => array('id'))").collect()[0][0].endswith(".stats")
    assert ice.sql("CALL system.compute_partition_stats('db.t')").collect()[0][0]
    ice.sql("CALL system.expire_snapshots('db.t', TIMESTAMP '2100-01-01 00:00:00', 1)")
    assert len(table.refresh().snapshots()) == 1
    assert ice.sql("CALL system.remove_orphan_files(table => 'db.t', dry_run => true)").collect() == []
    ice.sql(f"CALL system.register_table('db.again', '{table.metadata_location}')")
    assert ice.sql("SELECT count(*) FROM db.again").collect() == [(10,)]
    for refused, error in (
        ("CALL system.nothing('db.t')", UnsupportedFeature),
        ("CALL system.ancestors_of()", PySparkException),
        ("CALL system.ancestors_of('db.t', nothing => 1)", PySparkException),
        ("CALL system.rewrite_data_files('db.t', options => map('nothing', '1'))", UnsupportedFeature),
        ("CALL system.rollback_to_snapshot('db.t', 1)", IcefieldError),
    ):
        with pytest.raises(error):
            ice.sql(refused)


@pytest.mark.slow
def test_a_copy_is_made_by_a_procedure(ice: Any, catalog: icefield.Catalog, tmp_path: Path) -> None:
    ice.sql("CREATE TABLE db.t (id bigint) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    ice.sql("INSERT INTO db.t SELECT id FROM range(10)")
    ice.sql("DELETE FROM db.t WHERE id = 3")
    source, target = f"file://{tmp_path}/warehouse", f"file://{tmp_path}/copy"
    call = "CALL system.rewrite_table_path(table => 'db.t', source_prefix => '{}', target_prefix => '{}'{})"
    (made,) = ice.sql(call.format(source, target, "")).collect()
    with Path(made.file_list_location.removeprefix("file://")).open() as lines:
        for place, goal in csv.reader(lines):
            path = Path(goal.removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place.removeprefix("file://"), path)
    assert made.rewritten_manifest_file_paths_count == 2
    assert made.rewritten_delete_file_paths_count == 1
    ice.sql(f"CALL system.register_table('db.copy', '{target}/db/t/metadata/{made.latest_version}')")
    assert ice.sql("SELECT sum(id) AS s FROM db.copy").collect() == [(42,)]
    (quiet,) = ice.sql(call.format(source, target, ", create_file_list => false")).collect()
    assert quiet.file_list_location == "N/A"


@pytest.mark.slow
def test_a_with_clause_stands_in_front_of_changes(ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, name string)")
    ice.sql("WITH v AS (SELECT id FROM range(4)) INSERT INTO db.t SELECT id, 'old' FROM v")
    ice.sql("WITH v AS (SELECT 1 AS id) DELETE FROM db.t WHERE id IN (SELECT id FROM v)")
    ice.sql("WITH v AS (SELECT max(id) AS id FROM db.t) UPDATE db.t SET name = 'last' WHERE id = (SELECT id FROM v)")
    ice.sql(
        "WITH v AS (SELECT 0 AS id, 'first' AS name), w AS (SELECT * FROM v) MERGE INTO db.t USING w ON t.id = w.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert sorted(map(tuple, ice.sql("SELECT * FROM db.t").collect())) == [(0, "first"), (2, "old"), (3, "last")]
    assert ice.sql("WITH q AS (SELECT 1 AS delete) SELECT delete AS merge FROM q").collect() == [(1,)]


@pytest.mark.skipif(version < "4", reason="Spark 3.5 has no MERGE WITH SCHEMA EVOLUTION")
@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("WHEN MATCHED THEN DELETE WHEN MATCHED AND t.id = 1 THEN DELETE", "only the last MATCHED clause"),
        (
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY TARGET THEN INSERT *",
            "only the last NOT MATCHED .BY TARGET. clause",
        ),
        (
            "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE",
            "only the last NOT MATCHED BY SOURCE clause",
        ),
        (
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (nosuch) VALUES (1)",
            "cannot be resolved",
        ),
    ],
)
def test_a_merge_that_cannot_be_done_changes_nothing(
    ice: Any, catalog: icefield.Catalog, clauses: str, said: str
) -> None:
    ice.sql("CREATE TABLE db.t (id bigint)")
    before = catalog.load_table("db.t").metadata_location
    source = "(SELECT 1 AS id, 'x' AS more) s"
    with pytest.raises(PySparkException, match=said):
        ice.sql(f"MERGE WITH SCHEMA EVOLUTION INTO db.t t USING {source} ON t.id = s.id {clauses}")
    assert catalog.load_table("db.t").metadata_location == before


def test_names_of_columns_after_an_alias_are_refused_in_a_merge(ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (id bigint)")
    with pytest.raises(PySparkException, match=r"COLUMN_ALIASES_(IS_)?NOT_ALLOWED"):
        ice.sql("MERGE INTO db.t t USING (VALUES (1)) AS s(id) ON t.id = s.id WHEN MATCHED THEN DELETE")


@pytest.mark.slow
def test_rewrites_take_a_condition_in_sparks_words(ice: Any, catalog: icefield.Catalog) -> None:
    ice.sql("CREATE TABLE db.words (id int, name string)")
    for number in (3, 3, 4):
        ice.sql(f"INSERT INTO db.words VALUES ({number}, 'foo')")
    call = "CALL system.rewrite_data_files(table => 'db.words', options => map('rewrite-all', 'true'), where => '{}')"
    assert ice.sql(call.format('id = 3 and name = "foo"')).collect()[0][:2] == (2, 1)
    assert ice.sql(call.format('name LIKE "b%" OR id != 3')).collect()[0][:2] == (1, 1)
    assert ice.sql(call.format("id >= 5")).collect()[0][:2] == (0, 0)
    with pytest.raises(IcefieldError, match="cannot read the filter"):
        ice.sql(call.format("id + 1 = 4"))
