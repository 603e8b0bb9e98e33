"""Isolation levels of row-level changes: the concurrent commits that they refuse, and the error."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, ValidationFailed
from tables import ids, meddled, new_table, orphans, rows

MODES = ("delete", "update", "merge")
CHANGES = {
    "delete": lambda table, **how: table.delete("kind = 'a'", **how),
    "overwrite": lambda table, **how: table.overwrite(rows([9], "a"), "kind = 'a'", **how),
    "update": lambda table, **how: table.update("kind = 'a'", {"value": 5.0}, **how),
    "upsert": lambda table, **how: table.upsert(rows([1, 2], "a", 5.0), ["kind", "id"], **how),
}
AFTER = {
    "delete": {"added": [3], "deleted": [3], "elsewhere": [3, 4]},
    "overwrite": {"added": [3, 9], "deleted": [3, 9], "elsewhere": [3, 4, 9]},
    "update": {"added": [1, 2, 3, 2], "deleted": [2, 3], "elsewhere": [1, 2, 3, 4]},
    "upsert": {"added": [1, 2, 3, 2], "deleted": [1, 2, 3], "elsewhere": [1, 2, 3, 4]},
}
MEANWHILE = {
    "added": lambda other: other.append(rows([2], "a", 3.0)),
    "deleted": lambda other: other.delete("id = 1"),
    "elsewhere": lambda other: other.append(rows([4], "b")),
}
PROPERTY = {"overwrite": "write.delete.isolation-level", "upsert": "write.merge.isolation-level"}
ALL = pytest.mark.parametrize("change", CHANGES)
LEVELS = pytest.mark.parametrize("level", ["serializable", "snapshot"])


def table_of(mode: str, version: int, **properties: str) -> Any:
    given = {f"write.{each}.mode": mode for each in MODES}
    table = new_table("kind", properties={**given, "format-version": str(version), **properties})
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    return table


@ALL
@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("level", ["serializable", "snapshot", None])
@pytest.mark.parametrize(("mode", "version", "by_property"), [("copy-on-write", 2, True), ("merge-on-read", 3, False)])
@pytest.mark.spec("COMMIT-12", "COMMIT-19")
def test_a_level_refuses_what_it_names_and_no_level_refuses_nothing(
    mode: str, version: int, level: str | None, by_property: bool, meanwhile: str, change: str
) -> None:
    own = PROPERTY.get(change, f"write.{change}.isolation-level")
    table = table_of(mode, version, **({own: level} if by_property and level else {}))
    holder = meddled(table, MEANWHILE[meanwhile])
    how = {} if by_property else {"isolation_level": level}
    refused = {"serializable": ("added", "deleted"), "snapshot": ("deleted",), None: ()}[level]
    if meanwhile not in refused:
        CHANGES[change](holder, **how)
        assert sorted(ids(holder)) == sorted(AFTER[change][meanwhile])
        return
    with pytest.raises(ValidationFailed, match="the change is then evaluated anew") as raised:
        CHANGES[change](holder, **how)
    winner = table.refresh().current_snapshot()
    assert raised.value.snapshot_id == winner.snapshot_id
    assert raised.value.operation == winner.operation
    assert raised.value.files
    assert (f"the table property '{own}' asks for" if by_property else "which isolation_level asks for") in str(
        raised.value
    )
    # The weaker level is named where it would change the outcome.
    weaker = level == "serializable" and str(raised.value).startswith("data was added")
    assert ("the level 'snapshot' tolerates" in str(raised.value)) is weaker
    assert orphans(table) == set()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.spec("COMMIT-12", "COMMIT-19")
def test_rows_that_were_added_and_then_rewritten_are_seen(version: int) -> None:
    def added_and_rewritten(other: Any, kind: str) -> None:
        for number in (5, 6):
            other.append(rows([number], kind))
        made = other.maintenance.rewrite_data_files(where=f"kind = '{kind}'", min_input_files=2)
        assert made.rewritten_data_files == 2

    table = table_of("copy-on-write", version)
    holder = meddled(table, lambda other: added_and_rewritten(other, "c"))
    with pytest.raises(ValidationFailed, match="data was added meanwhile") as raised:
        holder.overwrite(rows([9], "c"), "kind = 'c'", isolation_level="serializable")
    assert raised.value.operation == "append"
    assert ids(table.refresh()) == [1, 2, 3, 5, 6]
    holder = meddled(table, lambda other: added_and_rewritten(other, "d"))
    holder.overwrite(rows([9], "c"), "kind = 'c'", isolation_level="serializable")
    assert ids(table.refresh()) == [1, 2, 3, 5, 6, 9], "what was rewritten elsewhere is no conflict"


@LEVELS
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_what_the_same_transaction_did_is_no_conflict(level: str, mode: str) -> None:
    table = table_of(mode, 3, **{f"write.{each}.isolation-level": level for each in MODES})
    with table.transaction() as tx:
        tx.append(rows([5, 6], "a"))
        tx.delete("id = 5")
        tx.update("kind = 'a'", {"value": 9.0})
        tx.upsert(rows([6, 7], "a"), ["id"])
    assert ids(table) == [1, 2, 3, 6, 7]


@LEVELS
def test_a_branch_that_the_transaction_creates_was_read_by_nobody(level: str) -> None:
    table = table_of("copy-on-write", 2, **{"write.delete.isolation-level": level})
    with table.transaction() as tx:
        tx.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
        tx.delete("id = 1", branch="b")
    assert ids(table, ref="b") == [2, 3]


def test_a_level_of_no_meaning_is_refused_before_anything_is_done() -> None:
    table = table_of("copy-on-write", 2)
    for change in CHANGES.values():
        with pytest.raises(InvalidArgument, match="an isolation level is 'serializable' or 'snapshot'"):
            change(table, isolation_level="chaos")
    assert len(table.refresh().snapshots()) == 1
