"""How changes of rows are run: which files are read and written anew, where, and with how many shuffles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
import pytest
from delete_files import data_files
from icefield.errors import ValidationFailed
from icefield_spark import merge_rows, rewriting, row_writer
from icefield_spark.catalog import tables
from icefield_spark.numbered import numbered_frame
from icefield_spark.places import Plan, by_file, place, positions_at

pytestmark = pytest.mark.spark

Committed = Callable[[str], set[str]]

NO_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True)
class Ran:
    """What Spark ran: jobs, and stages that wrote a shuffle."""

    jobs: int
    shuffles: int


@pytest.fixture
def ran(spark: Any) -> Callable[[Callable[[], Any]], Ran]:
    """What Spark runs for something, by its own store of jobs and stages."""
    store = spark.sparkContext._jsc.sc().statusStore()

    def stages() -> dict[int, int]:
        listed = store.stageList(
            None, False, False, spark.sparkContext._gateway.new_array(spark.sparkContext._jvm.double, 0), None
        )
        return {listed.apply(at).stageId(): listed.apply(at).shuffleWriteBytes() for at in range(listed.size())}

    def of(work: Callable[[], Any]) -> Ran:
        jobs, before = store.jobsList(None).size(), stages()
        work()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        after = stages()
        return Ran(
            store.jobsList(None).size() - jobs,
            sum(written > 0 for stage, written in after.items() if stage not in before),
        )

    return of


@pytest.fixture
def without_broadcasts(spark: Any) -> Iterator[None]:
    """Joins as large tables have them."""
    before = spark.conf.get(NO_BROADCAST)
    spark.conf.set(NO_BROADCAST, "-1")
    yield
    spark.conf.set(NO_BROADCAST, before)


def create(ice: Any, mode: str, version: int = 2, partitioned: bool = False) -> None:
    """Four files with the ids 0 to 9, 10 to 19 and so on."""
    modes = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    frame = ice.spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id DIV 10 AS int) AS part", "id * 2 AS val")
    properties = {"format-version": version, **modes}
    ice.create_table_as(frame, "db.t", partition_spec=["part"] if partitioned else [], properties=properties)


def by_ids(catalog: icefield.Catalog) -> dict[int, str]:
    """The files of the table by the tens of their ids."""
    table = catalog.load_table("db.t")
    return {
        int(next(iter(table.scan(row_filter=f"part = {part}").to_arrow()["id"].to_pylist())) // 10): task.file.file_path
        for part in range(4)
        for task in table.scan(row_filter=f"part = {part}").plan_files()
    }


def rows(ice: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in ice.sql("SELECT id, part, val FROM db.t").collect())


MERGE = (
    "MERGE INTO db.t t USING given s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET val = s.val WHEN NOT MATCHED THEN INSERT (id, part, val) VALUES (s.id, 9, s.val)"
)


def give(ice: Any, ids: list[int]) -> None:
    ice.spark.createDataFrame([(each, -each) for each in ids], "id long, val long").createOrReplaceTempView("given")


def test_places_come_apart_as_they_were_put_together() -> None:
    chance = np.random.default_rng(5)
    held = {number: np.unique(chance.integers(0, 1 << 36, 50)) for number in (0, 1, 77, (1 << 27) - 1)}
    places = np.concatenate([place(number, positions) for number, positions in held.items()])
    chance.shuffle(places)
    found = {number: np.sort(positions) for number, positions in by_file(places)}
    assert found.keys() == held.keys()
    assert all(np.array_equal(found[number], held[number]) for number in held)
    assert list(by_file(places[:0])) == []


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost"])
def test_rows_of_local_files_have_their_places_however_the_table_spells_these(
    ice: Any, catalog: icefield.Catalog, tmp_path: Path, prefix: str
) -> None:
    rows = pa.table({"id": range(5)})
    table = catalog.create_table("db.local", rows.schema, location=f"{prefix}{tmp_path}/local")
    table.append(rows)
    plan = Plan()
    frame = numbered_frame(ice.spark, table.scan().select("*", "_pos"), ["id"], plan)
    assert "MapInArrow" not in frame._jdf.queryExecution().executedPlan().toString()
    found = positions_at(plan, np.array([row[-1] for row in frame.where("id > 2").collect()]))
    assert {path: each.tolist() for path, each in found.items()} == {data_files(table)[0].file_path: [3, 4]}
    assert ice.table("db.local", columns=["_file"]).distinct().collect() == [(data_files(table)[0].file_path,)]


@pytest.mark.slow
def test_both_roads_give_rows_the_same_places(
    ice: Any, catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with renamed columns, another spec, a file whose number is taken, and deletes, which are for Arrow alone."""
    create(ice, "merge-on-read", partitioned=True)
    table = catalog.load_table("db.t")
    with table.update_schema() as change:
        change.rename_column("val", "id2").add_column("more", "string")
    with table.update_spec() as spec:
        spec.remove_field("part")
    ice.sql("INSERT INTO db.t SELECT id, 5, id, 'more' FROM range(100, 110, 1, 1)")
    scan = table.refresh().scan().select("*", "_pos")
    columns = ["id", "part", "id2", "more"]

    def found(by_spark: bool, taken: str | None = None) -> tuple[Plan, list[tuple[Any, ...]], int]:
        plan = Plan()
        if taken is not None:
            plan._taken[Plan().number(next(t for t in scan.plan_files() if t.file.file_path == taken))] = "another"
        with monkeypatch.context() as patched:
            if not by_spark:
                patched.setattr("icefield_spark.numbered._by_spark", lambda *_: ([], frozenset()))
            frame = numbered_frame(ice.spark, scan, columns, plan)
        string = frame._jdf.queryExecution().executedPlan().toString()
        return plan, sorted(map(tuple, frame.collect())), string.count("MapInArrow")

    plan, in_arrow, pythons = found(False)
    assert (len(in_arrow), pythons) == (50, 1)
    assert found(True)[1:] == (in_arrow, 0), "clean files need no Python"
    path = next(iter(plan.numbers))
    other, mixed, pythons = found(True, path)
    assert pythons == 1, "a file whose number another one has goes to Arrow"
    named = [
        {
            path: [int(each) for each in positions]
            for path, positions in positions_at(each, np.array([row[-1] for row in rows])).items()
        }
        for each, rows in ((plan, in_arrow), (other, mixed))
    ]
    assert named[0] == named[1]
    ice.sql("DELETE FROM db.t WHERE id IN (3, 104) AND pmod(id, 2) >= 0")
    scan = table.refresh().scan().select("*", "_pos")
    _, with_deletes, _ = found(True)
    assert with_deletes == [row for row in in_arrow if row[0] not in (3, 104)]


@pytest.mark.slow
def test_delete_by_any_condition_is_one_job_without_a_shuffle(ice: Any, ran: Any) -> None:
    create(ice, "merge-on-read")
    ice.explain("db.t")  # finds out, by a job of its own, that Spark reaches the storage
    took = ran(lambda: ice.sql("DELETE FROM db.t WHERE pmod(id * 7, 10) = 4"))
    assert took == Ran(1, 0)
    assert rows(ice) == [(n, n // 10, 2 * n) for n in range(40) if n * 7 % 10 != 4]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_only_files_that_a_key_is_in_are_written_anew(
    ice: Any, catalog: icefield.Catalog, committed: Committed, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Bounds leave out the first and the last file, keys the third: 25 is in its bounds, and in no row of it."""
    create(ice, mode)
    ice.sql("DELETE FROM db.t WHERE id = 25 AND pmod(id, 2) = 1")
    files, before, after = by_ids(catalog), committed("db.t"), dict.fromkeys(range(40))
    assert len(files) == 4
    planned: list[set[str]] = []
    commit = tables.commit_changes

    def noted(spark: Any, target: Any, *given: Any, **options: Any) -> None:
        planned.append(set(target.plan.numbers))
        commit(spark, target, *given, **options)

    monkeypatch.setattr(tables, "commit_changes", noted)
    give(ice, [12, 14, 25])
    ice.sql(MERGE)
    assert planned == [{files[1], files[2]}]
    gone = before - committed("db.t")
    assert gone == ({files[1]} if mode == "copy-on-write" else set())
    wanted = {n: (n, n // 10, 2 * n) for n in after if n != 25}
    wanted |= {12: (12, 1, -12), 14: (14, 1, -14), 25: (25, 9, -25)}
    assert rows(ice) == sorted(wanted.values())


@pytest.mark.slow
def test_partitions_are_left_out_by_the_keys_of_a_source(
    ice: Any, catalog: icefield.Catalog, committed: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(ice, "copy-on-write", partitioned=True)
    files, planned, commit = by_ids(catalog), [], merge_rows.commit_changes

    def noted(spark: Any, target: Any, *given: Any, **options: Any) -> None:
        planned.append(set(target.plan.numbers))
        commit(spark, target, *given, **options)

    monkeypatch.setattr(merge_rows, "commit_changes", noted)
    source = ice.spark.createDataFrame([(3, 33), (3, 34)], "part int, id long")
    ice.merge(source, "db.t", ["part", "id"]).when_matched_delete().commit()
    assert planned == [{files[3]}]
    assert rows(ice) == [(n, n // 10, 2 * n) for n in range(40) if n not in (33, 34)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_merge_takes_one_shuffle_for_the_join_and_one_for_the_write(
    ice: Any, ran: Any, without_broadcasts: None, mode: str, partitioned: bool
) -> None:
    """A shuffle of each side of the join, and one more where rows of a partition come together; no other."""
    create(ice, mode, partitioned=partitioned)
    give(ice, [5, 15, 60])
    took = ran(lambda: ice.sql(MERGE))
    assert took.shuffles == 2 + partitioned
    changed = {5: (5, 0, -5), 15: (15, 1, -15), 60: (60, 9, -60)}
    assert rows(ice) == sorted(({n: (n, n // 10, 2 * n) for n in range(40)} | changed).values())


@pytest.mark.slow
def test_small_sources_are_merged_without_a_shuffle_of_the_table(ice: Any, ran: Any) -> None:
    create(ice, "merge-on-read")
    give(ice, [5, 15, 60])
    assert ran(lambda: ice.sql(MERGE)).shuffles == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_written_by_executors_and_never_by_the_driver(
    ice: Any, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """The driver cannot write in this test; the workers import what they run for themselves."""
    create(ice, mode)

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("the driver wrote a data file")

    monkeypatch.setattr(rewriting, "write_batches", refused)
    monkeypatch.setattr(row_writer, "write_batches", refused)
    monkeypatch.setattr("icefield.writing.write_batches", refused)
    give(ice, [5, 60])
    ice.sql(MERGE)
    ice.sql("DELETE FROM db.t WHERE pmod(id, 10) = 7")
    ice.delete("db.t", "id = 12")
    ice.sql("UPDATE db.t SET val = 0 WHERE id = 13")
    ice.overwrite(ice.spark.createDataFrame([(70, 7, 7)], "id long, part int, val long"), "db.t", "id >= 35")
    wanted = {n: (n, n // 10, 2 * n) for n in range(35) if n % 10 != 7 and n != 12}
    assert rows(ice) == sorted((wanted | {5: (5, 0, -5), 13: (13, 1, 0), 70: (70, 7, 7)}).values())


@pytest.mark.slow
def test_a_merge_is_checked_against_what_others_commit_where_its_keys_are(
    ice: Any, catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that others add between reading and the commit: outside of the keys' bounds they are no conflict."""
    create(ice, "copy-on-write")
    commit = tables.commit_changes

    def after(ids: str) -> Callable[..., None]:
        def made(*given: Any, **options: Any) -> None:
            monkeypatch.setattr(tables, "commit_changes", commit)
            ice.sql(f"INSERT INTO db.t SELECT id, 8, id FROM range({ids})")
            commit(*given, **options)

        return made

    give(ice, [5, 15])
    monkeypatch.setattr(tables, "commit_changes", after("15, 16, 1, 1"))
    with pytest.raises(ValidationFailed):
        ice.sql(MERGE)
    assert len(rows(ice)) == 41
    monkeypatch.setattr(tables, "commit_changes", after("500, 501, 1, 1"))
    give(ice, [5, 16])
    ice.sql(MERGE)
    assert [row for row in rows(ice) if row[0] in (5, 16, 500)] == [(5, 0, -5), (16, 1, -16), (500, 8, 500)]
