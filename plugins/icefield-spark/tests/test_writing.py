"""What is written for Spark, and who deletes it when it is not committed. Without a Spark session."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import (
    CommitStateUnknown,
    InvalidArgument,
    InvalidExpression,
    MissingPlugin,
    NoSuchSnapshot,
    NoSuchTable,
    ValidationFailed,
)
from icefield_spark.merging import add_columns
from icefield_spark.source import QuerySource
from icefield_spark.writer import WRITE_ID, IcefieldWriter, Written
from icefield_spark.writing import BUFFER_BYTES, ChunkWriter, Outcome, check_fits, spark_write_context, stage
from icefield_sql.strategy import SqlStrategy
from pyspark.sql import types as spark

COLUMNS = spark.StructType(
    [spark.StructField("id", spark.LongType(), False), spark.StructField("name", spark.StringType())]
)
Found = Callable[[], set[str]]


def rows(*ids: int | None) -> Iterator[pa.RecordBatch]:
    """A partition as Spark hands it over."""
    for id_ in ids:
        yield pa.RecordBatch.from_pydict({"id": pa.array([id_], pa.int64()), "name": [f"n{id_}"]})


def written(table: icefield.Table, *ids: int) -> Outcome:
    """The outcome of a job of one task."""
    return Outcome.of([pickle.dumps(ChunkWriter(spark_write_context(table)).write(rows(*ids)))])


def ids(table: icefield.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


# -- tasks --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("spec", [None, ["bucket[40](id)"]], ids=["one partition", "forty partitions"])
def test_a_task_holds_a_bounded_part_of_a_big_partition(catalog: icefield.Catalog, spec: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = catalog.create_table(
        "db.big", schema, partition_spec=spec, properties={"write.parquet.row-group-size-bytes": 1 << 20}
    )
    context = replace(spark_write_context(table), buffer_bytes=8 << 20)
    before, highest, produced = pa.total_allocated_bytes(), 0, 0

    def partition() -> Iterator[pa.RecordBatch]:
        nonlocal highest, produced
        for start in range(60):
            batch = pa.RecordBatch.from_pydict(
                {"id": pa.array(range(start * 10_000, start * 10_000 + 10_000)), "name": ["x" * 100] * 10_000}
            )
            produced += batch.nbytes
            yield batch
            highest = max(highest, pa.total_allocated_bytes() - before)

    files = ChunkWriter(context).write(partition()).files
    assert sum(file.record_count for file in files) == 600_000
    assert produced > 60 << 20
    assert highest < 40 << 20


def test_a_task_is_content_with_one_core_and_its_share_of_memory(people: icefield.Table) -> None:
    context = spark_write_context(people)
    assert context.workers == 1
    assert context.buffer_bytes == BUFFER_BYTES <= 256 << 20


def test_row_groups_of_a_partitioned_table_are_smaller_unless_it_says_otherwise(catalog: icefield.Catalog) -> None:
    """The Parquet writer of each open partition holds rows until it has a row group."""
    schema, size = pa.schema([("id", pa.int64())]), "write.parquet.row-group-size-bytes"
    plain = catalog.create_table("db.plain", schema)
    parted = catalog.create_table("db.parted", schema, partition_spec=["id"])
    given = catalog.create_table("db.given", schema, partition_spec=["id"], properties={size: 7 << 20})
    assert size not in spark_write_context(plain).properties
    assert spark_write_context(parted).properties[size] == str(BUFFER_BYTES // 4)
    assert spark_write_context(given).properties[size] == str(7 << 20)


def test_a_task_that_fails_leaves_no_file(people: icefield.Table, data_files: Found) -> None:
    before = data_files()
    with pytest.raises(InvalidArgument, match="it is required and holds a null"):
        ChunkWriter(spark_write_context(people)).write(rows(7, 8, None))
    assert data_files() == before


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on executors: each call of a writer is another attempt, of partition 3."""
    numbers = itertools.count(4)

    class Task:
        def partitionId(self) -> int:
            return 3

        def taskAttemptId(self) -> int:
            return next(numbers)

        def attemptNumber(self) -> int:
            return 0

        def getLocalProperty(self, name: str) -> None:
            return None

    monkeypatch.setattr("icefield_spark.writing.TaskContext.get", Task)


@pytest.mark.usefixtures("attempts")
def test_the_files_of_two_attempts_never_share_a_name(people: icefield.Table) -> None:
    writer = ChunkWriter(spark_write_context(people))
    files = [*writer.write(rows(1)).files, *writer.write(rows(1)).files]
    names = [file.file_path.rpartition("/")[2] for file in files]
    assert [name.split("-")[:2] for name in names] == [["00003", "4"], ["00003", "5"]]


def test_the_message_of_a_partition_is_one_row_also_when_the_partition_is_empty(people: icefield.Table) -> None:
    writer = pickle.loads(pickle.dumps(ChunkWriter(spark_write_context(people))))
    (full,) = writer(rows(1))
    (empty,) = writer(rows())
    assert [file.record_count for file in Outcome.of(full.column("message").to_pylist()).files] == [1]
    assert Outcome.of(empty.column("message").to_pylist()).files == []


# -- before the job -----------------------------------------------------------------------------------------------


def fields(*found: spark.StructField) -> spark.StructType:
    return spark.StructType(list(found))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (fields(spark.StructField("id", spark.LongType()), spark.StructField("x", spark.LongType())), "'x'"),
        (fields(spark.StructField("ID", spark.LongType())), "names are compared exactly, and there is a 'id'"),
        (fields(spark.StructField("name", spark.StringType())), "'id'.*not supplied"),
        (fields(spark.StructField("id", spark.StringType())), "not written as long"),
        (fields(spark.StructField("id", spark.DayTimeIntervalType())), "no type for Spark's interval"),
        (fields(spark.StructField("id", spark.LongType()), spark.StructField("id", spark.LongType())), "comes twice"),
    ],
    ids=["unknown", "case", "missing", "type", "no such type", "twice"],
)
def test_columns_that_do_not_fit_are_stated_before_any_row_is_computed(
    people: icefield.Table, columns: spark.StructType, reason: str, data_files: Found
) -> None:
    before = data_files()
    with pytest.raises(InvalidArgument, match=reason):
        check_fits(spark_write_context(people), columns)
    assert data_files() == before


def test_columns_that_fit_are_let_through_in_any_order_and_without_those_that_may_be_null(
    people: icefield.Table,
) -> None:
    context = spark_write_context(people)
    check_fits(
        context, fields(spark.StructField("name", spark.StringType()), spark.StructField("id", spark.ByteType()))
    )
    check_fits(context, fields(spark.StructField("id", spark.LongType())))


def test_a_format_without_a_plugin_is_stated_before_any_row_is_computed(people: icefield.Table) -> None:
    context = replace(spark_write_context(people), file_format="nosuch")
    with pytest.raises(MissingPlugin):
        check_fits(context, COLUMNS)


def test_only_columns_that_a_table_has_not_are_added_to_it(people: icefield.Table) -> None:
    before = people.schema()
    home = fields(spark.StructField("Zip", spark.LongType()), spark.StructField("street", spark.StringType()))
    new = spark.StructField("x.y", spark.LongType())
    columns = fields(spark.StructField("ID", spark.LongType()), spark.StructField("Home", home), new)
    with people.transaction() as transaction:
        add_columns(transaction, columns, False)
        assert [str(field) for field in transaction.shape.schema().fields[:2]] == list(map(str, before.fields[:2]))
    after = people.refresh().schema()
    assert {after.find_column_name(id_) for id_ in after.field_ids - before.field_ids} == {"home.street", "x.y"}
    assert after.find_field("id").required


# -- the commit ---------------------------------------------------------------------------------------------------


def test_staged_files_are_committed_with_the_engine_in_the_summary(people: icefield.Table) -> None:
    with people.transaction() as transaction:
        stage(transaction, written(people, 4, 5), None, snapshot_properties={"job": "nightly"})
    assert ids(people) == [1, 2, 3, 4, 5]
    summary = people.current_snapshot().summary
    assert (summary["engine-name"], summary["job"]) == ("spark", "nightly")


def test_files_of_a_commit_that_fails_are_deleted(people: icefield.Table, catalog: Any, data_files: Found) -> None:
    before = data_files()
    transaction = people.transaction()
    stage(transaction, written(people, 4), None)
    assert data_files() > before
    catalog.drop_table("db.people")
    with pytest.raises(NoSuchTable):
        transaction.commit_transaction()
    assert data_files() == before


@pytest.mark.slow
def test_files_of_a_commit_whose_outcome_is_unknown_stay(
    people: icefield.Table, data_files: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> None:
        raise CommitStateUnknown("no reply")

    before = data_files()
    transaction = people.transaction()
    stage(transaction, written(people, 4), None)
    made = data_files() - before
    monkeypatch.setattr(SqlStrategy, "commit", lost)
    with pytest.raises(CommitStateUnknown):
        transaction.commit_transaction()
    assert made
    assert data_files() == before | made


# -- the data source's writer -------------------------------------------------------------------------------------


@pytest.fixture
def new_writer(people: icefield.Table, options: dict[str, str]) -> Callable[..., IcefieldWriter]:
    """A writer of the data source as a task or the committing process has it: pickled and unpickled."""

    def made(overwrite: bool = False, **more: str) -> IcefieldWriter:
        given = {**options, "path": "db.people", **{key.replace("_", "-"): value for key, value in more.items()}}
        return pickle.loads(pickle.dumps(IcefieldWriter(QuerySource(given), COLUMNS, overwrite)))

    return made


NewWriter = Callable[..., IcefieldWriter]


@pytest.mark.usefixtures("attempts")
def test_the_writer_appends_what_the_messages_name_and_nothing_else(
    new_writer: NewWriter, people: icefield.Table
) -> None:
    writer = new_writer()
    loser, winner, other = writer.write(rows(4)), writer.write(rows(4)), writer.write(rows(5))
    assert isinstance(loser, Written)
    writer.commit([winner, other])
    assert ids(people) == [1, 2, 3, 4, 5]


def test_the_writer_replaces_all_rows_or_those_of_a_filter(new_writer: NewWriter, people: icefield.Table) -> None:
    writer = new_writer(overwrite=True, overwrite_where="id >= 2")
    writer.commit([writer.write(rows(9))])
    assert ids(people) == [1, 9]
    writer = new_writer(overwrite=True)
    writer.commit([writer.write(rows(7))])
    assert ids(people) == [7]


def test_the_writer_writes_to_a_branch_and_puts_strings_into_the_summary(
    new_writer: NewWriter, people: icefield.Table
) -> None:
    people.manage_snapshots().create_branch(people.current_snapshot().snapshot_id, "audit").commit()
    writer = new_writer(branch="audit", **{"snapshot-property.job": "nightly"})
    writer.commit([writer.write(rows(4))])
    assert ids(people) == [1, 2, 3]
    assert people.scan(ref="audit").to_arrow().num_rows == 4
    assert people.snapshot_by_name("audit").summary["job"] == "nightly"


def test_what_is_staged_for_no_branch_moves_none(people: icefield.Table) -> None:
    before = people.refs()
    outcome = written(people, 4)
    with people.transaction() as transaction:
        stage(transaction, outcome, None, branch=None)
    assert people.refs() == before
    people.manage_snapshots().cherry_pick(people.snapshots()[-1].snapshot_id).commit()
    assert ids(people) == [1, 2, 3, 4]


def test_the_writer_stages_what_names_a_wap_id_in_a_table_for_audits(
    new_writer: NewWriter, people: icefield.Table
) -> None:
    people.set_properties({"write.wap.enabled": "true"})
    writer = new_writer(**{"snapshot-property.wap.id": "w"})
    writer.commit([writer.write(rows(4))])
    assert ids(people) == [1, 2, 3]
    people.manage_snapshots().publish_changes("w").commit()
    assert ids(people) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"path": "db.nosuch"}, NoSuchTable),
        ({"overwrite_where": "nosuch = 1"}, InvalidExpression),
        ({"branch": "nosuch"}, NoSuchSnapshot),
        ({"branch": ""}, InvalidArgument),
    ],
)
def test_a_target_that_is_not_there_is_stated_when_the_writer_is_made(
    new_writer: NewWriter, given: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        new_writer(overwrite=True, **given)


def test_a_table_that_was_replaced_meanwhile_does_not_get_the_files_of_the_old_one(
    new_writer: NewWriter, people: icefield.Table, catalog: icefield.Catalog
) -> None:
    writer = new_writer()
    message = writer.write(rows(4))
    catalog.drop_table("db.people")
    again = catalog.create_table("db.people", people.schema())
    with pytest.raises(ValidationFailed, match="was replaced"):
        writer.commit([message])
    assert again.refresh().current_snapshot() is None


def test_abort_deletes_what_tasks_wrote_when_one_of_them_failed(
    new_writer: NewWriter, people: icefield.Table, data_files: Found
) -> None:
    before = data_files()
    writer = new_writer()
    message = writer.write(rows(4))
    people.append(pa.table({"id": pa.array([5], pa.int64())}))  # what others commit meanwhile does not matter
    meanwhile = data_files() - before - {file.file_path for file in Outcome.of([message.message]).files}
    writer.abort([message, None])
    assert data_files() == before | meanwhile
    assert ids(people) == [1, 2, 3, 5]


def test_abort_deletes_nothing_when_every_task_succeeded_for_then_the_commit_may_have_come_to_pass(
    new_writer: NewWriter, people: icefield.Table, data_files: Found
) -> None:
    writer = new_writer()
    message = writer.write(rows(4))
    written = data_files()
    writer.abort([message])  # the commit's outcome is unknown, and the table does not show it yet
    assert data_files() == written
    writer.commit([message])
    writer.abort([message])  # the commit's reply was lost
    assert ids(people) == [1, 2, 3, 4]


def test_abort_reads_the_table_again_and_deletes_nothing_of_a_commit_that_it_finds_there(
    new_writer: NewWriter, people: icefield.Table
) -> None:
    writer = new_writer()
    message = writer.write(rows(4))
    writer.commit([message])
    people.refresh()
    people.append(pa.table({"id": pa.array([5], pa.int64())}))
    writer.abort([message, None])  # against Spark's own rules, and still nothing is lost
    assert ids(people) == [1, 2, 3, 4, 5]
    assert [WRITE_ID in snapshot.summary for snapshot in people.snapshots()] == [False, True, False]


def test_abort_is_silent_when_the_catalog_is_gone(new_writer: NewWriter, catalog: Any, data_files: Found) -> None:
    writer = new_writer()
    message = writer.write(rows(4))
    written = data_files()
    catalog.drop_table("db.people")
    writer.abort([message, None])
    assert data_files() == written


def test_a_commit_that_fails_cleans_up_itself_so_that_abort_need_not(
    new_writer: NewWriter, data_files: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise ValidationFailed("no")

    before = data_files()
    writer = new_writer()
    message = writer.write(rows(4))
    monkeypatch.setattr(SqlStrategy, "commit", refused)
    with pytest.raises(ValidationFailed):
        writer.commit([message])
    assert data_files() == before
