"""Changes that are dropped without a commit are warned of."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import icefield
import pytest
from icefield import Table
from icefield.errors import CommitFailed, InvalidArgument, UncommittedWarning
from tables import memory_catalog

DROPPED: dict[str, tuple[Callable[[Table], Any], str]] = {
    "a transaction": (lambda table: table.transaction().append({"id": [1]}), "a transaction of table 'db.t'"),
    "columns": (lambda table: table.update_schema().add_column("x", "int"), "this UpdateSchema"),
    "a spec": (lambda table: table.update_spec().add_identity("id"), "this UpdateSpec"),
    "an order": (lambda table: table.update_sort_order().asc("id"), "this UpdateSortOrder"),
    "a merge": (lambda table: table.merge({"id": [1]}, "id").when_matched_delete(), "this MergeRows"),
    "a tag": (lambda table: table.manage_snapshots().create_tag(1, "x"), "this ManageSnapshots"),
    "a cherry-pick": (lambda table: table.update_snapshot().cherry_pick(1), "this CherryPick"),
    "statistics": (lambda table: table.update_statistics().remove_statistics(1), "this UpdateStatistics"),
    "a delete of files": (lambda table: table.update_snapshot().delete().delete_file("f"), "this DeleteFiles"),
    "a delete of matching files": (
        lambda table: table.update_snapshot().delete().delete_by_filter("id = 1"),
        "this DeleteFiles",
    ),
    "a rewrite": (lambda table: table.update_snapshot().rewrite().delete_file("f"), "this RewriteFiles"),
    "deletes of rows": (lambda table: table.update_snapshot().row_delta().remove_rows("f"), "this RowDelta"),
    "an overwrite": (
        lambda table: table.update_snapshot().overwrite().add_file(*(task.file for task in table.scan().plan_files())),
        "this OverwriteFiles",
    ),
}


@pytest.fixture
def table() -> Table:
    return memory_catalog().create_table_as("db.t", {"id": [0]})


def warned(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
        gc.collect()
    return [str(each.message) for each in caught if issubclass(each.category, UncommittedWarning)]


@pytest.mark.parametrize(("change", "named"), DROPPED.values(), ids=DROPPED.keys())
def test_a_dropped_change_is_warned_of_once(table: Table, change: Callable[[Table], Any], named: str) -> None:
    (message,) = warned(lambda: change(table))
    assert message.startswith(f"{named} was dropped with its changes: call commit")


def test_a_dropped_creation_is_warned_of() -> None:
    catalog = memory_catalog()
    assert len(warned(lambda: catalog.create_table_transaction("db.u", {"id": [1]}))) == 1


def committed(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append({"id": [1]})
        transaction.update_schema().add_column("x", "int").commit()
    table.update_schema().add_column("y", "int").commit()
    with table.update_spec() as update:
        update.add_identity("id")


def abandoned(table: Table) -> None:
    transaction = table.transaction()
    transaction.append({"id": [1]})
    transaction.abort()
    with pytest.raises(CommitFailed):
        left(table.transaction(), lambda change: change.set_properties(a="b"))
    with pytest.raises(CommitFailed):
        left(table.update_schema(), lambda change: change.add_column("x", "int"))


def left(begun: Any, change: Callable[[Any], Any]) -> None:
    """Leave a block by an exception."""
    with begun as builder:
        change(builder)
        raise CommitFailed("stop")


def empty(table: Table) -> None:
    table.transaction()
    for begin in (table.update_schema, table.update_spec, table.update_sort_order, table.manage_snapshots):
        begin()
    files = table.update_snapshot()
    for begin in (files.fast_append, files.delete, files.overwrite, files.row_delta, files.rewrite):
        begin()
    with pytest.raises(InvalidArgument):
        table.update_schema().add_column("a.b", "int")


@pytest.mark.parametrize("use", [committed, abandoned, empty])
def test_other_changes_are_not_warned_of(table: Table, use: Callable[[Table], None]) -> None:
    assert warned(lambda: use(table)) == []


def test_a_transaction_of_several_tables_is_not_warned_of(tmp_path: Any) -> None:

    catalog = icefield.load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    for name in ("db.a", "db.b"):
        catalog.create_table_as(name, {"id": [0]})

    def changed(fails: bool) -> None:
        with catalog.transaction() as transaction:
            for name in ("db.a", "db.b"):
                transaction.table(name).append({"id": [1]})
            if fails:
                raise CommitFailed("stop")

    def failed() -> None:
        with pytest.raises(CommitFailed):
            changed(True)

    assert warned(lambda: changed(False)) == warned(failed) == []
