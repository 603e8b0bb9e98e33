"""The streaming sink, step by step: each epoch once, whatever dies in between."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import CommitStateUnknown, InvalidArgument
from icefield_spark.arrow import spark_arrow_schema
from icefield_spark.source import QuerySource
from icefield_spark.streaming import epoch_properties, is_written
from icefield_spark.streaming import messages as tasks
from icefield_spark.streaming.stream_writer import IcefieldStreamWriter
from pyspark.sql.types import LongType, StringType, StructField, StructType

QUERY = "6f0f0b0e-6c1f-4a53-9d0b-0123456789ab"


@dataclass(frozen=True)
class Task:
    """What a task knows of itself, in the place of Spark's ``TaskContext``."""

    number: int = 0
    attempt: int = 0
    epoch: int = 0
    run: str = "run-1"

    def getLocalProperty(self, name: str) -> str | None:
        return {
            "sql.streaming.queryId": QUERY,
            "streaming.sql.batchId": str(self.epoch),
            "spark.jobGroup.id": self.run,
            "spark.app.id": "app-1",
        }.get(name)

    def partitionId(self) -> int:
        return self.number

    def taskAttemptId(self) -> int:
        return self.number + 10 * self.attempt

    def attemptNumber(self) -> int:
        return self.attempt


COLUMNS = StructType([StructField("id", LongType()), StructField("state", StringType())])
Rows = list[tuple[int, str]]


class Driver:
    """A run of a query: what Spark does of an epoch, one step at a time."""

    def __init__(self, options: dict[str, str], patch: pytest.MonkeyPatch) -> None:
        self._options = {**options, "path": "db.sink", "checkpointLocation": "/tmp/c"}
        self._patch = patch
        self.complete = False

    def given(self, **more: str) -> Driver:
        """The same with more options."""
        self._options |= {name.replace("_", "-"): value for name, value in more.items()}
        return self

    def writer(self) -> IcefieldStreamWriter:
        """As each process makes it."""
        return IcefieldStreamWriter(QuerySource(dict(self._options)), COLUMNS, self.complete)

    def write(self, epoch: int, *parts: Rows, run: str = "run-1", attempt: int = 0) -> list[Any]:
        """The tasks of an epoch, each with its rows; their messages as the driver gets them."""
        planned, found = pickle.dumps(self.writer()), []
        for number, rows in enumerate(parts):
            self._patch.setattr(tasks.TaskContext, "get", lambda at=Task(number, attempt, epoch, run): at)
            columns = {"id": [row[0] for row in rows], "state": [row[1] for row in rows]}
            batch = pa.RecordBatch.from_pydict(columns, schema=spark_arrow_schema(COLUMNS))
            found.append(pickle.loads(pickle.dumps(pickle.loads(planned).write(iter([batch])))))
        return found

    def commit(self, epoch: int, messages: list[Any]) -> None:
        """In a process of its own."""
        self.writer().commit(messages, epoch)

    def run(self, epoch: int, *parts: Rows, run: str = "run-1") -> None:
        """A whole epoch."""
        self.commit(epoch, self.write(epoch, *parts, run=run))


@pytest.fixture
def sink(catalog: icefield.Catalog) -> icefield.Table:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("state", pa.string())])
    return catalog.create_table("db.sink", columns)


@pytest.fixture
def driver(sink: icefield.Table, options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Driver:
    return Driver(options, monkeypatch)


@pytest.fixture
def orphans(sink: icefield.Table) -> Callable[[], set[str]]:
    """The files of the table that no version refers to."""

    def found() -> set[str]:
        found = sink.refresh().maintenance.remove_orphan_files(older_than="2100-01-01", dry_run=True, allow_recent=True)
        return set(found.orphans["location"].to_pylist())

    return found


def ids(table: icefield.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_small_tasks_share_a_file_and_large_ones_write_their_own(sink: icefield.Table, driver: Driver) -> None:
    driver.run(0, [(1, "a")], [(2, "b")], [])
    assert (ids(sink), sink.current_snapshot().summary["added-data-files"]) == ([1, 2], "1")
    driver.given(small_task_bytes="0").run(1, [(3, "a")], [(4, "b")])
    summary = sink.refresh().current_snapshot().summary
    assert (ids(sink), summary["added-data-files"]) == ([1, 2, 3, 4], "2")
    assert (summary["spark.sql.streaming.queryId"], summary["spark.sql.streaming.epochId"]) == (QUERY, "1")
    assert summary["spark.app.id"] == "app-1"
    before = len(sink.snapshots())
    driver.run(2, [], [])
    assert len(sink.refresh().snapshots()) == before


@pytest.mark.parametrize("small", ["0", "1000000"])
def test_an_epoch_that_is_run_again_is_in_the_table_once_and_leaves_no_file(
    sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]], small: str
) -> None:
    driver.given(small_task_bytes=small)
    driver.run(0, [(1, "a")])
    lost = driver.write(1, [(2, "b")], [(3, "c")])  # killed before the commit
    driver.run(1, [(2, "b")], [(3, "c")], run="run-2")
    assert (ids(sink), orphans()) == ([1, 2, 3], set())
    driver.run(1, [(2, "b")], [(3, "c")], run="run-3")  # killed after the commit, before Spark had noted it
    driver.commit(1, lost)  # the first driver was not dead, only slow
    driver.run(0, [(1, "a")])
    assert (ids(sink), orphans()) == ([1, 2, 3], set())


def test_two_drivers_at_one_epoch_at_one_time_commit_it_once(
    sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.given(small_task_bytes="0")
    first, second = driver.write(0, [(1, "a")]), driver.write(0, [(1, "a")], run="run-2")
    load, meets = QuerySource.load, [first]

    def other_comes_first(source: QuerySource, catalog: icefield.Catalog) -> icefield.Table:
        table = load(source, catalog)
        if meets:
            driver.commit(0, meets.pop())
        return table

    monkeypatch.setattr(QuerySource, "load", other_comes_first)
    driver.commit(0, second)
    assert (ids(sink), len(sink.snapshots()), orphans()) == ([1], 1, set())


def test_a_commit_in_doubt_is_settled_when_the_epoch_is_run_again(
    sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.given(small_task_bytes="0")
    made = driver.write(0, [(1, "a")])
    append = IcefieldStreamWriter._append

    def unknown(self: Any, *given: Any) -> Any:
        append(self, *given)
        raise CommitStateUnknown("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr(IcefieldStreamWriter, "_append", unknown)
        with pytest.raises(CommitStateUnknown):
            driver.commit(0, made)
    driver.writer().abort(made, 0)  # by Spark, with every message
    assert ids(sink) == [1]
    driver.writer().abort([*made, None], 0)  # even if it says that a task failed
    assert ids(sink) == [1]
    driver.commit(0, made)  # the very same files once more
    driver.run(0, [(1, "a")], run="run-2")
    assert (ids(sink), orphans()) == ([1], set())


def test_a_failed_batch_takes_back_its_files(
    sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]]
) -> None:
    driver.given(small_task_bytes="0")
    made = driver.write(0, [(1, "a")], [(2, "b")])
    driver.writer().abort([*made, None], 0)
    assert (ids(sink), orphans()) == ([], set())
    driver.writer().abort([None, None], 0)


def test_files_of_an_epoch_that_a_rolled_back_version_has_stay(
    sink: icefield.Table, driver: Driver, catalog: icefield.Catalog
) -> None:
    driver.given(small_task_bytes="0")
    driver.run(0, [(1, "a")])
    first = sink.refresh().current_snapshot().snapshot_id
    driver.run(1, [(2, "b")])
    second = sink.refresh().current_snapshot().snapshot_id
    sink.manage_snapshots().rollback_to_snapshot(first).commit()
    driver.run(1, [(2, "again")], run="run-2")
    assert sink.refresh().scan(snapshot_id=second).to_arrow()["state"].to_pylist() in (["a", "b"], ["b", "a"])
    assert ids(sink) == [1, 2]


def test_attempts_of_tasks_that_lost_are_deleted(
    sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.given(small_task_bytes="0")
    planned = driver.writer()
    monkeypatch.setattr(driver, "writer", lambda: planned)
    driver.write(0, [(1, "a")])
    won = driver.write(0, [(1, "a")], attempt=1)
    driver.commit(0, won)
    assert (ids(sink), orphans()) == ([1], set())


def test_complete_replaces_all_rows(sink: icefield.Table, driver: Driver) -> None:
    driver.complete = True
    for epoch, rows in enumerate(([(1, "1")], [(1, "2"), (2, "1")], [])):
        driver.run(epoch, rows)
        driver.run(epoch, rows, run="run-2")
        assert sink.refresh().scan().count() == len(rows)


def test_an_upsert_replaces_rows_by_key(sink: icefield.Table, driver: Driver, orphans: Callable[[], set[str]]) -> None:
    driver.given(upsert_columns="id")
    driver.run(0, [(1, "a"), (2, "a")], [(3, "a")])
    driver.run(1, [(2, "b"), (2, "c")], [(4, "b")])
    driver.run(1, [(2, "b"), (2, "c")], [(4, "b")], run="run-2")
    found = {row["id"]: row["state"] for row in sink.refresh().scan().to_arrow().to_pylist()}
    assert (ids(sink), found) == ([1, 2, 3, 4], {1: "a", 2: "c", 3: "a", 4: "b"})
    with pytest.raises(InvalidArgument, match=r"several tasks.*repartition\('id'\)"):
        driver.run(2, [(1, "x")], [(1, "y")])
    assert orphans() == set()
    with sink.update_schema() as update:
        update.set_identifier_fields("id")
    driver.given(upsert="true", upsert_columns="").run(2, [(1, "d")])
    assert ids(sink) == [1, 2, 3, 4]


def test_options_that_do_not_fit_are_refused(driver: Driver) -> None:
    with pytest.raises(InvalidArgument, match="upsert needs the columns"):
        driver.given(upsert="true").writer()
    with pytest.raises(InvalidArgument, match=r"inside no other, not 'home.city'"):
        driver.given(upsert_columns="home.city").writer()
    driver.complete = True
    with pytest.raises(InvalidArgument, match="complete replaces all rows"):
        driver.given(upsert_columns="id").writer()
    with pytest.raises(InvalidArgument, match="is for reading"):
        driver.given(max_files="3").writer()


def test_a_function_of_foreach_batch_finds_what_it_has_appended(sink: icefield.Table) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "state": ["a"]})
    for epoch in (0, 0, 1, 0, 1):
        if not is_written(sink, QUERY, epoch):
            sink.append(rows, snapshot_properties=epoch_properties(QUERY, epoch))
    assert ids(sink) == [1, 1]


def test_an_epoch_whose_snapshot_has_expired_is_in_the_table_once(sink: icefield.Table, driver: Driver) -> None:
    driver.run(0, [(1, "a")])
    driver.run(1, [(2, "b")])
    sink.refresh().append(pa.table({"id": pa.array([9], pa.int64()), "state": ["z"]}))
    sink.append(sink.scan("id = 9").to_arrow(), snapshot_properties=epoch_properties("mine", 4))
    sink.maintenance.rewrite_data_files(rewrite_all=True)
    sink.delete("id = 9")
    sink.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
    assert len(sink.refresh().snapshots()) == 1
    driver.run(1, [(2, "b")], run="run-2")
    driver.run(0, [(1, "a")], run="run-2")
    assert (ids(sink), is_written(sink, "mine", 4), is_written(sink, "mine", 5)) == ([1, 2], True, False)
    driver.run(2, [(3, "c")], run="run-2")
    assert ids(sink) == [1, 2, 3]


def test_what_travels_to_executors_holds_no_option(driver: Driver) -> None:
    assert b"sqlite" not in pickle.dumps(driver.writer())
    assert repr(driver.writer()) == "icefield"
