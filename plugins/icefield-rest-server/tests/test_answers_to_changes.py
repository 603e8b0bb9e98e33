"""A change that was made is never answered as one that was not, whatever fails after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import AccessDenied, CommitStateUnknown, StorageError
from icefield_rest_server import Settings, app
from icefield_rest_server.answers import Answer
from icefield_rest_server.idempotency import Begun, IdempotencyStore
from local_client import LocalClient
from rest_bodies import SCHEMA, VIEW_VERSION

TABLES = "/v1/namespaces/db/tables"
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
FAILURES = (StorageError("no credentials now", retryable=True), AccessDenied("no such role"), RuntimeError("a defect"))


class Vendor:
    """Gives one key, until it fails."""

    def __init__(self) -> None:
        self.fails: Exception | None = None

    def credentials(
        self, principal: Any, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        if self.fails is not None:
            raise self.fails
        return [(location, {"s3.access-key-id": "key"})]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("served", type="sql", **place) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def vendor() -> Vendor:
    return Vendor()


@pytest.fixture
def client(catalog: Catalog, vendor: Vendor) -> LocalClient:
    return LocalClient(app(catalog, Settings(vendor=vendor)))


def setting(name: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "done"}}]}


def without_keys(answer: Any) -> Any:
    """The body of an answer to a change that was made, and that opens no files."""
    assert answer.status_code == 200, answer.text
    assert answer.json()["config"] == {}
    assert "storage-credentials" not in answer.json()
    return answer.json()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_commit_that_was_made_is_never_answered_as_refused(
    client: LocalClient, catalog: Catalog, vendor: Vendor, failure: Exception
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    vendor.fails = failure
    found = without_keys(client.post(f"{TABLES}/t", json=setting("a"), headers=VENDED))
    assert found["metadata"]["properties"]["a"] == "done"
    assert found["metadata-location"] == catalog.load_table("db.t").metadata_location
    vendor.fails = None
    assert client.get(f"{TABLES}/t/credentials").json()["storage-credentials"]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_table_that_was_made_is_never_answered_as_refused(
    client: LocalClient, catalog: Catalog, vendor: Vendor, failure: Exception
) -> None:
    vendor.fails = failure
    without_keys(client.post(TABLES, json={"name": "t", "schema": SCHEMA}, headers=VENDED))
    gone = client.post(f"{TABLES}/t/unregister", json={}).json()
    given = {"name": "u", "metadata-location": gone["metadata-location"]}
    without_keys(client.post("/v1/namespaces/db/register", json=given, headers=VENDED))
    assert catalog.list_tables("db") == [("db", "u")]


def test_what_changes_nothing_says_that_there_are_no_credentials(
    client: LocalClient, catalog: Catalog, vendor: Vendor
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    vendor.fails = FAILURES[0]
    assert client.get(f"{TABLES}/t", headers=VENDED).status_code == 503
    staged = {"name": "u", "schema": SCHEMA, "stage-create": True}
    assert client.post(TABLES, json=staged, headers=VENDED).status_code == 503


def test_an_answer_by_its_key_says_what_was_done_though_there_are_no_credentials(
    client: LocalClient, catalog: Catalog, vendor: Vendor
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    headers = {**VENDED, "Idempotency-Key": str(uuid4())}
    vendor.fails = FAILURES[0]
    for _ in range(2):
        without_keys(client.post(f"{TABLES}/t", json=setting("a"), headers=headers))
    vendor.fails = None
    again = client.post(f"{TABLES}/t", json=setting("a"), headers=headers).json()
    assert again["config"] == {"s3.access-key-id": "key"}
    assert len(catalog.load_table("db.t").metadata.metadata_log) == 1


def test_a_table_that_was_renamed_is_not_answered_as_one_that_cannot_be_read(
    client: LocalClient, catalog: Catalog
) -> None:
    location = catalog.create_table("db.t", pa.schema([("id", pa.int64())])).metadata_location
    Path(location.removeprefix("file://")).write_text("damaged")
    names = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "u"}}
    assert client.post("/v1/tables/rename", json=names).status_code == 204
    assert catalog.list_tables("db") == [("db", "u")]
    nowhere = {**names, "destination": {"namespace": [], "name": "u"}}
    assert client.post("/v1/tables/rename", json=nowhere).status_code == 400


def test_a_view_that_was_made_is_answered_though_it_cannot_be_read_again(
    client: LocalClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> Any:
        raise FAILURES[0]

    monkeypatch.setattr(catalog.backend, "load_view", fails)
    given = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    made = client.post("/v1/namespaces/db/views", json=given)
    assert made.status_code == 200, made.text
    names = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}}
    assert client.post("/v1/views/rename", json=names).status_code == 204
    again = {"name": "x", "metadata-location": made.json()["metadata-location"]}
    assert client.post("/v1/namespaces/db/register-view", json=again).status_code == 200
    assert catalog.list_views("db") == [("db", "w"), ("db", "x")]


def test_a_commit_is_answered_though_the_catalog_fails_right_after_it(
    client: LocalClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    strategy, commit_table = catalog.backend.strategy, catalog.commit_table

    def fails(*_: Any) -> Any:
        raise FAILURES[0]

    def committed(*given: Any, **more: Any) -> Any:
        table = commit_table(*given, **more)
        monkeypatch.setattr(catalog.backend, "strategy", fails)
        return table

    monkeypatch.setattr(catalog, "commit_table", committed)
    answer = client.post(f"{TABLES}/t", json=setting("a"))
    assert answer.status_code == 200, answer.text
    monkeypatch.setattr(catalog.backend, "strategy", strategy)
    assert catalog.load_table("db.t").properties["a"] == "done"


class _Inherited(IdempotencyStore):
    """A store whose every request was begun by a process that died."""

    def __init__(self) -> None:
        self.ended: list[Answer | None] = []

    def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | Begun:
        return Begun.AGAIN

    def end(self, who: str, key: str, answer: Answer | None) -> None:
        self.ended.append(answer)


def test_a_request_that_another_process_may_have_done_stays_in_doubt_where_nobody_can_look(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise FAILURES[0]

    store = _Inherited()
    client = LocalClient(app(catalog, Settings(keys=store)))
    monkeypatch.setattr(catalog.backend, "strategy", fails)
    answer = client.post(f"{TABLES}/t", json=setting("a"), headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 500, answer.text
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert store.ended == [None]


def test_a_creation_that_another_process_may_have_done_is_not_answered_as_not_done(catalog: Catalog) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    client = LocalClient(app(catalog, Settings(keys=_Inherited())))
    given = {"name": "t", "schema": SCHEMA}
    answer = client.post(TABLES, json=given, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 500, answer.text
    assert answer.json()["error"]["type"] == "ServiceFailureException"


@pytest.mark.parametrize("shared", [False, True])
def test_a_commit_with_an_unknown_outcome_is_looked_for_when_its_key_comes_again(
    catalog: Catalog, tmp_path: Path, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    first = catalog.load_table("db.t").current_snapshot()
    assert first is not None
    added = {
        "snapshot-id": 777,
        "parent-snapshot-id": first.snapshot_id,
        "sequence-number": 2,
        "timestamp-ms": first.timestamp_ms + 1,
        "manifest-list": first.manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    commit = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": first.snapshot_id}],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 777},
        ],
    }
    commit_table = catalog.commit_table

    def unknown(*given: Any, **more: Any) -> Any:
        commit_table(*given, **more)
        raise CommitStateUnknown("the reply was lost")

    with LocalClient(app(catalog, Settings(shared=str(tmp_path / "shared") if shared else None))) as client:
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "commit_table", unknown)
            headers = {"Idempotency-Key": str(uuid4())}
            assert client.post(f"{TABLES}/t", json=commit, headers=headers).status_code == 500
        again = [client.post(f"{TABLES}/t", json=commit, headers=headers) for _ in range(2)]
        assert [each.status_code for each in again] == [200, 200], again[0].text
        assert client.post(f"{TABLES}/t", json=commit).status_code == 409
    assert [each.snapshot_id for each in catalog.load_table("db.t").snapshots()].count(777) == 1
