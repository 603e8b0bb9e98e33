"""Updates of snapshots, branches and tags: numbers, times, history."""

import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, encode_metadata, with_metadata_log
from icefield.metadata.entries import PartitionStatisticsFile, StatisticsFile
from icefield.metadata.refs import MAIN_BRANCH, RefType, SnapshotRef, branch, tag
from icefield.metadata.updates.snapshots import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)
from icefield.metadata.updates.table import SetProperties, UpgradeFormatVersion
from metadata_examples import LOCATION, NOW_MS, V2, load, new_table, snapshot_for, written

changed = msgspec.structs.replace


def commit(metadata: TableMetadata, snapshot_id: int, ref: str = MAIN_BRANCH, **fields: Any) -> TableMetadata:
    """Add a snapshot to a branch."""
    if ref != MAIN_BRANCH:
        fields = {"parent_snapshot_id": metadata.head(ref), **fields}
    snapshot = snapshot_for(metadata, snapshot_id, **fields)
    return apply_updates(metadata, [AddSnapshot(snapshot), SetSnapshotRef(ref, branch(snapshot_id))])


def history(metadata: TableMetadata) -> list[int]:
    return [entry.snapshot_id for entry in metadata.snapshot_log]


@pytest.mark.spec("SNAP-03", "SNAP-04", "SNAP-05", "COMMIT-13", "META-05", "META-14", "META-16", "META-17", "REF-02")
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_commit_adds_a_snapshot_and_moves_main(format_version):
    metadata = new_table(format_version)
    for number in (11, 12, 13):
        before = metadata
        metadata = commit(metadata, number)
        assert metadata.current_snapshot_id == number
        assert metadata.current_snapshot().parent_snapshot_id == before.current_snapshot_id
        assert metadata.refs[MAIN_BRANCH] == branch(number)
        assert metadata.last_updated_ms == metadata.current_snapshot().timestamp_ms
    expected = 0 if format_version == 1 else 3
    assert (metadata.last_sequence_number, metadata.current_snapshot().sequence_number) == (expected, expected)
    assert history(metadata) == [11, 12, 13]
    assert decode_metadata(encode_metadata(metadata), LOCATION) == metadata
    assert ("sequence-number" in written(metadata)["snapshots"][0]) == (format_version > 1)


@pytest.mark.spec("META-17")
def test_three_commits_and_a_rollback_make_four_entries_of_the_history():
    metadata = new_table()
    for number in (11, 12, 13):
        metadata = commit(metadata, number)
    metadata = apply_updates(metadata, [SetSnapshotRef(MAIN_BRANCH, branch(11))], now_ms=metadata.last_updated_ms + 7)
    assert history(metadata) == [11, 12, 13, 11]
    assert metadata.snapshot_log[-1].timestamp_ms == metadata.last_updated_ms
    assert metadata.snapshot_as_of(metadata.last_updated_ms - 1).snapshot_id == 13
    assert metadata.snapshot_as_of(metadata.last_updated_ms).snapshot_id == 11


@pytest.mark.spec("META-17")
def test_several_moves_of_main_in_one_change_are_one_entry_of_the_history():
    metadata = new_table()
    first = snapshot_for(metadata, 11)
    second = snapshot_for(metadata, 12, parent_snapshot_id=11, sequence_number=2)
    metadata = apply_updates(
        metadata,
        [
            AddSnapshot(first),
            SetSnapshotRef(MAIN_BRANCH, branch(11)),
            AddSnapshot(second),
            SetSnapshotRef(MAIN_BRANCH, branch(12)),
        ],
    )
    assert history(metadata) == [12]
    assert metadata.last_sequence_number == 2


@pytest.mark.spec("META-17", "META-25")
def test_a_snapshot_of_a_slow_clock_enters_the_history_after_what_was_there():
    metadata = commit(new_table(), 11)
    later = commit(metadata, 12, timestamp_ms=metadata.last_updated_ms - 30_000)
    assert later.current_snapshot().timestamp_ms == metadata.last_updated_ms - 30_000
    assert [entry.timestamp_ms for entry in later.snapshot_log] == [metadata.last_updated_ms] * 2
    assert later.last_updated_ms == metadata.last_updated_ms


@pytest.mark.spec("META-25")
@pytest.mark.parametrize(("skew", "sound"), [(-59_000, True), (-61_000, False)])
def test_a_snapshot_may_be_a_minute_older_than_the_last_and_no_more(skew, sound):
    metadata = commit(new_table(), 11)
    if sound:
        assert commit(metadata, 12, timestamp_ms=metadata.last_updated_ms + skew).current_snapshot_id == 12
    else:
        with pytest.raises(InvalidArgument, match="clock"):
            commit(metadata, 12, timestamp_ms=metadata.last_updated_ms + skew)


@pytest.mark.spec("COMMIT-17", "SNAP-04", "SNAP-17")
@pytest.mark.parametrize("format_version", [2, 3])
def test_a_sequence_number_must_be_above_the_last_one_unless_there_is_no_parent(format_version):
    metadata = commit(commit(new_table(format_version), 11), 12)
    for wrong in (0, 1, 2):
        with pytest.raises(InvalidArgument, match="sequence number"):
            commit(metadata, 13, sequence_number=wrong)
    assert commit(metadata, 13, sequence_number=7).last_sequence_number == 7
    fresh = commit(metadata, 14, "orphan", sequence_number=1)
    assert fresh.last_sequence_number == 2
    with pytest.raises(InvalidArgument, match="sequence number"):
        commit(metadata, 15, "orphan", sequence_number=0)


@pytest.mark.spec("SNAP-04", "VER-04")
def test_v1_has_no_sequence_numbers_and_older_versions_no_row_ids():
    with pytest.raises(InvalidArgument, match="version 1"):
        commit(new_table(1), 11, sequence_number=1)
    for format_version in (1, 2):
        for fields in ({"first_row_id": 0}, {"added_rows": 0}, {"key_id": "k"}):
            with pytest.raises(InvalidArgument, match="version 3"):
                commit(new_table(format_version), 11, **fields)


@pytest.mark.spec("SNAP-01", "SNAP-06", "SNAP-07", "SNAP-11", "SNAP-13", "VER-15")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"manifest_list": None, "manifests": ("s3://m.avro",)}, "manifest list"),
        ({"manifest_list": None}, "manifest list"),
        ({"summary": {}}, "operation"),
        ({"summary": {"operation": "append", "a": 1}}, "strings"),
        ({"schema_id": 9}, "schema 9"),
        ({"snapshot_id": -1}, "positive"),
        ({"snapshot_id": 0}, "positive"),
        ({"snapshot_id": 2**63}, "positive"),
    ],
)
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_an_incomplete_snapshot_is_refused(format_version, fields, message):
    metadata = new_table(format_version)
    with pytest.raises(InvalidArgument, match=message):
        apply_updates(metadata, [AddSnapshot(changed(snapshot_for(metadata, 11), **fields))])


@pytest.mark.spec("SNAP-01")
def test_a_snapshot_id_is_used_once():
    metadata = commit(new_table(), 11)
    with pytest.raises(InvalidArgument, match="11 already"):
        commit(metadata, 11)


@pytest.mark.spec("SNAP-14", "META-22", "ROW-09", "ROW-10", "ROW-12")
def test_row_ids_are_handed_out_in_order_on_every_branch():
    metadata = commit(new_table(3), 11, added_rows=100)
    assert (metadata.current_snapshot().first_row_id, metadata.next_row_id) == (0, 100)
    metadata = commit(metadata, 12, added_rows=0)
    metadata = commit(metadata, 13, "audit", added_rows=5)
    assert (metadata.snapshot_by_id(13).first_row_id, metadata.next_row_id) == (100, 105)
    assert written(metadata)["snapshots"][1]["added-rows"] == 0
    assert commit(metadata, 14, first_row_id=200, added_rows=1).next_row_id == 201
    for wrong in (
        {"first_row_id": 104},
        {"first_row_id": None},
        {"added_rows": None},
        {"added_rows": -1},
        {"added_rows": 2**63 - 105},
    ):
        with pytest.raises(InvalidArgument, match=r"row|rows"):
            commit(metadata, 15, **wrong)


@pytest.mark.spec("ROW-11", "VER-08")
def test_the_first_snapshot_after_an_upgrade_to_v3_starts_at_row_0():
    metadata = apply_updates(commit(new_table(2), 11), [UpgradeFormatVersion(3)])
    assert metadata.next_row_id == 0
    assert metadata.snapshot_by_id(11).first_row_id is None
    assert commit(metadata, 12, added_rows=50).next_row_id == 50


@pytest.mark.spec("REF-02", "META-14")
def test_a_commit_to_a_branch_leaves_main_and_the_history_alone():
    metadata = commit(commit(new_table(), 11), 12, "audit")
    assert (metadata.current_snapshot_id, metadata.head("audit")) == (11, 12)
    assert history(metadata) == [11]
    assert metadata.last_sequence_number == 2


@pytest.mark.spec("REF-03", "REF-04", "REF-06", "REF-05", "JSON-20")
def test_refs_are_set_moved_and_removed():
    metadata = commit(commit(new_table(), 11), 12)
    kept = SnapshotRef(11, RefType.BRANCH, min_snapshots_to_keep=2, max_snapshot_age_ms=5, max_ref_age_ms=7)
    metadata = apply_updates(metadata, [SetSnapshotRef("audit", kept), SetSnapshotRef("v1", tag(11))])
    assert metadata.refs == {MAIN_BRANCH: branch(12), "audit": kept, "v1": tag(11)}
    assert apply_updates(metadata, [SetSnapshotRef("audit", kept)]) is metadata
    assert written(metadata)["refs"]["audit"] == {
        "snapshot-id": 11,
        "type": "branch",
        "min-snapshots-to-keep": 2,
        "max-snapshot-age-ms": 5,
        "max-ref-age-ms": 7,
    }
    assert decode_metadata(encode_metadata(metadata), LOCATION) == metadata
    assert apply_updates(metadata, [RemoveSnapshotRef("audit")]).refs.keys() == {MAIN_BRANCH, "v1"}
    keep_main = apply_updates(metadata, [SetSnapshotRef(MAIN_BRANCH, changed(kept, max_ref_age_ms=None))])
    assert keep_main.current_snapshot_id == 11


@pytest.mark.spec("REF-06", "REF-04")
@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("x", branch(99)),
        (MAIN_BRANCH, tag(11)),
        (MAIN_BRANCH, SnapshotRef(11, RefType.BRANCH, max_ref_age_ms=5)),
        ("", branch(11)),
        (" ", branch(11)),
        (None, branch(11)),
    ],
)
def test_a_ref_that_must_not_be_is_refused(name, ref):
    with pytest.raises(InvalidArgument):
        apply_updates(commit(new_table(), 11), [SetSnapshotRef(name, ref)])


@pytest.mark.spec("REF-06")
def test_removing_main_leaves_a_table_without_current_snapshot_and_history():
    metadata = apply_updates(commit(new_table(), 11), [RemoveSnapshotRef(MAIN_BRANCH)])
    assert (metadata.current_snapshot_id, metadata.current_snapshot(), history(metadata)) == (None, None, [])
    assert metadata.snapshot_by_id(11) is not None
    assert decode_metadata(encode_metadata(metadata), LOCATION) == metadata
    assert history(commit(metadata, 12)) == [12]


@pytest.mark.spec("META-18")
def test_removing_a_snapshot_cuts_the_history_up_to_it_and_drops_its_statistics():
    metadata = new_table()
    for number in (11, 12, 13, 14):
        metadata = commit(metadata, number)
    metadata = apply_updates(
        metadata,
        [
            *(SetStatistics(StatisticsFile(number, f"s3://{number}", 1, 1, ())) for number in (12, 13)),
            *(SetPartitionStatistics(PartitionStatisticsFile(number, f"s3://{number}", 1)) for number in (12, 13)),
        ],
    )
    left = apply_updates(metadata, [RemoveSnapshots(iter([12, 999]))])
    assert [snapshot.snapshot_id for snapshot in left.snapshots] == [11, 13, 14]
    assert history(left) == [13, 14]
    assert [file.snapshot_id for file in left.statistics] == [13]
    assert [file.snapshot_id for file in left.partition_statistics] == [13]
    assert decode_metadata(encode_metadata(left), LOCATION) == left
    assert apply_updates(metadata, [RemoveSnapshots([999])]) is metadata


@pytest.mark.spec("REF-06")
def test_a_snapshot_that_a_ref_names_cannot_be_removed():
    metadata = apply_updates(commit(commit(new_table(), 11), 12), [SetSnapshotRef("v1", tag(11))])
    for number, name in ((12, "main"), (11, "v1")):
        with pytest.raises(ValidationFailed, match=f"'{name}' refers"):
            apply_updates(metadata, [RemoveSnapshots([number])])
    freed = apply_updates(metadata, [RemoveSnapshotRef("v1"), RemoveSnapshots([11])])
    assert len(freed.snapshots) == 1


@pytest.mark.spec("META-19", "JSON-19")
def test_the_metadata_log_names_former_files_and_is_capped():
    metadata = new_table()
    for version in range(105):
        metadata = with_metadata_log(metadata, f"s3://m/{version}.json", NOW_MS + version)
    assert [entry.metadata_file for entry in metadata.metadata_log] == [f"s3://m/{v}.json" for v in range(5, 105)]
    assert metadata.metadata_log[0].timestamp_ms == NOW_MS + 5
    for maximum, kept in (("3", 3), ("0", 1), ("-5", 1)):
        few = apply_updates(metadata, [SetProperties({"write.metadata.previous-versions-max": maximum})])
        log = with_metadata_log(few, "s3://m/last.json", NOW_MS + 200).metadata_log
        assert len(log) == kept
        assert log[-1].metadata_file == "s3://m/last.json"
    again = with_metadata_log(metadata, "s3://m/104.json", NOW_MS + 104)
    assert again is metadata


@pytest.mark.spec("META-26")
def test_a_version_that_a_reader_holds_is_not_changed_by_later_commits():
    metadata = commit(new_table(), 11)
    text = encode_metadata(metadata)
    later = metadata
    for number in range(12, 40):
        later = commit(later, number)
    later = apply_updates(later, [SetProperties({"a": "b"}), RemoveSnapshots([20])])
    assert encode_metadata(metadata) == text
    assert (len(metadata.snapshots), history(metadata)) == (1, [11])


@pytest.mark.spec("JSON-26", "META-24", "META-17")
@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 3]), st.data())
def test_any_course_of_changes_reads_back_equal_and_sound(format_version, data):
    metadata = new_table(format_version)
    for number in range(1, data.draw(st.integers(1, 12)) + 1):
        step = data.draw(
            st.sampled_from(["commit", "branch", "tag", "rollback", "expire", "upgrade", "clear", "property"])
        )
        ids = [snapshot.snapshot_id for snapshot in metadata.snapshots]
        if step == "commit":
            metadata = commit(metadata, number)
        elif step == "branch":
            metadata = commit(metadata, number, "audit")
        elif step == "tag" and ids:
            metadata = apply_updates(metadata, [SetSnapshotRef(f"t{number}", tag(data.draw(st.sampled_from(ids))))])
        elif step == "rollback" and ids:
            metadata = apply_updates(metadata, [SetSnapshotRef(MAIN_BRANCH, branch(data.draw(st.sampled_from(ids))))])
        elif step == "expire":
            named = {ref.snapshot_id for ref in metadata.refs.values()}
            metadata = apply_updates(metadata, [RemoveSnapshots(set(ids[: number // 2]) - named)])
        elif step == "upgrade":
            metadata = apply_updates(metadata, [UpgradeFormatVersion(min(metadata.format_version + 1, 3))])
        elif step == "clear":
            metadata = apply_updates(metadata, [RemoveSnapshotRef(MAIN_BRANCH)])
        else:
            metadata = apply_updates(metadata, [SetProperties({f"p{number}": "x"})])
        metadata = with_metadata_log(metadata, f"s3://m/{number}.json", metadata.last_updated_ms)
        again = decode_metadata(encode_metadata(metadata), LOCATION)
        assert again == metadata
        if data.draw(st.booleans()):
            metadata = again
    log = metadata.snapshot_log
    assert not len(log) or log[-1].snapshot_id == metadata.current_snapshot_id
    times = [entry.timestamp_ms for entry in log]
    assert times == sorted(times)


@pytest.mark.spec("SNAP-02")
def test_new_snapshot_ids_are_not_among_the_table_s(monkeypatch):
    metadata = load(V2)
    drawn = iter([*metadata.snapshots.positions, 7])
    monkeypatch.setattr("icefield.metadata.snapshots.uuid4", lambda: SimpleNamespace(int=next(drawn)))
    assert metadata.new_snapshot_id() == 7
    assert metadata.next_sequence_number() == metadata.last_sequence_number + 1
    assert new_table(1).next_sequence_number() == 0


def test_a_commit_costs_milliseconds_next_to_a_thousand_snapshots():
    base = new_table()
    snapshots = [snapshot_for(base, n, sequence_number=n, summary={"operation": "append"}) for n in range(1, 1_001)]
    metadata = apply_updates(base, [AddSnapshot(s) for s in snapshots])
    metadata = decode_metadata(encode_metadata(metadata), LOCATION)

    def once() -> float:
        new = snapshot_for(metadata, 5_000)
        start = time.perf_counter()
        encode_metadata(apply_updates(metadata, [AddSnapshot(new), SetSnapshotRef(MAIN_BRANCH, branch(5_000))]))
        return time.perf_counter() - start

    assert min(once() for _ in range(5)) < 0.010
