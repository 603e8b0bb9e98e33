"""One fault at each kind of request, before a server that knows keys of requests: what is said is so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Behaviour, Between, Forward, answer, lose_reply, lose_request, slow
from icefield import Catalog, load_catalog
from icefield.errors import IcefieldError

SCHEMA = pa.schema([("id", pa.int64())])
PATIENCE = 0.4
WAITS = {
    "rest.retry.min-wait-ms": "1",
    "rest.retry.max-wait-ms": "10",
    "rest.retry.num-retries": "3",
    "rest.client.socket-timeout-ms": str(int(PATIENCE * 1_000)),
}


def late(asked: Asked, forward: Forward) -> Answered | None:
    """The reply comes when nobody waits for it any more."""
    return slow(PATIENCE * 2)(asked, forward)


def cut(asked: Asked, forward: Forward) -> Answered | None:
    """The reply breaks off; one without a body is lost."""
    found = forward(asked)
    return replace(found, cut=len(found.body) // 2) if found.body and asked.method != "HEAD" else None


PASSES: dict[str, Behaviour] = {
    "request lost": lose_request,
    "reply lost": lose_reply,
    "reply cut": cut,
    "reply late": late,
    **{str(status): answer(status) for status in (429, 502, 503, 504)},
}
STAYS: dict[str, Behaviour] = {str(status): answer(status) for status in (419, 500)}


@dataclass(frozen=True)
class Kind:
    """A kind of request: how it is provoked, which request it is, and what is so once it was done."""

    act: Callable[[Catalog], object]
    method: str
    end: str
    done: Callable[[Catalog], bool] = lambda catalog: True


def in_one_step(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        for name in ("db.t", "db.u"):
            tx.table(name).append(pa.table({"id": [1]}, SCHEMA))


KINDS = {
    "list namespaces": Kind(lambda c: c.list_namespaces(), "GET", "/v1/namespaces"),
    "create namespace": Kind(
        lambda c: c.create_namespace("new"), "POST", "/v1/namespaces", lambda c: c.namespace_exists("new")
    ),
    "load namespace": Kind(lambda c: c.load_namespace_properties("db"), "GET", "/namespaces/db"),
    "namespace exists": Kind(lambda c: c.namespace_exists("db"), "HEAD", "/namespaces/db"),
    "namespace properties": Kind(
        lambda c: c.update_namespace_properties("db", updates={"k": "v"}),
        "POST",
        "/db/properties",
        lambda c: c.load_namespace_properties("db").get("k") == "v",
    ),
    "drop namespace": Kind(
        lambda c: c.drop_namespace("empty"), "DELETE", "/namespaces/empty", lambda c: not c.namespace_exists("empty")
    ),
    "list tables": Kind(lambda c: c.list_tables("db"), "GET", "/db/tables"),
    "create table": Kind(
        lambda c: c.create_table("db.new", SCHEMA), "POST", "/db/tables", lambda c: c.table_exists("db.new")
    ),
    "table exists": Kind(lambda c: c.table_exists("db.t"), "HEAD", "/tables/t"),
    "load table": Kind(lambda c: c.load_table("db.t"), "GET", "/tables/t"),
    "rename table": Kind(
        lambda c: c.rename_table("db.t", "db.w"), "POST", "/tables/rename", lambda c: c.table_exists("db.w")
    ),
    "drop table": Kind(lambda c: c.drop_table("db.t"), "DELETE", "/tables/t", lambda c: not c.table_exists("db.t")),
    "several tables": Kind(
        in_one_step,
        "POST",
        "/transactions/commit",
        lambda c: [c.load_table(name).scan().count() for name in ("db.t", "db.u")] == [1, 1],
    ),
    "list views": Kind(lambda c: c.list_views("db"), "GET", "/db/views"),
    "load view": Kind(lambda c: c.load_view("db.v"), "GET", "/views/v"),
    "create view": Kind(
        lambda c: c.create_view("db.new", SCHEMA, {"spark": "SELECT 2"}),
        "POST",
        "/db/views",
        lambda c: c.view_exists("db.new"),
    ),
    "rename view": Kind(
        lambda c: c.rename_view("db.v", "db.w"), "POST", "/views/rename", lambda c: c.view_exists("db.w")
    ),
    "drop view": Kind(lambda c: c.drop_view("db.v"), "DELETE", "/views/v", lambda c: not c.view_exists("db.v")),
}


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with Between(our_rest).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with load_catalog("first", type="rest", uri=between.url) as made:
        made.create_namespace("db")
        made.create_namespace("empty")
        for name in ("db.t", "db.u"):
            made.create_table(name, SCHEMA)
        made.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
    with load_catalog("test", type="rest", uri=between.url, **WAITS) as made:
        yield made


def is_request(kind: Kind) -> Callable[[Asked], bool]:
    return lambda asked: asked.method == kind.method and asked.path.partition("?")[0].endswith(kind.end)


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSES)
@pytest.mark.parametrize("name", KINDS)
def test_a_request_that_meets_what_may_pass_is_done_once(
    catalog: Catalog, between: Between, name: str, fault: str
) -> None:
    kind, before = KINDS[name], len(between.asked)
    between.faulty(PASSES[fault], is_request(kind))
    kind.act(catalog)
    asked = [each for each in between.asked[before:] if is_request(kind)(each)]
    assert len(asked) >= 2, "the fault was met"
    assert kind.done(catalog)
    keys = {each.headers.get("idempotency-key") for each in asked[:2]}
    assert len(keys) == 1, "a change is sent again with its key"


@pytest.mark.slow
@pytest.mark.parametrize("fault", STAYS)
@pytest.mark.parametrize("name", KINDS)
def test_a_request_that_is_refused_is_an_error_or_done(
    catalog: Catalog, between: Between, name: str, fault: str
) -> None:
    kind = KINDS[name]
    between.faulty(STAYS[fault], is_request(kind))
    said = ""
    try:
        kind.act(catalog)
    except IcefieldError as error:
        said = str(error)
    assert fault in said if said else kind.done(catalog)


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("name", ["list tables", "create table", "several tables"])
def test_a_service_that_says_when_to_come_again_is_asked_no_sooner(
    catalog: Catalog, between: Between, name: str, status: int
) -> None:
    times: list[float] = []

    def busy(asked: Asked, forward: Forward) -> Answered | None:
        return Answered(status, {"Retry-After": "1"})

    def when(asked: Asked) -> bool:
        found = is_request(KINDS[name])(asked)
        if found:
            times.append(time.monotonic())
        return found

    between.faulty(busy, when)
    KINDS[name].act(catalog)
    assert times[1] - times[0] >= 1.0
    assert KINDS[name].done(catalog)
