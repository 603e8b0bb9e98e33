"""What a service leaves out of a commit is said, and what the table shows of a failed one settles it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, Table, load_catalog
from icefield.errors import CommitStateUnknown, IcefieldError, InvalidArgument, NotSupportedByCatalog, PartlyCommitted

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
ROWS = pa.table({"id": [1], "kind": ["a"]}, schema=SCHEMA)
WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "10", "rest.retry.num-retries": "1"}
QUICK = {"commit.retry.min-wait-ms": 1, "commit.status-check.min-wait-ms": 1, "commit.status-check.num-retries": 1}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def between(our_rest: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    monkeypatch.setattr("icefield_rest.strategy._LOOKS", 2)
    with Between(our_rest).open() as made:
        yield made


@pytest.fixture
def table(between: Between) -> Iterator[Table]:
    with load_catalog("test", type="rest", uri=between.url, **WAITS) as catalog:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", SCHEMA, properties=QUICK)
        made.append(ROWS)
        made.append(ROWS)
        yield made


def first(table: Table) -> int:
    return table.snapshots()[0].snapshot_id


CHANGES: dict[str, tuple[Callable[[Table], object], str]] = {
    "tag": (lambda t: t.manage_snapshots().create_tag(first(t), "tg").commit(), "branch or tag 'tg'"),
    "branch": (lambda t: t.manage_snapshots().create_branch(first(t), "dev").commit(), "branch or tag 'dev'"),
    "rollback": (lambda t: t.manage_snapshots().rollback_to_snapshot(first(t)).commit(), "branch or tag 'main'"),
    "set a property": (lambda t: t.set_properties({"a": "1"}), "property 'a'"),
    "remove a property": (lambda t: t.remove_properties("commit.retry.min-wait-ms"), "the removal of property"),
    "add a column": (lambda t: t.update_schema().add_column("more", "int").commit(), "the current schema"),
    "partition": (lambda t: t.update_spec().add_identity("kind").commit(), "the default partition spec"),
    "sort": (lambda t: t.update_sort_order().asc("id").commit(), "the default sort order"),
    "upgrade": (lambda t: t.transaction().upgrade_table_version(3).commit_transaction(), "format version 3"),
    "move": (lambda t: t.transaction().update_location(t.location() + "x").commit_transaction(), ""),
}


def committing(asked: Asked) -> bool:
    return asked.method == "POST" and asked.path.partition("?")[0].endswith("/tables/t")


def model(status: int, kind: str) -> Answered:
    said = {"error": {"message": "no such thing", "type": kind, "code": status}}
    return Answered(status, JSON, json.dumps(said).encode())


def half_done(between: Between) -> None:
    """Have commits answered as done that leave everything out."""
    state: dict[str, bytes] = {}

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if committing(asked):
            return Answered(200, JSON, state["body"])
        found = forward(asked)
        if asked.method == "GET" and asked.path.partition("?")[0].endswith("/tables/t") and found.status == 200:
            state["body"] = found.body
        return found

    between.behave = behave


def changed(change: str) -> Callable[[Table], object]:
    return CHANGES[change][0]


@pytest.mark.parametrize("change", [each for each in CHANGES if each != "move"])
def test_a_part_that_a_service_leaves_out_is_a_warning_and_no_error(
    table: Table, between: Between, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = load_catalog("other", type="rest", uri=between.url, **WAITS).load_table("db.t")
    half_done(between)
    table.refresh()
    load_catalog("third", type="rest", uri=between.url, **WAITS).load_table("db.t")
    act, missing = CHANGES[change]
    with pytest.warns(PartlyCommitted, match="do not repeat the commit") as caught:
        act(table)
    (warning,) = [each for each in caught if each.category is PartlyCommitted]
    assert warning.filename == __file__, "the warning does not point at the user's code"
    assert isinstance(warning.message, PartlyCommitted)
    assert warning.message.table == ("db", "t")
    assert any(missing in part for part in warning.message.missing)
    assert "do not repeat the commit" in caplog.text


def test_a_filter_that_makes_errors_of_warnings_makes_none_of_a_commit(
    table: Table, between: Between, caplog: pytest.LogCaptureFixture
) -> None:
    table = load_catalog("other", type="rest", uri=between.url, **WAITS).load_table("db.t")
    half_done(between)
    load_catalog("third", type="rest", uri=between.url, **WAITS).load_table("db.t")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartlyCommitted)
        changed("tag")(table)
    assert "branch or tag 'tg'" in caplog.text


def test_nothing_is_said_of_a_commit_that_is_whole(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartlyCommitted)
        for act, _ in CHANGES.values():
            act(table)
            table.refresh()
        with table.transaction() as tx:
            tx.update_schema().delete_column("more").commit()
            tx.set_properties(a="2", b="3").remove_properties("b")
            tx.append(ROWS)
    assert "commit of table" not in caplog.text


def answered(between: Between, reply: Answered | None, *, done: bool) -> None:
    """Have a commit made or not, and every one answered alike."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if not committing(asked):
            return forward(asked)
        if done:
            forward(asked)
        return reply

    between.behave = behave


FAILURES: dict[str, Answered | None] = {
    "500": model(500, "ServiceFailureException"),
    "500 of a proxy": Answered(500, {}, b"<html>"),
    "500 unsupported": model(500, "UnsupportedOperationException"),
    "502": Answered(502),
    "504": Answered(504),
    "lost": None,
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_the_table_shows_happened_whatever_was_answered(
    table: Table, between: Between, change: str, failure: str
) -> None:
    answered(between, FAILURES[failure], done=True)
    changed(change)(table)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_a_service_declines_under_500_did_not_happen(table: Table, between: Between, change: str) -> None:
    answered(between, model(500, "UnsupportedOperationException"), done=False)
    with pytest.raises(NotSupportedByCatalog, match="no such thing"):
        changed(change)(table)
    answered(between, model(500, "IllegalArgumentException"), done=False)
    with pytest.raises(InvalidArgument, match="no such thing"):
        changed(change)(table.refresh())


@pytest.mark.parametrize("failure", [each for each in FAILURES if each != "500 unsupported"])
@pytest.mark.parametrize("change", ["tag", "set a property", "upgrade"])
def test_a_change_that_may_come_yet_is_unknown_and_the_error_says_what_the_table_lacks(
    table: Table, between: Between, change: str, failure: str
) -> None:
    answered(between, FAILURES[failure], done=False)
    act, missing = CHANGES[change]
    with pytest.raises(CommitStateUnknown, match="may come yet") as caught:
        act(table)
    assert missing in str(caught.value)


def test_rows_are_unknown_even_where_a_service_declines(table: Table, between: Between) -> None:
    answered(between, model(500, "UnsupportedOperationException"), done=False)
    files = set(table.io.list_files(f"{table.location()}/data"))
    with pytest.raises(CommitStateUnknown):
        table.append(ROWS)
    assert len(set(table.io.list_files(f"{table.location()}/data"))) == len(files) + 1


def test_an_answer_after_a_lost_request_declines_nothing(
    table: Table, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first may be under way: only the one answer to the one request says that nothing is to come."""
    answers: list[Answered | None] = [None, *[model(500, "UnsupportedOperationException")] * 5]

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        return answers.pop(0) if committing(asked) else forward(asked)

    between.behave = behave
    service: Any = table._handle.strategy
    monkeypatch.setattr(service._tables.service.connection, "repeats_changes", True)
    with pytest.raises(CommitStateUnknown):
        changed("set a property")(table)


def test_a_change_that_was_made_and_then_overtaken_is_not_said_to_be_refused(
    table: Table, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a change required is untrue after it as well as after another's: that shows nothing."""
    service: Any = table._handle.strategy
    monkeypatch.setattr(service._tables.service.connection, "repeats_changes", False)
    other = load_catalog("other", type="rest", uri=between.url, **WAITS).load_table("db.t")

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if not committing(asked):
            return forward(asked)
        between.behave = lambda later, onwards: onwards(later)
        forward(asked)
        other.refresh().update_schema().rename_column("more", "less").commit()
        return None

    between.behave = behave
    with pytest.raises(CommitStateUnknown):
        changed("add a column")(table)


def test_a_change_of_a_table_that_another_has_replaced_is_a_conflict(table: Table, between: Between) -> None:
    other = load_catalog("other", type="rest", uri=between.url, **WAITS)

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if not committing(asked):
            return forward(asked)
        between.behave = lambda later, onwards: onwards(later)
        other.drop_table("db.t")
        other.create_table("db.t", SCHEMA)
        return None

    between.behave = behave
    with pytest.raises(IcefieldError) as caught:
        changed("set a property")(table)
    assert not isinstance(caught.value, CommitStateUnknown)


def test_a_creation_that_a_service_declines_under_500_did_not_happen(between: Between) -> None:
    catalog: Catalog = load_catalog("test", type="rest", uri=between.url, **WAITS)
    catalog.create_namespace("db")
    decline = model(500, "UnsupportedOperationException")
    between.behave = lambda asked, forward: decline if asked.path.endswith("/tables") else forward(asked)
    with pytest.raises(NotSupportedByCatalog):
        catalog.create_table("db.t", SCHEMA)
    between.behave = lambda asked, forward: forward(asked)
    view = catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
    between.behave = lambda asked, forward: decline if asked.method == "POST" else forward(asked)
    with pytest.raises(NotSupportedByCatalog):
        view.set_properties({"a": "b"})
