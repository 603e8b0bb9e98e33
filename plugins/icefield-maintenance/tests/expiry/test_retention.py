"""Which snapshots, branches and tags expire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata import (
    AddSnapshot,
    RefType,
    SetProperties,
    SetSnapshotRef,
    Snapshot,
    SnapshotRef,
    TableMetadata,
    apply_updates,
)
from icefield_maintenance.expiry.retention import Expired, Retention, expired
from naive_reachability import kept_snapshots
from tables import new_table
from vectors import VECTORS

DAY = 86_400_000


def table_of(
    snapshots: list[tuple[int, int | None, int]], refs: dict[str, SnapshotRef], **properties: str
) -> TableMetadata:
    """Metadata with snapshots given by id, parent and time."""
    base = new_table().metadata
    updates: list[Any] = [
        AddSnapshot(
            Snapshot(
                snapshot_id=number,
                parent_snapshot_id=parent,
                sequence_number=place,
                timestamp_ms=time,
                manifest_list=f"{base.location}/metadata/{number}.avro",
                summary={"operation": "append"},
            )
        )
        for place, (number, parent, time) in enumerate(snapshots, 1)
    ]
    updates += [SetSnapshotRef(name, ref) for name, ref in refs.items()]
    if properties:
        updates.append(SetProperties(properties))
    return apply_updates(base, updates)


def branch(head: int, count: int | None = None, age: int | None = None, ref_age: int | None = None) -> SnapshotRef:
    return SnapshotRef(head, RefType.BRANCH, count, age, ref_age)


def tag(head: int, ref_age: int | None = None) -> SnapshotRef:
    return SnapshotRef(head, RefType.TAG, max_ref_age_ms=ref_age)


@pytest.mark.spec("REF-07", "REF-08", "REF-04")
def test_the_vector_of_retention() -> None:
    vector = VECTORS["retention"]
    refs = {
        name: branch(b["head"], b["min_snapshots_to_keep"], b["max_snapshot_age_ms"], b.get("max_ref_age_ms"))
        for name, b in vector["branches"].items()
    } | {name: tag(t["snapshot"], t.get("max_ref_age_ms")) for name, t in vector["tags"].items()}
    metadata = table_of([(s["id"], s["parent"], s["ts"]) for s in vector["snapshots"]], refs)
    found = expired(metadata, Retention(vector["now_ms"]))
    # The branch 'b' of the vector is younger than its limit; 'old' is not.
    assert set(found.refs) == set(vector["removed_refs"])
    assert found.snapshot_ids == set(vector["expired"])


LINE = [(1, None, 1 * DAY), (2, 1, 2 * DAY), (3, 2, 3 * DAY), (4, 3, 4 * DAY)]


@pytest.mark.spec("REF-05")
def test_by_default_a_branch_keeps_its_head_and_five_days() -> None:
    metadata = table_of(LINE, {"main": branch(4), "old": tag(1)})
    assert expired(metadata, Retention(8 * DAY)).snapshot_ids == {2}
    assert expired(metadata, Retention(8 * DAY + 1)).snapshot_ids == {2, 3}
    assert expired(metadata, Retention(1000 * DAY)) == Expired(frozenset({2, 3}))
    assert expired(table_of(LINE, {"main": branch(4)}), Retention(6 * DAY)) == Expired()


@pytest.mark.spec("REF-03")
def test_what_a_branch_states_counts_before_the_call_and_the_call_before_the_properties() -> None:
    properties = {
        "history.expire.max-snapshot-age-ms": str(DAY),
        "history.expire.min-snapshots-to-keep": "2",
        "history.expire.max-ref-age-ms": str(100 * DAY),
    }
    metadata = table_of(LINE, {"main": branch(4)}, **properties)
    assert expired(metadata, Retention(50 * DAY)).snapshot_ids == {1, 2}
    assert expired(metadata, Retention(50 * DAY, retain_last=3)).snapshot_ids == {1}
    assert expired(metadata, Retention(50 * DAY, older_than_ms=2 * DAY)).snapshot_ids == {1}
    stated = table_of(LINE, {"main": branch(4, 1, 49 * DAY), "t": tag(1, 200 * DAY), "u": tag(2)}, **properties)
    assert expired(stated, Retention(50 * DAY, older_than_ms=5 * DAY, retain_last=3)) == Expired()
    assert expired(stated, Retention(103 * DAY)) == Expired(frozenset({2, 3}), ("u",))


@pytest.mark.spec("REF-04")
def test_main_is_kept_whatever_its_age() -> None:
    metadata = table_of(LINE, {"main": branch(4), "b": branch(4, ref_age=1)}, **{"history.expire.max-ref-age-ms": "1"})
    assert expired(metadata, Retention(9 * DAY)) == Expired(frozenset({1, 2, 3}), ("b",))


@pytest.mark.spec("REF-08")
def test_a_snapshot_that_nothing_leads_to_expires_by_age() -> None:
    snapshots = [*LINE, (5, 4, 5 * DAY), (6, 4, 6 * DAY)]
    metadata = table_of(snapshots, {"main": branch(4)})
    assert expired(metadata, Retention(9 * DAY, older_than_ms=6 * DAY)).snapshot_ids == {1, 2, 3, 5}


def test_ids_alone_expire_nothing_else() -> None:
    metadata = table_of(LINE, {"main": branch(4), "t": tag(1, 1)})
    assert expired(metadata, Retention(99 * DAY, snapshot_ids=frozenset({2, 77}))) == Expired(frozenset({2}))
    both = expired(metadata, Retention(99 * DAY, retain_last=3, snapshot_ids=frozenset({3})))
    assert both == Expired(frozenset({1, 3}), ("t",))
    for each, name in ((4, "branch 'main'"), (1, "tag 't'")):
        with pytest.raises(InvalidArgument, match=f"snapshot {each} cannot expire: the {name} refers to it"):
            expired(metadata, Retention(99 * DAY, snapshot_ids=frozenset({each})))


@pytest.mark.spec("REF-05")
def test_a_table_whose_files_are_not_collected_is_refused() -> None:
    metadata = table_of(LINE, {"main": branch(4)}, **{"gc.enabled": "false"})
    with pytest.raises(InvalidArgument, match=r"gc\.enabled.*is false"):
        expired(metadata, Retention(9 * DAY))


def test_what_a_caller_writes_is_checked() -> None:
    assert Retention.asked(0, datetime(1970, 1, 2, tzinfo=UTC), None, ()).older_than_ms == DAY
    assert Retention.asked(0, datetime.fromtimestamp(1), None, ()).older_than_ms == 1000
    assert Retention.asked(0, None, None, 7).snapshot_ids == {7}
    for arguments in (("yesterday", None, ()), (True, None, ()), (None, 0, ()), (None, 1.5, ()), (None, None, ["a"])):
        with pytest.raises(InvalidArgument):
            Retention.asked(0, *arguments)


ages = st.none() | st.integers(1, 30)


@st.composite
def histories(draw: st.DrawFn) -> TableMetadata:
    count = draw(st.integers(1, 12))
    times = sorted(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    snapshots = [
        (number, draw(st.none() | st.integers(1, number - 1)) if number > 1 else None, times[number - 1])
        for number in range(1, count + 1)
    ]
    numbers = st.integers(1, count)
    refs = {"main": branch(draw(numbers), draw(st.none() | st.integers(1, 4)), draw(ages))}
    for name in draw(st.sets(st.sampled_from("abc"))):
        if draw(st.booleans()):
            refs[name] = tag(draw(numbers), draw(ages))
        else:
            refs[name] = branch(draw(numbers), draw(st.none() | st.integers(1, 4)), draw(ages), draw(ages))
    return table_of(snapshots, refs)


@given(histories(), st.integers(0, 31), st.integers(1, 4))
@settings(max_examples=90, deadline=None)
def test_what_expires_is_what_the_text_of_the_specification_says(
    metadata: TableMetadata, older_than: int, least: int
) -> None:
    kept, refs = kept_snapshots(metadata, 31, older_than, least)
    found = expired(metadata, Retention(31, older_than, least))
    assert set(metadata.snapshots.positions) - found.snapshot_ids == kept
    assert set(metadata.refs) - set(found.refs) == refs
