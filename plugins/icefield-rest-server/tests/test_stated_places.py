"""A place that a client names and that cannot be used is the client's fault, and leaves no commit in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import StorageError
from icefield_rest_server import app
from local_client import LocalClient
from rest_bodies import SCHEMA, VIEW_VERSION

TABLES, VIEWS = "/v1/namespaces/db/tables", "/v1/namespaces/db/views"
NOWHERE = ("nosuch://x/y", "file:///proc/x", "file:///dev/null/x", f"file:///tmp/{'n' * 300}")
LONG = "n" * 300


def opened(folder: Path, kind: str) -> Catalog:
    place = {"warehouse": f"file://{folder}/warehouse"}
    if kind == "sql":
        place["uri"] = f"sqlite:///{folder}/catalog.db"
    return load_catalog("served", type=kind, **place)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with opened(tmp_path, "sql") as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def client(catalog: Catalog) -> LocalClient:
    return LocalClient(app(catalog))


def refused(answer: Any) -> None:
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] in ("BadRequestException", "IllegalArgumentException")


@pytest.mark.parametrize("place", NOWHERE)
def test_nothing_is_made_at_a_place_that_cannot_be(client: LocalClient, catalog: Catalog, place: str) -> None:
    refused(client.post(TABLES, json={"name": "t", "schema": SCHEMA, "location": place}))
    view = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    refused(client.post(VIEWS, json=view | {"location": place}))
    refused(client.post("/v1/namespaces/db/register", json={"name": "t", "metadata-location": f"{place}/v1.json"}))
    refused(client.post("/v1/namespaces/db/register-view", json={"name": "v", "metadata-location": f"{place}/v1.json"}))
    assert catalog.list_tables("db") == catalog.list_views("db") == []


@pytest.mark.parametrize("place", ["nosuch://x/y", "file:///proc/x", f"file:///tmp/{LONG}"])
def test_a_change_to_a_place_that_cannot_be_is_known_to_be_undone(
    client: LocalClient, catalog: Catalog, place: str
) -> None:
    before = catalog.create_table("db.t", pa.schema([("id", pa.int64())])).metadata_location
    view = catalog.create_view("db.v", pa.schema([("id", pa.int64())]), {"spark": "SELECT 1"}).metadata_location
    moved = {"updates": [{"action": "set-location", "location": place}]}
    written = {"updates": [{"action": "set-properties", "updates": {"write.metadata.path": place}}]}
    named = {"identifier": {"namespace": ["db"], "name": "t"}, "requirements": []}
    refused(client.post(f"{TABLES}/t", json=moved))
    refused(client.post(f"{TABLES}/t", json=written))
    refused(client.post("/v1/transactions/commit", json={"table-changes": [named | moved]}))
    refused(client.post(f"{VIEWS}/v", json=moved))
    assert catalog.load_table("db.t").metadata_location == before
    assert catalog.load_view("db.v").metadata_location == view


def test_a_namespace_in_a_place_that_cannot_be_has_no_tables(client: LocalClient) -> None:
    given = {"namespace": ["n"], "properties": {"location": "nosuch://x/"}}
    assert client.post("/v1/namespaces", json=given).status_code == 200
    refused(client.post("/v1/namespaces/n/tables", json={"name": "t", "schema": SCHEMA}))


@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_a_name_that_is_too_long_for_the_disk_is_not_to_be_tried_again(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path, kind) as catalog:
        catalog.create_namespace("db")
        refused(LocalClient(app(catalog)).post(TABLES, json={"name": LONG, "schema": SCHEMA}))


def test_a_store_that_fails_at_a_stated_place_is_to_be_tried_again(
    client: LocalClient, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise StorageError("the store is busy", retryable=True)

    monkeypatch.setattr(catalog.backend, "strategy", fails)
    answer = client.post(TABLES, json={"name": "t", "schema": SCHEMA, "location": f"file://{tmp_path}/warehouse/u"})
    assert answer.status_code == 503, answer.text
