"""Deletes, updates, merges and upserts by the session: compared with rows in Python, and what they leave behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.types import LongType
from icefield_spark import row_level
from icefield_spark.transforms import transformed

pytestmark = pytest.mark.spark

Found = Callable[[], set[str]]
Committed = Callable[[str], set[str]]
Row = tuple[Any, ...]

KINDS = ("delete", "update", "merge")


def create(ice: Any, version: int, mode: str, file_format: str = "parquet") -> None:
    modes = {f"write.{kind}.mode": mode for kind in KINDS}
    properties = {"format-version": version, "write.format.default": file_format, **modes}
    frame = ice.spark.range(0, 40, 1, 2).selectExpr(
        "IF(id % 13 = 5, NULL, id) AS id", "CAST(id % 4 AS int) AS part", "concat('n', id) AS name"
    )
    ice.create_table_as(frame, "db.t", partition_spec=["part"], properties=properties)


def rows(ice: Any, columns: str = "id, part, name") -> list[Row]:
    return sorted((tuple(row) for row in ice.sql(f"SELECT {columns} FROM db.t").collect()), key=repr)


@pytest.fixture
def jobs(spark: Any) -> Iterator[Callable[[], int]]:
    """How many jobs Spark has run since."""
    group = "counted"
    spark.sparkContext.setJobGroup(group, group)
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    yield lambda: len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) - before
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.slow
def test_only_files_with_rows_that_go_are_rewritten_and_on_executors(
    ice: Any, catalog: icefield.Catalog, committed: Committed, jobs: Callable[[], int]
) -> None:
    create(ice, 2, "copy-on-write")
    held, taken = committed("db.t"), jobs()
    ice.delete("db.t", "part = 3")
    assert jobs() == taken, "what partitions decide takes no job"
    assert len(held - committed("db.t")) == 1
    given = ice.sql("DELETE FROM db.t WHERE part = 2")
    assert (given.columns, given.collect()) == ([], [])
    assert jobs() == taken, "nor does what such a statement gives"
    assert len(held - committed("db.t")) == 2
    frame = ice.spark.createDataFrame([(100, 0, "new")], "id long, part int, name string")
    ice.overwrite(frame, "db.t", "id < 8")
    assert jobs() > taken + 1
    left = [row for row in rows(ice) if row[1] == 0]
    numbers = [number for number in range(8, 40, 4) if number % 13 != 5]
    nulls = [f"n{number}" for number in range(0, 40, 4) if number % 13 == 5]
    wanted = [(n, 0, f"n{n}") for n in numbers] + [(None, 0, n) for n in nulls] + [(100, 0, "new")]
    assert left == sorted(wanted, key=repr)
    ice.delete("db.t", "name = 'new'")
    ice.delete("db.t", "part = 1")
    for snapshot in catalog.load_table("db.t").snapshots():
        assert snapshot.summary["spark.app.id"] == ice.spark.sparkContext.applicationId


@pytest.mark.slow
def test_several_rows_of_the_source_for_one_row_leave_no_file(
    ice: Any, committed: Committed, data_files: Found
) -> None:
    create(ice, 2, "copy-on-write")
    before = rows(ice)
    twice = ice.spark.createDataFrame([(1, 1, "a"), (1, 1, "b"), (900, 0, "c")], "id long, part int, name string")
    with pytest.raises(InvalidArgument, match="several rows of the source"):
        ice.upsert(twice, "db.t", ["id"])
    assert rows(ice) == before
    assert data_files() == committed("db.t")


@pytest.mark.slow
def test_what_others_commit_between_reading_and_the_commit_is_a_conflict(
    ice: Any, catalog: icefield.Catalog, committed: Committed, data_files: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(ice, 2, "copy-on-write")
    find = row_level.found_by_filter

    def then_another(*given: Any) -> Any:
        found = find(*given)
        ice.append(ice.spark.createDataFrame([(3, 3, "late")], "id long, part int, name string"), "db.t")
        return found

    monkeypatch.setattr(row_level, "found_by_filter", then_another)
    with pytest.raises(ValidationFailed):
        ice.delete("db.t", "id = 3")
    assert data_files() == committed("db.t")
    with catalog.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"write.delete.isolation-level": "snapshot"})
    ice.delete("db.t", "id = 3")
    assert [row for row in rows(ice) if row[0] == 3] == [(3, 3, "late")]


def test_spark_computes_buckets_as_iceberg_does(ice: Any) -> None:
    frame = ice.spark.range(-50, 50).selectExpr("id * 987654321987 AS id", "int(id) AS n")
    bucket = ice.create_table("db.b", frame, partition_spec=["bucket[16](id)"]).spec().fields[0].transform
    for name in ("id", "n"):
        found = frame.selectExpr(name, f"{transformed(name, bucket, LongType())} AS b").collect()
        assert all(bucket.apply_value(row[0], LongType()) == row.b for row in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "mode", "file_format"),
    [
        (2, "copy-on-write", "parquet"),
        (2, "merge-on-read", "avro"),
        (3, "copy-on-write", "parquet"),
        (3, "merge-on-read", "parquet"),
        (2, "copy-on-write", "orc"),
    ],
)
def test_changes_of_rows_agree_with_rows_in_python(
    ice: Any,
    catalog: icefield.Catalog,
    committed: Committed,
    data_files: Found,
    version: int,
    mode: str,
    file_format: str,
) -> None:
    """With nulls in keys, a column that comes later, and deletes over deletes."""
    create(ice, version, mode, file_format)
    chance = random.Random(version)
    model = rows(ice)
    columns = "id, part, name"
    for turn in range(4):
        if turn == 2:
            catalog.load_table("db.t").update_schema().add_column("more", "long").commit()
            model, columns = [(*row, None) for row in model], "id, part, name, more"
        keys = chance.sample(range(60), 8)
        source = [(key, chance.randrange(4), f"s{turn}", *([turn] if turn > 1 else [])) for key in keys]
        source.append((None, 0, f"null{turn}", *([turn] if turn > 1 else [])))
        frame = ice.spark.createDataFrame(source, "id long, part int, name string" + ", more long" * (turn > 1))
        (
            ice.merge(frame, "db.t", ["id"])
            .when_matched_delete("target.part = 3")
            .when_matched_update_all("source.part <> 2")
            .when_not_matched_insert_all()
            .commit()
        )
        model = merged(model, source)
        assert rows(ice, columns) == sorted(model, key=repr)
        some = chance.sample(range(60), 6)
        ice.update(
            "db.t", {"name": "concat(name, '!')", "part": "part + 1"}, f"pmod(id, 60) IN ({', '.join(map(str, some))})"
        )
        model = [(row[0], row[1] + 1, f"{row[2]}!", *row[3:]) if row[0] in some else row for row in model]
        ice.delete("db.t", f"id in ({', '.join(map(str, some[:3]))})")
        ice.sql(f"DELETE FROM db.t WHERE pmod(id, 60) = {some[3]} OR (id IS NULL AND part = 0)")
        model = [row for row in model if row[0] not in some[:4] and not (row[0] is None and row[1] == 0)]
        assert rows(ice, columns) == sorted(model, key=repr)
    known = catalog.load_table("db.t").inspect
    assert data_files() <= {
        *known.all_data_files()["file_path"].to_pylist(),
        *known.all_delete_files()["file_path"].to_pylist(),
    }


def merged(model: list[Row], source: list[Row]) -> list[Row]:
    by_key = {row[0]: row for row in source if row[0] is not None}
    after, met = [], {row[0] for row in model}
    for row in model:
        new = by_key.get(row[0])
        if new is None:
            after.append(row)
        elif row[1] != 3:
            after.append(row if new[1] == 2 else new)
    return after + [row for row in source if row[0] is None or row[0] not in met]
