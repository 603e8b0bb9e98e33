"""What a service answers: credentials of a table, what has not changed, and what nobody should believe."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import IcefieldError, InvalidArgument, NoSuchTable, StorageError
from servers.java_rest import drop_everything

SCHEMA = pa.schema([("id", pa.int64())])
SECRET = "of-this-table-alone"
WAITS = {"rest.retry.num-retries": "1", "rest.retry.min-wait-ms": "1"}


@pytest.fixture
def between(java_rest: str) -> Iterator[Between]:
    drop_everything(java_rest)
    with Between(java_rest).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with load_catalog("test", uri=between.url, **WAITS) as made:
        made.create_namespace("db")
        made.create_table("db.t", SCHEMA)
        made.backend._tables.forget(("db", "t"))  # type: ignore[attr-defined]
        yield made


def is_load(asked: Asked) -> bool:
    return asked.method == "GET" and asked.path.partition("?")[0].endswith("/tables/t")


def test_a_table_has_the_credentials_of_the_longest_prefix_and_shows_them_nowhere(
    catalog: Catalog, between: Between
) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not is_load(asked):
            return found
        body = json.loads(gzip.decompress(found.body) if found.body[:1] == b"\x1f" else found.body)
        at = body["metadata"]["location"]
        body["config"] = {"s3.region": "somewhere", "location.allowed-roots": "nowhere", "token": "for-requests"}
        body["storage-credentials"] = [
            {"prefix": at[:-2], "config": {"s3.secret-access-key": "of-others"}},
            {"prefix": at, "config": {"s3.access-key-id": "AK", "s3.secret-access-key": SECRET}},
            {"prefix": f"{at}/deeper", "config": {"s3.secret-access-key": "of-others"}},
        ]
        return Answered(found.status, {"Content-Type": "application/json"}, json.dumps(body).encode())

    between.behave = behave
    table = catalog.load_table("db.t")
    assert table.io.properties["s3.secret-access-key"] == SECRET
    assert table.io.properties["s3.region"] == "somewhere"
    assert "location.allowed-roots" not in table.io.properties
    assert "token" not in table.io.properties
    assert pickle.loads(pickle.dumps(table.io)).properties["s3.secret-access-key"] == SECRET
    shown = repr(table) + repr(table.io) + repr(table.scan()) + repr(catalog) + repr(catalog.backend)
    assert SECRET not in shown
    table.append(pa.table({"id": [1]}))
    commit = next(asked for asked in between.asked if asked.method == "POST" and asked.path.endswith("/tables/t"))
    assert commit.headers["authorization"] == "Bearer for-requests"
    assert table.io.properties["s3.secret-access-key"] == SECRET
    assert all("remote-signing" not in asked.headers["x-iceberg-access-delegation"] for asked in between.asked)


def test_what_has_not_changed_is_not_sent_again(catalog: Catalog, between: Between) -> None:
    statuses: list[int] = []

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        tag = '"v1"'
        if is_load(asked) and asked.headers.get("if-none-match") == tag:
            statuses.append(304)
            return Answered(304, {"ETag": tag})
        found = forward(asked)
        headers = {**found.headers, "ETag": tag} if is_load(asked) else found.headers
        return Answered(found.status, headers, found.body)

    between.behave = behave
    first, second = catalog.load_table("db.t"), catalog.load_table("db.t")
    assert statuses == [304]
    assert first.metadata is second.metadata


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        b'{"metadata": ' + b"[" * 100_000,
        b'{"metadata": {}, "metadata-location": "x"}',
        b'{"metadata": {"format-version": 2}, "metadata-location": 7}',
        b"<html>an error page</html>",
        b"\xff\xfe",
    ],
)
def test_what_is_no_table_is_one_error(catalog: Catalog, between: Between, body: bytes) -> None:
    between.behave = lambda asked, forward: Answered(200, {"Content-Type": "application/json"}, body)
    with pytest.raises(IcefieldError) as caught:
        catalog.load_table("db.t")
    assert not isinstance(caught.value, NoSuchTable)


def test_an_answer_is_read_no_further_than_it_may_be_long(
    catalog: Catalog, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield_rest.tables.MAX_TABLE", 1_000)
    between.behave = lambda asked, forward: Answered(200, {"Content-Type": "application/json"}, b" " * 10_000)
    with pytest.raises(StorageError, match="more than 1,000 bytes"):
        catalog.load_table("db.t")


@pytest.mark.parametrize("given", [{"snapshot-loading-mode": "few"}, {"scan-planning-mode": "nowhere"}])
def test_what_is_not_supported_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="not supported"):
        load_catalog("test", uri="http://127.0.0.1:9", **given)


def test_views_are_created_replaced_renamed_and_dropped(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", SCHEMA, {"spark": "select 1 as id"}, properties={"a": "b"})
    view = view.replace(SCHEMA, {"spark": "select 2 as id"})
    view = view.set_properties({"c": "d"}, ["a"])
    assert (catalog.load_view("db.v").sql, dict(view.properties)) == ({"spark": "select 2 as id"}, {"c": "d"})
    assert catalog.rename_view("db.v", "db.w").name == ("db", "w")
    assert (catalog.list_views("db"), catalog.list_tables("db")) == ([("db", "w")], [("db", "t")])
    catalog.drop_view("db.w")
    assert not catalog.view_exists("db.w")


def test_several_tables_change_in_one_step(catalog: Catalog) -> None:
    catalog.create_table("db.u", SCHEMA)
    tx = catalog.transaction()
    tx.table("db.t").append(pa.table({"id": [1]}))
    tx.table("db.u").append(pa.table({"id": [1, 2]}))
    catalog.load_table("db.t").append(pa.table({"id": [7]}))
    tx.commit_transaction()
    assert [catalog.load_table(name).scan().count() for name in ("db.t", "db.u")] == [2, 2]
