"""Snapshots, and the summaries of their changes."""

import pickle
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata.snapshots import Operation, Snapshot, SummaryBuilder, decode_snapshot, new_snapshot_id
from vectors import VECTORS


@dataclass
class File:
    content: int = 0
    record_count: int = 10
    file_size_in_bytes: int = 100
    file_format: str = "PARQUET"


def count(builder: SummaryBuilder, added: bool, file: File, partition: Any = None, path: str = "") -> None:
    size, dvs = file.file_size_in_bytes, int(file.content == 1 and file.file_format.lower() == "puffin")
    builder.count(added=added, content=file.content, files=1, records=file.record_count, size=size, dvs=dvs, path=path)
    builder.touch([partition])


def snapshot(**fields: Any) -> Snapshot:
    return Snapshot(**{"snapshot_id": 5, "timestamp_ms": 7, "manifest_list": "s3://m", **fields})


def decoded(**fields: Any) -> Snapshot:
    return decode_snapshot(msgspec.json.encode({"snapshot-id": 5, "timestamp-ms": 7, **fields}))


@pytest.mark.spec("SNAP-02", "SNAP-01")
def test_new_ids_are_positive_random_and_new():
    ids = [new_snapshot_id() for _ in range(100_000)]
    assert len(set(ids)) == len(ids)
    assert min(ids) > 0
    assert max(ids) < 2**63
    assert sum(number >= 2**62 for number in ids) == pytest.approx(50_000, abs=1_500)


@pytest.mark.spec("SNAP-02")
def test_a_new_id_is_drawn_again_when_it_is_taken(monkeypatch):
    drawn = iter([5, 5 | 1 << 127, 0, 8])

    class Uuid:
        def __init__(self) -> None:
            self.int = next(drawn)

    monkeypatch.setattr("icefield.metadata.snapshots.uuid4", Uuid)
    assert new_snapshot_id({5, 2**63 + 5}) == 8


@pytest.mark.spec("SNAP-01", "SNAP-03", "SNAP-05", "SNAP-06", "SNAP-07", "SNAP-13", "SNAP-14", "SNAP-15", "JSON-17")
def test_a_snapshot_is_read_and_written_under_the_keys_of_the_format():
    full = snapshot(
        parent_snapshot_id=4,
        sequence_number=3,
        summary={"operation": "append", "x": "y"},
        schema_id=2,
        first_row_id=0,
        added_rows=0,
        key_id="k",
    )
    source = msgspec.json.decode(msgspec.json.encode(full))
    assert set(source) == {field["key"] for field in VECTORS["snapshot_fields"]} - {"manifests"}
    assert (source["first-row-id"], source["added-rows"]) == (0, 0)
    assert decode_snapshot(msgspec.json.encode(full)) == full
    assert pickle.loads(pickle.dumps(full)) == full
    assert hash(full) == hash(decode_snapshot(msgspec.json.encode(full)))
    with pytest.raises(TypeError):
        full.summary["a"] = "b"


@pytest.mark.spec("SNAP-16", "SNAP-08", "SNAP-09")
@pytest.mark.parametrize(
    ("summary", "operation"),
    [
        ({}, "overwrite"),
        ({"operation": "append"}, "append"),
        ({"operation": "replace"}, "replace"),
        ({"operation": "delete"}, "delete"),
        ({"operation": "overwrite"}, "overwrite"),
        ({"operation": "something new"}, "overwrite"),
    ],
)
def test_a_snapshot_that_does_not_state_its_operation_may_have_done_anything(summary, operation):
    assert decoded(summary=summary).operation is Operation(operation)
    assert decoded().operation is Operation.OVERWRITE


@pytest.mark.spec("SNAP-13", "SNAP-04", "SNAP-11", "SNAP-03")
def test_forms_of_other_writers_are_accepted():
    assert decoded(**{"schema-id": "12"}).schema_id == 12
    assert decoded(**{"parent-snapshot-id": -1}).parent_snapshot_id is None
    assert decoded(**{"parent-snapshot-id": None, "sequence-number": None, "summary": None}).sequence_number == 0
    both = decoded(**{"manifest-list": "s3://l", "manifests": ["s3://m"]})
    assert (both.manifest_list, both.manifests) == ("s3://l", ())
    assert decoded(future={"a": 1}).snapshot_id == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema-id": "x"},
        {"schema-id": "12345678901"},
        {"schema-id": 1.5},
        {"snapshot-id": "5"},
        {"snapshot-id": 2**63},
        {"timestamp-ms": None},
        {"summary": {"a": 1}},
        {"manifests": "m"},
    ],
)
def test_wrong_kinds_are_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        decoded(**wrong)


@pytest.mark.spec("SNAP-08", "SNAP-19", "SNAP-23")
def test_an_append_counts_its_files_and_totals():
    builder = SummaryBuilder()
    count(builder, True, File(record_count=10, file_size_in_bytes=100), ("a",))
    count(builder, True, File(record_count=5, file_size_in_bytes=50), ("a",))
    assert builder.build(Operation.APPEND, None) == {
        "operation": "append",
        "added-data-files": "2",
        "added-records": "15",
        "added-files-size": "150",
        "changed-partition-count": "1",
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-records": "15",
        "total-files-size": "150",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


@pytest.mark.spec("SNAP-19", "SNAP-09", "SNAP-23")
def test_an_overwrite_counts_both_ways():
    previous = {"total-data-files": "5", "total-records": "100", "total-files-size": "1000", "total-delete-files": "0"}
    builder = SummaryBuilder()
    count(builder, True, File(), 1)
    count(builder, False, File(record_count=30, file_size_in_bytes=400), 2)
    count(builder, False, File(record_count=30, file_size_in_bytes=400), 3)
    summary = builder.build("overwrite", previous)
    assert summary["operation"] == "overwrite"
    assert (summary["added-data-files"], summary["deleted-data-files"], summary["total-data-files"]) == ("1", "2", "4")
    assert (summary["added-records"], summary["deleted-records"], summary["total-records"]) == ("10", "60", "50")
    assert (summary["removed-files-size"], summary["total-files-size"]) == ("800", "300")
    assert summary["changed-partition-count"] == "3"


@pytest.mark.spec("SNAP-20")
def test_deletes_are_counted_by_kind():
    builder = SummaryBuilder()
    count(builder, True, File(content=1, record_count=3))
    count(builder, True, File(content=1, record_count=4, file_format="puffin"))
    count(builder, True, File(content=2, record_count=5))
    count(builder, False, File(content=1, record_count=1))
    count(builder, False, File(content=1, record_count=2, file_format="PUFFIN"))
    count(builder, False, File(content=2, record_count=9))
    summary = builder.build(Operation.DELETE, {"total-position-deletes": "7", "total-equality-deletes": "20"})
    expected = {
        "added-delete-files": "3",
        "removed-delete-files": "3",
        "added-position-delete-files": "1",
        "removed-position-delete-files": "1",
        "added-dvs": "1",
        "removed-dvs": "1",
        "added-equality-delete-files": "1",
        "removed-equality-delete-files": "1",
        "added-position-deletes": "7",
        "removed-position-deletes": "3",
        "added-equality-deletes": "5",
        "removed-equality-deletes": "9",
        "total-position-deletes": "11",
        "total-equality-deletes": "16",
    }
    assert {name: summary.get(name) for name in expected} == expected
    assert "added-data-files" not in summary
    assert "total-delete-files" not in summary  # the previous summary did not state it


@pytest.mark.spec("SNAP-23")
@pytest.mark.parametrize("total", [None, "many", "-3", "1e3", "9" * 30, "3"])
def test_a_total_that_does_not_add_up_is_left_out(total):
    builder = SummaryBuilder()
    count(builder, False, File(record_count=10))
    assert "total-records" not in builder.build("delete", {} if total is None else {"total-records": total})


@pytest.mark.spec("SNAP-21", "SNAP-22")
def test_manifests_and_strings_of_the_caller_are_reported():
    builder = SummaryBuilder()
    builder.manifests(created=1, kept=2, replaced=3, entries_processed=4)
    builder.set("engine-name", "icefield")
    summary = builder.build("replace", None)
    assert summary["manifests-created"] == "1"
    assert summary["manifests-kept"] == "2"
    assert summary["manifests-replaced"] == "3"
    assert summary["entries-processed"] == "4"
    assert summary["engine-name"] == "icefield"
    assert next(iter(summary)) == "operation"
    for name, value in (("operation", "x"), ("added-records", "1"), ("total-records", "1"), ("a", 1), (None, "a")):
        with pytest.raises(InvalidArgument):
            builder.set(name, value)


@pytest.mark.spec("SNAP-19")
def test_partitions_are_stated_one_by_one_up_to_the_limit():
    builder = SummaryBuilder()
    count(builder, True, File(), "p1", path="day=1")
    count(builder, True, File(), "p2", path="day=2")
    assert not any(name.startswith("partition") for name in builder.build("append", None, partition_limit=1))
    summary = builder.build("append", None, partition_limit=2)
    assert summary["partition-summaries-included"] == "true"
    assert summary["partitions.day=1"] == "added-data-files=1,added-records=10,added-files-size=100"


files = st.builds(
    File,
    content=st.sampled_from([0, 1, 2]),
    record_count=st.integers(0, 1000),
    file_size_in_bytes=st.integers(0, 1000),
    file_format=st.sampled_from(["avro", "PUFFIN"]),
)


@pytest.mark.spec("SNAP-19", "SNAP-20", "SNAP-23")
@given(st.lists(st.tuples(st.booleans(), files), max_size=10))
def test_counting_many_at_once_is_counting_them_one_by_one(changes):
    single, bulk = SummaryBuilder(), SummaryBuilder()
    for added, file in changes:
        count(single, added, file, 1)
    for added in (True, False):
        for content in (0, 1, 2):
            group = [file for was_added, file in changes if was_added is added and file.content == content]
            dvs = sum(file.file_format == "PUFFIN" for file in group) if content == 1 else 0
            records, size = sum(f.record_count for f in group), sum(f.file_size_in_bytes for f in group)
            bulk.count(added=added, content=content, files=len(group), records=records, size=size, dvs=dvs)
    bulk.touch([1] if changes else [])
    assert bulk.build("overwrite", None) == single.build("overwrite", None)


def test_the_only_changed_partition_is_stated():
    builder = SummaryBuilder()
    assert "partition-summaries-included" not in builder.build("append", None, partition_limit=1)
    count(builder, True, File(), "p1", path="day=1")
    assert builder.build("append", None, partition_limit=1)["partition-summaries-included"] == "true"
