"""``CALL system.add_files`` and ``system.snapshot``: files of others, with what names of folders say of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = "SELECT id, IF(id = 3, NULL, concat('a/', id % 2)) AS kind, DATE '2024-02-28' + INT(id) AS day FROM range(4)"


@pytest.fixture
def of_spark(spark: Any) -> Iterator[str]:
    """A table of Spark's own, in folders by a string with a slash or null, and by a date."""
    spark.sql(f"CREATE TABLE default.of_spark USING parquet PARTITIONED BY (kind, day) AS {ROWS}")
    yield "spark_catalog.default.of_spark"
    spark.sql("DROP TABLE default.of_spark")


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> str:
    path = tmp_path / "rows of spark"
    spark.sql(ROWS).write.partitionBy("kind", "day").parquet(str(path))
    hidden = path / "_temporary" / "0"
    hidden.mkdir(parents=True)
    (hidden / "half.parquet").write_bytes(b"of a job that was cut off")
    return str(path)


def rows(ice: Any, name: str, **options: str) -> list[Any]:
    return sorted(ice.table(name, **options).select("id", "kind", "day").collect(), key=lambda row: row.id)


def test_files_in_folders_by_partition_are_added_with_what_the_folders_say(ice: Any, spark: Any, folder: str) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, kind string, day date) PARTITIONED BY (kind, day)")
    added = ice.sql(f"CALL test.system.add_files('db.t', '`parquet`.`{folder}`')").collect()
    assert added == [(4, 4)]
    wanted = sorted(spark.sql(ROWS).collect(), key=lambda row: row.id)
    assert rows(ice, "db.t") == rows(ice, "db.t", road="arrow") == wanted
    assert [row.id for row in ice.table("db.t", where="kind = 'a/1'").collect()] == [1]
    assert ice.sql("SELECT id FROM db.t WHERE kind IS NULL AND day = DATE '2024-03-02'").collect() == [(3,)]
    ice.sql("UPDATE db.t SET kind = 'b' WHERE kind = 'a/0'")
    assert {row.kind for row in rows(ice, "db.t")} == {"b", "a/1", None}


def test_only_the_partitions_that_are_asked_for_are_added(ice: Any, folder: str) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, kind string, day date) PARTITIONED BY (kind, day)")
    call = f"CALL test.system.add_files('db.t', '`parquet`.`{folder}`', map('kind', '{{}}'))"
    assert ice.sql(call.format("a/0")).collect() == [(2, 2)]
    with pytest.raises(InvalidArgument, match="none in the partitions"):
        ice.sql(call.format("nothing"))
    assert [row.id for row in rows(ice, "db.t")] == [0, 2]


def test_files_without_a_suffix_are_added_and_others_passed_over(ice: Any, folder: str) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, kind string, day date) PARTITIONED BY (kind, day)")
    for number, path in enumerate(sorted(Path(folder).rglob("part-*.parquet"))):
        path.rename(path.with_name(("000000_0", "part-00000", "x.parq", "y.pq")[number]))
    (Path(folder) / "readme.txt").write_text("of no format")
    added = ice.sql(f"CALL test.system.add_files('db.t', '`parquet`.`{folder}`')").collect()
    assert added == [(4, 4)]
    assert rows(ice, "db.t", road="arrow") == rows(ice, "db.t")
    assert ice.count("db.t") == 4


def test_files_are_not_added_where_what_their_folders_say_would_be_lost(ice: Any, folder: str) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, kind string, day date) PARTITIONED BY (kind)")
    with pytest.raises(InvalidArgument, match="has no column 'day'"):
        ice.sql(f"CALL test.system.add_files('db.t', '`parquet`.`{folder}`')")
    ice.sql("CREATE TABLE db.u (id bigint, kind int, day date) PARTITIONED BY (kind, day)")
    with pytest.raises(InvalidArgument, match="no value of column 'kind'"):
        ice.sql(f"CALL test.system.add_files('db.u', '`parquet`.`{folder}`')")
    assert ice.count("db.t") == ice.count("db.u") == 0


def test_a_table_of_sparks_own_is_added_and_snapshotted(
    ice: Any, spark: Any, of_spark: str, catalog: icefield.Catalog
) -> None:
    wanted = sorted(spark.sql(ROWS).collect(), key=lambda row: row.id)
    ice.sql("CREATE TABLE db.t (id bigint, kind string, day date) PARTITIONED BY (kind, day)")
    ice.sql(f"CALL test.system.add_files(table => 'db.t', source_table => '{of_spark}')")
    assert rows(ice, "db.t") == wanted
    properties = "map('purpose', 'trial')"
    call = f"CALL test.system.snapshot(source_table => '{of_spark}', table => 'db.s', properties => {properties})"
    assert ice.sql(call).collect() == [(4,)]
    table = catalog.load_table("db.s")
    assert {name: table.properties[name] for name in ("gc.enabled", "snapshot", "purpose")} == {
        "gc.enabled": "false", "snapshot": "true", "purpose": "trial"
    }  # fmt: skip
    assert [field.name for field in table.spec().fields] == ["kind", "day"]
    assert rows(ice, "db.s") == wanted
    ice.sql("DELETE FROM db.s WHERE id = 1")
    assert [row.id for row in rows(ice, "db.s")] == [0, 2, 3]
    assert spark.table(of_spark).count() == 4
    with pytest.raises(UnsupportedFeature, match="write its rows with INSERT"):
        ice.sql("CALL test.system.add_files('db.t', 'db.s')")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("migrate('spark_catalog.default.t')", "CALL system.snapshot"),
        ("expire_snapshots(table => 'db.t', clean_expired_metadata => true)", "stay as they were"),
        ("remove_orphan_files(table => 'db.t', file_list_view => 'v')", "listed anew"),
        ("nothing('db.t')", "there are add_files, ancestors_of"),
    ],
)
def test_what_a_procedure_cannot_do_is_refused_with_what_can(ice: Any, call: str, why: str) -> None:
    ice.sql("CREATE TABLE db.t (id bigint)")
    with pytest.raises((UnsupportedFeature, PySparkException), match=why):
        ice.sql(f"CALL test.system.{call}")


def test_arguments_about_the_threads_of_java_have_no_effect(ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (id bigint, kind string) PARTITIONED BY (kind)")
    ice.sql("INSERT INTO db.t VALUES (1, 'a')")
    ice.sql(
        "CALL test.system.expire_snapshots(table => 'db.t', clean_expired_metadata => false, stream_results => true)"
    )
    ice.sql("CALL test.system.remove_orphan_files(table => 'db.t', dry_run => true, prefix_listing => true)")
    ice.sql("CALL test.system.rewrite_manifests(table => 'db.t', sort_by => array('kind'))")
    assert ice.count("db.t") == 1
