"""Streams of what is committed to a table: offsets and batches, as Spark's worker on the driver asks for them."""

from __future__ import annotations

import json
import pickle
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, NoSuchSnapshot, UnsupportedFeature
from icefield_spark.source import QuerySource
from icefield_spark.streaming.stream_reader import IcefieldStreamReader
from icefield_spark.types import to_spark_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StringType, StructField, StructType

ID = StructType([StructField("id", LongType())])


@pytest.fixture
def numbers(catalog: icefield.Catalog) -> icefield.Table:
    """Three appends: of two files with two rows each, of one file with three, of one with one."""
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    table = catalog.create_table("db.numbers", columns, partition_spec=["kind"])
    append(table, 1, 2, 3, 4)
    append(table, 5, 7, 9)
    append(table, 10)
    return table


def append(table: icefield.Table, *ids: int) -> int:
    """Add rows; the id of their snapshot."""
    table.refresh().append(pa.table({"id": ids, "kind": [f"k{each % 2}" for each in ids]}))
    found = table.current_snapshot()
    assert found is not None
    return found.snapshot_id


def flat(batches: list[list[Any]]) -> list[Any]:
    """The rows of all batches."""
    return [row for batch in batches for row in batch]


class Stream:
    """A reader as Spark's worker makes it, and the checkpoint's last offset as the JSON that Spark keeps."""

    def __init__(self, options: dict[str, str], columns: StructType | None = None, at: str = "", **more: str) -> None:
        source = QuerySource({**options, "path": "db.numbers", **{name.replace("_", "-"): more[name] for name in more}})
        self.reader = IcefieldStreamReader(source, columns or to_spark_schema(source.shown(source.table())))
        self.at = at or json.dumps(self.reader.initialOffset())

    def next(self, limit: Any = None) -> list[Any] | None:
        """The rows of the next batch, read where executors are; None where nothing came."""
        start = json.loads(self.at)
        to = json.dumps(self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit()))
        if to == self.at:
            return None
        rows = self.rows(self.at, to)
        self.at = to
        return rows

    def rows(self, start: str, end: str) -> list[Any]:
        """The rows between two offsets, of which the first column; of changes all columns."""
        parts, reader = pickle.loads(
            pickle.dumps((self.reader.partitions(json.loads(start), json.loads(end)), self.reader))
        )
        found = [tuple(row.values()) for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted(row[0] for row in found) if found and len(found[0]) < 3 else sorted(found)

    def all(self, limit: Any = None) -> list[list[Any]]:
        """All batches."""
        return list(iter(lambda: self.next(limit), None))


def test_without_a_limit_a_batch_is_all_that_came(numbers: icefield.Table, options: dict[str, str]) -> None:
    stream = Stream(options)
    assert stream.all() == [[1, 2, 3, 4, 5, 7, 9, 10]]
    append(numbers, 11)
    assert stream.all() == [[11]]
    assert Stream(options, at=stream.at).all() == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_files": "1"}, [[2, 4], [1, 3], [5, 7, 9], [10]]),
        ({"streaming_max_files_per_micro_batch": "3"}, [[1, 2, 3, 4, 5, 7, 9], [10]]),
        ({"max_rows": "6"}, [[1, 2, 3, 4], [5, 7, 9, 10]]),
        ({"max_rows": "1"}, [[2, 4], [1, 3], [5, 7, 9], [10]]),
        ({"max_rows": "4", "max_files": "1"}, [[2, 4], [1, 3], [5, 7, 9], [10]]),
    ],
)
def test_a_batch_takes_as_many_files_and_rows_as_it_may(
    numbers: icefield.Table, options: dict[str, str], limits: dict[str, str], expected: list[list[int]]
) -> None:
    stream = Stream(options, **limits)
    found = []
    while (batch := stream.next()) is not None:
        found.append(batch)
        stream = Stream(options, at=stream.at, **limits)  # each batch after a restart
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    assert Stream(options, **limits).all(ReadAllAvailable()) == [[1, 2, 3, 4, 5, 7, 9, 10]]


def test_a_batch_that_is_run_again_has_the_same_rows(numbers: icefield.Table, options: dict[str, str]) -> None:
    for more in ({}, {"stream_from": "latest"}, {"stream_from": "state"}, {"max_files": "1"}):
        stream = Stream(options, **more)
        start, first = stream.at, stream.next()
        append(numbers, 100)
        assert Stream(options, **more).rows(start, stream.at) == first


def test_available_now_ends_with_what_was_there(numbers: icefield.Table, options: dict[str, str]) -> None:
    stream = Stream(options, max_files="2")
    stream.reader.prepareForTriggerAvailableNow()
    append(numbers, 11)
    assert flat(stream.all()) == [1, 2, 3, 4, 5, 7, 9, 10]
    assert Stream(options, at=stream.at).all() == [[11]]


def test_a_stream_begins_with_a_snapshot_a_time_the_state_or_what_comes(
    numbers: icefield.Table, options: dict[str, str]
) -> None:
    second = numbers.snapshots()[1]
    assert Stream(options, stream_from_snapshot_id=str(second.snapshot_id)).all() == [[5, 7, 9, 10]]
    assert Stream(options, stream_from_timestamp=str(second.timestamp_ms)).all() == [[5, 7, 9, 10]]
    later = Stream(options, stream_from_timestamp="2100-01-01T00:00:00Z")
    assert later.all() == []
    numbers.delete("id in (1, 10)")
    latest = Stream(options, stream_from="latest")
    assert latest.all() == [[]]
    state = Stream(options, stream_from="state", max_rows="3")
    assert sorted(flat(state.all())) == [2, 3, 4, 5, 7, 9]
    append(numbers, 11)
    assert (latest.all(), state.all()) == ([[11]], [[11]])


def test_the_stream_of_a_table_without_a_snapshot_begins_with_its_first(
    catalog: icefield.Catalog, options: dict[str, str]
) -> None:
    table = catalog.create_table("db.numbers", pa.schema([("id", pa.int64()), ("kind", pa.string())]))
    streams = [Stream(options), Stream(options, stream_from="latest"), Stream(options, stream_from="state")]
    assert [flat(stream.all()) for stream in streams] == [[], [], []]
    append(table, 1)
    assert [stream.all() for stream in streams] == [[[1]], [[1]], [[1]]]


def test_what_is_no_append_fails_is_passed_over_or_is_shown(numbers: icefield.Table, options: dict[str, str]) -> None:
    numbers.delete("kind = 'k0'")
    numbers.delete("id = 5")
    numbers.maintenance.rewrite_data_files(rewrite_all=True)
    append(numbers.refresh(), 11)
    stream = Stream(options, max_files="10")
    assert stream.next() == [1, 2, 3, 4, 5, 7, 9, 10]
    with pytest.raises(UnsupportedFeature, match=r"'delete'.*streaming-skip-delete-snapshots.*stream-changes"):
        stream.next()
    with pytest.raises(UnsupportedFeature, match=r"'overwrite'.*streaming-skip-overwrite-snapshots"):
        Stream(options, at=stream.at, streaming_skip_delete_snapshots="true").all()
    both = {"streaming_skip_delete_snapshots": "true", "skip_overwrite_snapshots": "true"}
    assert Stream(options, at=stream.at, **both).all() == [[11]]
    changes = Stream(options, stream_changes="true", max_files="1")
    found = changes.all()
    assert [len(batch) for batch in found] == [4, 3, 1, 3, 1, 1]
    assert {row[0] for row in found[3]} == {2, 4, 10}
    assert {row[2] for row in found[3]} == {"DELETE"}


def test_filter_and_columns_are_pushed_into_the_scan(numbers: icefield.Table, options: dict[str, str]) -> None:
    only = StructType([StructField("kind", StringType())])
    assert Stream(options, only, where="kind = 'k0' and id > 2").all() == [["k0", "k0"]]
    stream = Stream(options, where="kind = 'k0'", max_files="1")
    assert flat(stream.all()) == [2, 4, 10]  # files are counted as they are in the table, whatever the filter


def test_an_expired_start_is_a_clear_error(numbers: icefield.Table, options: dict[str, str]) -> None:
    stream = Stream(options, max_files="1")
    stream.next()
    from_start = Stream(options)
    first = json.dumps({"version": 1, "snapshot": -1, "files": None})
    numbers.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
    with pytest.raises(NoSuchSnapshot, match=r"db.numbers.* stands at snapshot .*history.expire.max-snapshot-age-ms"):
        stream.next()
    with pytest.raises(NoSuchSnapshot, match="before its first snapshot"):
        Stream(options, at=first).next()
    with pytest.raises(NoSuchSnapshot, match="expired"):
        Stream(options, stream_from_timestamp="1").next()
    assert from_start.all() == [[1, 2, 3, 4, 5, 7, 9, 10]]  # what has expired is in the state of the oldest snapshot


def test_offsets_are_versioned(numbers: icefield.Table, options: dict[str, str]) -> None:
    stream = Stream(options)
    assert stream.at == '{"version": 1, "snapshot": null, "files": null}'
    stream.next()
    head = numbers.snapshots()[-1].snapshot_id
    assert stream.at == json.dumps({"version": 1, "snapshot": head, "files": None, "origin": -1, "begin": "after"})
    for wrong in ('{"version": 2}', '{"offset": 3}', '{"version": 1, "snapshot": "x"}'):
        with pytest.raises(InvalidArgument, match="checkpoint"):
            Stream(options, at=wrong).next()


def test_options_without_effect_are_refused(numbers: icefield.Table, options: dict[str, str]) -> None:
    for more, message in (
        ({"snapshot_id": "1"}, "stream-from"),
        ({"stream_from": "state", "stream_from_timestamp": "1"}, "begins once"),
        ({"stream_from": "yesterday"}, "start, state, latest"),
        ({"max_files": "0"}, "max-files"),
        ({"stream_changes": "true", "streaming_skip_delete_snapshots": "true"}, "every change"),
        ({"upsert": "true"}, "is for writing"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            Stream(options, ID, **more)


def test_a_stream_follows_a_branch(numbers: icefield.Table, options: dict[str, str]) -> None:
    second = numbers.snapshots()[1].snapshot_id
    numbers.manage_snapshots().create_branch(second, "audit").commit()
    stream = Stream(options, branch="audit")
    assert stream.all() == [[1, 2, 3, 4, 5, 7, 9]]
    numbers.refresh().append(pa.table({"id": [50], "kind": ["k0"]}), branch="audit")
    append(numbers, 60)
    assert stream.all() == [[50]]


def test_what_travels_to_executors_holds_no_option(numbers: icefield.Table, options: dict[str, str]) -> None:
    stream = Stream(options)
    assert b"sqlite" not in pickle.dumps(stream.reader)
    assert repr(stream.reader) == "icefield"
