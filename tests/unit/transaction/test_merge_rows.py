"""Merging rows: the clause that applies to each row, checked by a model that works row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from tables import SCHEMA, ids, meddled, new_table, orphans, rows, stored_files

COPY, MARK = "copy-on-write", "merge-on-read"
MODES = pytest.mark.parametrize(("mode", "version"), [(COPY, 1), (COPY, 3), (MARK, 2), (MARK, 3)])


def mergeable(*args: Any, mode: str = COPY, version: int = 2, **kwargs: Any) -> Any:
    return new_table(*args, properties={"write.merge.mode": mode, "format-version": str(version)}, **kwargs)


def source(*given: tuple[Any, ...]) -> pa.Table:
    names = ("id", "kind", "value")
    return pa.table({name: [row[at] for row in given] for at, name in enumerate(names)}, schema=SCHEMA)


def content(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def counts(result: Any) -> tuple[int, int, int]:
    return result.rows_updated, result.rows_deleted, result.rows_inserted


@MODES
def test_rows_are_updated_deleted_and_inserted_in_one_commit(mode: str, version: int) -> None:
    table = mergeable("kind", mode=mode, version=version)
    table.append(pa.concat_tables([rows([1, 2, 3], "a"), rows([4, 5], "b")]))
    merge = table.merge(source((2, "z", 20.0), (4, "gone", 0.0), (9, "n", 9.0), (8, "skip", 8.0)), on="id")
    merge.when_matched_delete("source.kind = 'gone'").when_matched_update_all()
    merge.when_not_matched_insert_all("source.kind != 'skip'")
    merge.when_not_matched_by_source_update({"value": -1}, "id = 3")
    merge.when_not_matched_by_source_delete("kind = 'b'")
    before = len(table.snapshots())
    assert counts(merge.commit()) == (2, 2, 1)
    assert content(table) == [(1, "a", 1.0), (2, "z", 20.0), (3, "a", -1.0), (9, "n", 9.0)]
    assert len(table.snapshots()) == before + 1
    assert orphans(table) == set()


@MODES
def test_the_first_clause_whose_condition_holds_counts(mode: str, version: int) -> None:
    table = mergeable(mode=mode, version=version)
    table.append(rows([1, 2, 3, 4]))
    result = (
        table.merge(source((1, "x", 1.0), (2, "x", 2.0), (3, None, 3.0), (4, "x", 4.0)), on=["id"])
        .when_matched_update({"kind": "first"}, pc.field("source", "value") > pc.field("value") + 2)
        .when_matched_update({"kind": "second"}, lambda seen: pc.equal(seen["id"], 2))
        .when_matched_delete("source.kind is null or id = 4")
        .commit()
    )
    assert counts(result) == (2, 1, 0)
    assert content(table) == [(1, "a", 1.0), (2, "second", 1.0), (4, "first", 1.0)]


def test_values_may_be_worked_out_from_both_sides() -> None:
    table = mergeable()
    table.append(rows([1, 2]))
    merge = table.merge(pa.table({"key": [2, 7], "n": [10.0, 70.0]}), on={"id": "key"})
    merge.when_matched_update({"value": pc.field("value") + pc.field("source", "n")})
    merge.when_not_matched_insert({"id": pc.field("source", "key"), "kind": "new"}, pc.field("source", "n") > 1)
    assert counts(merge.commit()) == (1, 0, 1)
    assert content(table) == [(1, "a", 1.0), (2, "a", 11.0), (7, "new", None)]


def test_update_all_leaves_columns_that_the_source_lacks_and_keys_may_have_other_names() -> None:
    table = mergeable()
    table.append(rows([1, 2], "a", 5.0))
    merge = table.merge(pa.table({"key": [2, 3], "kind": ["z", "z"]}), on={"id": "key"})
    merge.when_matched_update_all().when_not_matched_insert_all().commit()
    assert content(table) == [(1, "a", 5.0), (2, "z", 5.0), (3, "z", None)]


@MODES
def test_a_row_that_several_rows_of_the_source_would_change_is_refused(mode: str, version: int) -> None:
    table = mergeable(mode=mode, version=version)
    table.append(rows([1, 2, 3]))
    twice = source((2, "x", 1.0), (2, "y", 2.0), (7, "n", 0.0), (7, "n", 1.0))
    before = stored_files(table)
    with pytest.raises(InvalidArgument, match=r"several rows of the source .* the key \{'id': 2\}"):
        table.merge(twice, on="id").when_matched_update_all().commit()
    assert stored_files(table) == before
    merge = table.merge(twice, on="id").when_matched_delete("source.kind = 'x'").when_not_matched_insert_all()
    assert counts(merge.commit()) == (0, 1, 2)
    assert ids(table) == [1, 3, 7, 7]


def test_a_null_in_a_key_meets_nothing() -> None:
    table = mergeable()
    table.append(pa.concat_tables([rows([1], None), rows([2], "b")]))
    merge = table.merge(source((1, None, 5.0), (2, "b", 6.0)), on=["id", "kind"])
    merge.when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_update({"value": 0.0})
    assert counts(merge.commit()) == (2, 0, 1)
    assert sorted(map(str, content_unsorted(table))) == ["(1, None, 0.0)", "(1, None, 5.0)", "(2, 'b', 6.0)"]


def content_unsorted(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]


def test_what_a_merge_cannot_do_is_said_before_anything_is_written() -> None:
    table = mergeable()
    table.append(rows([1]))
    before = stored_files(table)
    given = source((1, "a", 1.0))
    refused = [
        (lambda: table.merge(given, "id").commit(), "this merge does nothing"),
        (lambda: table.merge(given), "name the columns that identify a row"),
        (lambda: table.merge(given, {"id": "nowhere"}), "the source has no column 'nowhere'"),
        (lambda: table.merge(given, "id").when_matched_update({"x": 1}).commit(), "no column is named 'x'"),
        (lambda: table.merge(given, "id").when_matched_delete("source.x = 1").commit(), "source.x"),
        (lambda: table.merge(given, "id").when_matched_delete(5).commit(), "a condition is a filter"),  # type: ignore[arg-type]
        (lambda: table.merge(given, "id").when_matched_delete(pc.field("id")).commit(), "true or false for each row"),
        (lambda: table.merge(given, "id").when_not_matched_insert_all("id = 1").commit(), "id"),
        (
            lambda: table.merge(given.append_column("more", [[1]]), "id").when_matched_update_all().commit(),
            "the table has no column 'more' to take over",
        ),
        (lambda: table.merge(given, "id", source_name="kind").when_matched_delete().commit(), "choose another one"),
        (lambda: table.merge(given.rename_columns(["id", "id", "v"]), "id"), "two columns of the name 'id'"),
    ]
    for call, message in refused:
        with pytest.raises(InvalidArgument, match=message):
            call()
    assert stored_files(table) == before


@MODES
@pytest.mark.spec("COMMIT-10")
def test_a_merge_meets_what_was_committed_meanwhile_and_what_its_transaction_did(mode: str, version: int) -> None:
    table = mergeable(mode=mode, version=version)
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([2])), lambda other: other.delete("id = 1"))
    with holder.transaction() as tx:
        tx.append(rows([3]))
        merge = tx.merge(source((1, "n", 0.0), (2, "n", 0.0), (3, "n", 0.0)), on="id")
        result = merge.when_matched_update_all().when_not_matched_insert_all().commit()
    assert counts(result) == (2, 0, 1)
    assert content(holder) == [(1, "n", 0.0), (2, "n", 0.0), (3, "n", 0.0)]
    assert orphans(table) == set()


@pytest.mark.parametrize("mode", [COPY, MARK])
@pytest.mark.spec("ROW-06")
def test_a_merged_row_keeps_its_id_and_a_moved_one_all_its_lineage(mode: str) -> None:
    table = mergeable(mode=mode, version=3)
    table.append(rows([1, 2, 3]))
    before = lineage(table)
    merge = table.merge(source((2, "z", 0.0), (4, "n", 0.0)), on="id")
    merge.when_matched_update_all().when_not_matched_insert_all().commit()
    after, sequence = lineage(table), table.current_snapshot().sequence_number
    new = after.pop(4)
    assert after == {**before, 2: (before[2][0], sequence)}
    assert new[1] == sequence
    assert new[0] not in {row_id for row_id, _ in before.values()}


def lineage(table: Any) -> dict[int, tuple[int, int]]:
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    found = table.scan(selected_fields=columns).to_arrow().to_pylist()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found}


CONDITIONS: list[tuple[Any, Any]] = [
    (None, lambda row, given: True),
    ("value > 1", lambda row, given: row[2] is not None and row[2] > 1),
    (pc.is_null(pc.field("kind")), lambda row, given: row[1] is None),
]
OF_SOURCE: list[tuple[Any, Any]] = [
    (None, lambda row, given: True),
    ("source.value > 1", lambda row, given: given[2] is not None and given[2] > 1),
    (pc.field("source", "kind") == "b", lambda row, given: given[1] == "b"),
]
small_rows = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None]), st.sampled_from([0.0, 1.0, 2.0, None])), max_size=8
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    held=small_rows,
    given_rows=small_rows,
    matched=st.lists(st.tuples(st.sampled_from(range(6)), st.sampled_from(["update", "all", "delete"])), max_size=2),
    new=st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(["all", "values"])), max_size=2),
    alone=st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(["update", "delete"])), max_size=2),
    mode=st.sampled_from([COPY, MARK]),
    version=st.sampled_from([2, 3]),
)
def test_any_merge_does_what_the_rules_say_row_by_row(
    held: Any, given_rows: Any, matched: Any, new: Any, alone: Any, mode: str, version: int
) -> None:
    if not (matched or new or alone):
        return
    table = mergeable("kind", mode=mode, version=version)
    if held:
        table.append(source(*held[: len(held) // 2]))
        table.append(source(*held[len(held) // 2 :]))
    merge = table.merge(source(*given_rows), on="id")
    both = [*CONDITIONS, *OF_SOURCE]
    for at, what in matched:
        condition = both[at][0]
        {
            "update": lambda c=condition: merge.when_matched_update({"kind": "u"}, c),
            "all": lambda c=condition: merge.when_matched_update_all(c),
            "delete": lambda c=condition: merge.when_matched_delete(c),
        }[what]()
    for at, what in new:
        values = {"id": pc.field("source", "id"), "kind": "i"}
        merge.when_not_matched_insert_all(OF_SOURCE[at][0]) if what == "all" else merge.when_not_matched_insert(
            values, OF_SOURCE[at][0]
        )
    for at, what in alone:
        condition = CONDITIONS[at][0]
        merge.when_not_matched_by_source_delete(
            condition
        ) if what == "delete" else merge.when_not_matched_by_source_update({"value": 7.0}, condition)

    expected: list[Any] = []
    changed = {"update": 0, "delete": 0, "insert": 0}
    refused = False
    for row in held:
        meets = [one for one in given_rows if one[0] == row[0]]
        hits = [(what, one) for one in meets for what in first(matched, both, row, one)]
        refused |= len(hits) > 1
        if not meets:
            hits = [(what, None) for what in first(alone, CONDITIONS, row, None)]
        if not hits:
            expected.append(row)
            continue
        what, one = hits[0]
        changed["delete" if what == "delete" else "update"] += 1
        if what == "update":
            expected.append((row[0], "u", row[2]) if meets else (row[0], row[1], 7.0))
        elif what == "all":
            expected.append(one)
    for one in given_rows:
        if not any(row[0] == one[0] for row in held):
            for what in first(new, OF_SOURCE, None, one):
                changed["insert"] += 1
                expected.append(one if what == "all" else (one[0], "i", None))
    if refused:
        with pytest.raises(InvalidArgument, match="several rows of the source"):
            merge.commit()
        return
    assert counts(merge.commit()) == tuple(changed.values())
    assert sorted(map(str, content_unsorted(table))) == sorted(map(str, expected))


def first(clauses: Any, conditions: Any, row: Any, given_row: Any) -> list[str]:
    """The action of the first clause whose condition holds; empty if there is none."""
    return [what for at, what in clauses if conditions[at][1](row, given_row)][:1]
