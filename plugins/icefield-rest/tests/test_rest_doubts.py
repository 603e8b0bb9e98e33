"""A change that may have been made is never said to be refused, whatever is answered when it is sent again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import CommitStateUnknown, StorageError, ViewExists
from icefield_rest import connection

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3]}, schema=SCHEMA)
WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "10", "rest.retry.num-retries": "2"}
QUICK = {"commit.retry.min-wait-ms": 1, "commit.status-check.min-wait-ms": 1, "commit.status-check.num-retries": 1}
FIRST = ("502", "500", "lost", "cut")


def model(status: int, kind: str = "BadRequestException") -> Answered:
    said = {"error": {"message": "no", "type": kind, "code": status}}
    return Answered(status, {"Content-Type": "application/json"}, json.dumps(said).encode())


THEN = {
    "400": model(400),
    "401": model(401, "NotAuthorizedException"),
    "403": model(403, "ForbiddenException"),
    "404": model(404, "NoSuchTableException"),
    "405": Answered(405),
    "409": model(409, "CommitFailedException"),
    "409 of a proxy": Answered(409, {}, b"<html>"),
    "429": Answered(429),
    "501": Answered(501),
    "404 of a proxy": Answered(404, {}, b"<html>"),
    "a redirection": Answered(302, {"Location": "https://login.example.org/"}),
}


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with Between(our_rest).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with load_catalog("test", type="rest", uri=between.url, **WAITS) as made:
        made.create_namespace("db")
        for name in ("db.t", "db.u"):
            made.create_table(name, SCHEMA, properties=QUICK)
        yield made


def doubtful(between: Between, method: str, end: str, first: str, then: Answered, *, done: bool = True) -> None:
    """Have a request done, or not, with a reply that leaves it open; what comes after is answered by ``then``."""
    count = iter(range(1_000))

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if asked.method != method or not asked.path.partition("?")[0].endswith(end):
            return forward(asked)
        if next(count):
            return then
        found = forward(asked) if done else Answered(200, {}, b"{}" * 10)
        if first == "cut" and found.body:
            return Answered(found.status, found.headers, found.body, cut=len(found.body) // 2)
        return None if first in ("lost", "cut") else Answered(int(first))

    between.behave = behave


@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("first", FIRST)
def test_a_commit_that_was_made_is_never_answered_as_refused(
    catalog: Catalog, between: Between, first: str, then: str
) -> None:
    table = catalog.load_table("db.t")
    doubtful(between, "POST", "/tables/t", first, THEN[then])
    table.append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
    assert len(catalog.load_table("db.t").snapshots()) == 1


@pytest.mark.parametrize("then", ["400", "401", "403", "404", "404 of a proxy", "409 of a proxy"])
def test_a_commit_that_nobody_sees_is_unknown_and_its_files_stay(
    catalog: Catalog, between: Between, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setattr("icefield_rest.strategy._LOOKS", 1)
    table = catalog.load_table("db.t")
    doubtful(between, "POST", "/tables/t", "502", THEN[then], done=False)
    with pytest.raises(CommitStateUnknown, match=r"502.*then: "):
        table.append(ROWS)
    assert list(table.io.list_files(f"{table.location()}/data"))


def test_a_change_of_properties_that_meets_a_conflict_after_a_doubt_is_made_again(
    catalog: Catalog, between: Between
) -> None:
    table = catalog.load_table("db.t")
    answers = iter([Answered(502), THEN["409"]])

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        fits = asked.method == "POST" and asked.path.endswith("/tables/t")
        return next(answers, None) or forward(asked) if fits else forward(asked)

    between.behave = behave
    table.set_properties({"x": "1"})
    assert catalog.load_table("db.t").properties["x"] == "1"


@pytest.mark.parametrize("then", ["401", "409", "404"])
def test_a_transaction_that_was_made_is_never_answered_as_refused(
    catalog: Catalog, between: Between, then: str
) -> None:
    doubtful(between, "POST", "/transactions/commit", "502", THEN[then])
    with catalog.transaction() as tx:
        for name in ("db.t", "db.u"):
            tx.table(name).append(ROWS)
    for name in ("db.t", "db.u"):
        assert catalog.load_table(name).scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("status", [403, 503])
def test_a_transaction_that_was_acknowledged_keeps_its_files_where_the_tables_cannot_be_loaded(
    catalog: Catalog, between: Between, status: int
) -> None:
    failing = [False]

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if failing[0]:
            return Answered(status)
        found = forward(asked)
        failing[0] = asked.path.endswith("/transactions/commit")
        return found

    between.behave = behave
    tx = catalog.transaction()
    for name in ("db.t", "db.u"):
        tx.table(name).append(ROWS)
    with pytest.raises(CommitStateUnknown, match="acknowledged"):
        tx.commit_transaction()
    failing[0] = False
    for name in ("db.t", "db.u"):
        assert catalog.load_table(name).scan().to_arrow().num_rows == 3


KINDS: dict[str, tuple[Callable[[Catalog], object], str, str, Answered]] = {
    "create namespace": (
        lambda c: c.create_namespace("new"), "POST", "/v1/namespaces", model(409, "AlreadyExistsException"),
    ),
    "drop namespace": (
        lambda c: c.drop_namespace("empty"), "DELETE", "/namespaces/empty", model(404, "NoSuchNamespaceException"),
    ),
    "create table": (
        lambda c: c.create_table("db.new", SCHEMA), "POST", "/db/tables", model(409, "AlreadyExistsException"),
    ),
    "rename view": (
        lambda c: c.rename_view("db.v", "db.w"), "POST", "/views/rename", model(404, "NoSuchViewException"),
    ),
}  # fmt: skip
SEEN: dict[str, tuple[Callable[[Catalog], object], str, str, Answered]] = {
    "drop table": (lambda c: c.drop_table("db.t"), "DELETE", "/tables/t", model(404, "NoSuchTableException")),
    "rename table": (
        lambda c: c.rename_table("db.t", "db.w"), "POST", "/tables/rename", model(404, "NoSuchTableException"),
    ),
    "create view": (
        lambda c: c.create_view("db.new", SCHEMA, {"spark": "SELECT 2"}), "POST", "/db/views",
        model(409, "AlreadyExistsException"),
    ),
    "drop view": (lambda c: c.drop_view("db.v"), "DELETE", "/views/v", model(404, "NoSuchViewException")),
}  # fmt: skip


@pytest.mark.parametrize("name", [*KINDS, *SEEN])
def test_any_change_that_was_made_is_said_to_be_made_or_to_be_in_doubt(
    catalog: Catalog, between: Between, name: str
) -> None:
    catalog.create_namespace("empty")
    catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
    act, method, end, then = (KINDS | SEEN)[name]
    doubtful(between, method, end, "502", then)
    if name in SEEN:
        act(catalog)
        return
    with pytest.raises((CommitStateUnknown, StorageError), match=r"look whether|may have been done or not"):
        act(catalog)


def test_a_view_of_somebody_elses_is_one_that_exists(catalog: Catalog, between: Between) -> None:
    catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
    doubtful(between, "POST", "/db/views", "502", model(409, "AlreadyExistsException"), done=False)
    with pytest.raises(ViewExists):
        catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 2"})


def unreadable(between: Between, method: str, end: str, body: bytes) -> None:
    """Have requests done and acknowledged by what cannot be read."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        fits = asked.method == method and asked.path.partition("?")[0].endswith(end)
        return Answered(found.status, found.headers, body) if fits else found

    between.behave = behave


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"metadata": {"format-version": 99}}', b'{"metadata": {}}'])
def test_a_change_whose_acknowledgement_cannot_be_read_is_looked_for(
    catalog: Catalog, between: Between, body: bytes
) -> None:
    unreadable(between, "POST", "/tables/t", body)
    catalog.load_table("db.t").append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
    unreadable(between, "POST", "/db/views", body)
    catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
    unreadable(between, "POST", "/db/tables", body)
    with pytest.raises(CommitStateUnknown, match="was created"):
        catalog.create_table("db.new", SCHEMA)


def test_a_commit_whose_answer_is_too_long_is_looked_for(
    catalog: Catalog, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield_rest.tables.MAX_TABLE", 20_000)
    unreadable(between, "POST", "/tables/t", b" " * 20_001)
    catalog.load_table("db.t").append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
    assert connection.MAX_TABLE > 20_000
