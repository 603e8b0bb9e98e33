"""A 404 means that a table, view or namespace is not there, whatever is in its body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    StorageError,
)

SCHEMA = pa.schema([("id", pa.int64())])
BODIES: dict[str, bytes] = {
    "the model": b'{"error": {"message": "no", "type": "", "code": 404}}',
    "another object": b'{"message": "Table t not found in schema db", "status_code": 404}',
    "a problem": b'{"type": "about:blank", "title": "Not Found", "status": 404}',
    "a string": b'"not found"',
    "a page": b"<html><body>404</body></html>",
    "nothing": b"",
    "bytes": b"\x00\xff" * 100,
}


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with Between(our_rest).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    waits = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "10", "rest.retry.num-retries": "1"}
    with load_catalog("test", type="rest", uri=between.url, **waits) as made:
        made.create_namespace("db")
        made.create_table("db.t", SCHEMA)
        made.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
        yield made


def missing(between: Between, body: bytes, fits: Callable[[Asked], bool] = lambda _: True) -> None:
    """Have requests answered by a 404."""
    answer = Answered(404, {"Content-Type": "application/json"}, body)
    between.behave = lambda asked, forward: answer if fits(asked) else forward(asked)


CALLS: dict[str, tuple[Callable[[Catalog], object], object]] = {
    "load table": (lambda c: c.load_table("db.t"), NoSuchTable),
    "table exists": (lambda c: c.table_exists("db.t"), False),
    "drop table": (lambda c: c.drop_table("db.t"), NoSuchTable),
    "rename table": (lambda c: c.rename_table("db.t", "db.u"), NoSuchTable),
    "load view": (lambda c: c.load_view("db.v"), NoSuchView),
    "view exists": (lambda c: c.view_exists("db.v"), False),
    "drop view": (lambda c: c.drop_view("db.v"), NoSuchView),
    "rename view": (lambda c: c.rename_view("db.v", "db.w"), NoSuchView),
    "list tables": (lambda c: c.list_tables("db"), NoSuchNamespace),
    "list views": (lambda c: c.list_views("db"), NoSuchNamespace),
    "list namespaces below": (lambda c: c.list_namespaces("db"), NoSuchNamespace),
    "load namespace": (lambda c: c.load_namespace_properties("db"), NoSuchNamespace),
    "namespace exists": (lambda c: c.namespace_exists("db"), False),
    "drop namespace": (lambda c: c.drop_namespace("db"), NoSuchNamespace),
    "change namespace": (lambda c: c.update_namespace_properties("db", updates={"a": "b"}), NoSuchNamespace),
    "create table": (lambda c: c.create_table("db.new", SCHEMA, location="memory://x/new"), NoSuchNamespace),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("call", CALLS)
def test_a_404_with_any_body_says_that_what_was_named_is_not_there(
    catalog: Catalog, between: Between, call: str, body: str
) -> None:
    act, expected = CALLS[call]
    missing(between, BODIES[body])
    if expected is False:
        assert act(catalog) is False
        return
    assert isinstance(expected, type)
    with pytest.raises(expected) as caught:
        act(catalog)
    assert type(caught.value) is expected


@pytest.mark.parametrize("body", ["another object", "a page", "nothing"])
def test_a_404_to_a_change_of_a_table_that_can_be_loaded_is_no_missing_table(
    catalog: Catalog, between: Between, body: str
) -> None:
    table, view = catalog.load_table("db.t"), catalog.load_view("db.v")
    missing(between, BODIES[body], lambda asked: asked.method in ("POST", "DELETE"))
    changes: list[Callable[[], object]] = [
        lambda: table.set_properties({"a": "b"}),
        lambda: catalog.drop_table("db.t"),
        lambda: catalog.rename_table("db.t", "db.u"),
        lambda: view.set_properties({"a": "b"}),
        lambda: catalog.drop_view("db.v"),
        lambda: catalog.rename_view("db.v", "db.w"),
    ]
    for change in changes:
        with pytest.raises(StorageError, match="'prefix'"):
            change()


@pytest.mark.parametrize("body", ["another object", "a page", "nothing"])
def test_a_commit_to_a_table_that_is_gone_says_so(catalog: Catalog, between: Between, body: str) -> None:
    table = catalog.load_table("db.t")
    missing(between, BODIES[body])
    with pytest.raises(NoSuchTable):
        table.set_properties({"a": "b"})


@pytest.mark.parametrize("body", [body for body in BODIES if body != "the model"])
def test_an_address_where_no_service_is_says_what_to_look_at(between: Between, body: str) -> None:
    missing(between, BODIES[body])
    with pytest.raises(StorageError, match="'uri'"):
        load_catalog("test", type="rest", uri=between.url).list_namespaces()


def test_a_warehouse_that_is_not_there_is_named(between: Between) -> None:
    missing(between, json.dumps({"error": {"message": "no", "type": "NotFoundException", "code": 404}}).encode())
    with pytest.raises(InvalidArgument, match="no warehouse 'w'"):
        load_catalog("test", type="rest", uri=between.url, warehouse="w").list_namespaces()


def test_a_wrong_prefix_is_named_where_namespaces_are_listed(catalog: Catalog, between: Between) -> None:
    missing(between, b"", lambda asked: not asked.path.startswith("/v1/config"))
    with pytest.raises(StorageError, match="'prefix'"):
        catalog.list_namespaces()
    with pytest.raises(NoSuchNamespace, match="'prefix'"):
        catalog.list_tables("db")


@pytest.mark.parametrize("body", ["another object", "a page", "nothing"])
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_drop_whose_reply_was_lost_is_not_taken_for_done_because_of_a_404_of_something_else(
    catalog: Catalog, between: Between, kind: str, body: str
) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if asked.method == "DELETE":
            return None
        return Answered(404, {}, BODIES[body])

    between.behave = behave
    drop = catalog.drop_table if kind == "table" else catalog.drop_view
    with pytest.raises(IcefieldError) as caught:
        drop(f"db.{kind[0]}")
    assert isinstance(caught.value, CommitStateUnknown) or "may have been done or not" in str(caught.value)
