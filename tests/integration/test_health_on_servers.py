"""The examination of catalogs on real servers: a sound server passes, and the examination finds faults of a proxy."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from http_between import Answered, Asked, Between, Forward, answer
from icefield import load_catalog
from icefield.base.secrets import credentials_in
from icefield_maintenance.doctor import Finding, Result, examine

pytestmark = pytest.mark.slow
COMMITS = ["create a table", "commit on an old base", "commits at once", "drop the table"]
# The fixture of each server that holds a warehouse, the plugin's package, and the scheme of the warehouse.
STORES = {"gcs": "icefield_gcs", "azure": "icefield_adls", "s3": "icefield_s3", "hdfs": "icefield_hdfs"}
SCHEMES = {"gcs": "gs", "s3": "s3"}
CREDENTIALS = {
    "az": "adls.connection-string, for the account 'devstoreaccount1'",
    "gs": "anonymous, by gcs.no-auth",
    "s3": "the lasting ones of s3.access-key-id, 'test'",
    "hdfs": "",  # whatever the plugin says of a user without a password
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> dict[str, str]:
    """The properties of a directory catalog on that store."""
    pytest.importorskip(STORES[request.param])
    server, name = request.getfixturevalue(request.param), uuid4().hex
    if request.param == "hdfs":
        return {"type": "directory", "commit": "rename", "warehouse": f"{server.url}/{name}"}
    place = f"az://{server.container}" if request.param == "azure" else f"{SCHEMES[request.param]}://{server.bucket}"
    return {"type": "directory", "commit": "create", "warehouse": f"{place}/{name}", **server.properties}


@pytest.fixture
def denying(gcs: object) -> Iterator[tuple[dict[str, str], Between]]:
    """A directory catalog on a Google store, and the proxy in front of the store."""
    pytest.importorskip("icefield_gcs")
    uploads = importlib.import_module("servers.gcs").Uploads()
    with Between(gcs.url).open() as between:  # type: ignore[attr-defined]
        between.server = uploads
        place = f"gs://{gcs.bucket}/{uuid4().hex}"  # type: ignore[attr-defined]
        quick = {"gcs.retry.num-retries": "1", "gcs.retry.min-wait-ms": "1"}
        reached = {"gcs.service.host": between.url, "gcs.no-auth": "true", **quick}
        yield {"type": "directory", "commit": "create", "warehouse": place, **reached}, between


def examined(properties: dict[str, str], name: str = "test") -> dict[str, Finding]:
    return {each.check: each for each in examine(name, **properties) if not each.check.startswith("plugin ")}


def failed(found: dict[str, Finding]) -> set[str]:
    return {check for check, finding in found.items() if finding.result is Result.FAILED}


def test_a_store_keeps_what_its_plugin_says_and_is_left_as_it_was(store: dict[str, str]) -> None:
    found = examined(store)
    assert failed(found) == set(), found
    kept, other = ("create", "rename") if store["commit"] == "create" else ("rename", "create")
    assert found[f"atomic {kept}"].found == "one of 8 at once won, 3 times"
    assert found[f"atomic {other}"].result is Result.SKIPPED
    assert f"commit='{kept}'" in found[f"atomic {other}"].found
    assert found["clock"].result is Result.OK
    assert found["create a table"].found == f"by {kept.title()}Strategy"
    assert found["commits at once"].found == "one of 4 won"
    with load_catalog("test", **store) as catalog:
        assert list(catalog.io.list_files(store["warehouse"], shallow=True)) == []


def test_the_source_of_the_credentials_is_stated_and_not_the_credentials(store: dict[str, str]) -> None:
    found = {each.check: each for each in examine("test", writes=False, **store)}["credentials"]
    scheme = store["warehouse"].partition("://")[0]
    assert found.found
    assert found.found.startswith(CREDENTIALS[scheme])
    secrets = credentials_in(store)
    assert secrets or scheme in ("gs", "hdfs")
    assert not any(secret in repr(found) for secret in secrets)


@pytest.mark.parametrize("store", ["gcs", "azure", "s3"], indirect=True)  # HDFS has no containers
def test_a_container_that_is_not_there_is_reported(store: dict[str, str]) -> None:
    other = re.sub(r"://[^/]+/", "://not-there/", store["warehouse"])
    found = examined({**store, "warehouse": other})
    assert "write" in failed(found)
    assert "is not there" in found["write"].found
    assert found["write"].advice == "create it, or correct the location"


def test_a_right_that_is_wanting_is_named_by_operation_and_location(
    denying: tuple[dict[str, str], Between],
) -> None:
    properties, between = denying
    between.faulty(answer(403), _deletes, times=None)
    found = examined(properties)
    assert failed(found) >= {"delete", "clean-up"}
    assert found["delete"].found.startswith(f"denied: Google Cloud Storage failed on {properties['warehouse']}/")
    assert "right to delete gs://" in found["delete"].advice
    assert properties["warehouse"] in found["clean-up"].found


def test_credentials_that_are_refused_are_reported(denying: tuple[dict[str, str], Between]) -> None:
    properties, between = denying
    between.faulty(answer(401), lambda asked: True, times=None)
    found = examined(properties)
    assert "connection" in failed(found)
    assert "credentials" in failed(found)
    assert found["credentials"].advice == "renew them, or set gcs.oauth2.token"


def _deletes(asked: Asked) -> bool:
    return asked.method == "DELETE" or asked.path.startswith("/batch") or b"DELETE " in asked.body[:2_000]


def test_a_metastore_in_postgresql_is_well_and_left_as_it_was(postgres: str, tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": postgres, "warehouse": f"file://{tmp_path}/warehouse", "file.sync": "false"}
    name = f"c{uuid4().hex}"
    found = examined(properties, name)
    assert {finding.result for finding in found.values()} == {Result.OK}
    assert found["connection"].found == "0 namespaces; user 'test', without a password in uri"
    assert [check for check in found if check in COMMITS] == COMMITS
    assert found["create a table"].found == "by SqlStrategy"
    with load_catalog(name, **properties) as catalog:
        assert catalog.list_namespaces() == []
    assert not [*(tmp_path / "warehouse").rglob("*")]


def test_a_lock_in_dynamodb_is_tried_with_the_tables_commits(dynamodb: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("icefield_dynamodb")
    quick = {"lock.heartbeat-interval-ms": "100", "lock.heartbeat-timeout-ms": "400", "lock.acquire-interval-ms": "50"}
    place = {"type": "directory", "commit": "dynamodb-lock", "warehouse": f"file://{tmp_path}/warehouse"}
    found = examined({**place, **quick, **dynamodb, "lock.table": f"locks-{uuid4().hex}"})
    assert {finding.result for finding in found.values()} == {Result.OK}
    said = found["create a table"].found
    assert said == "by DynamoDbLockStrategy, with the credentials those of the properties, 'test'"
    unreachable = {**dynamodb, "dynamodb.endpoint": "http://127.0.0.1:1", "lock.table": "locks"}
    found = examined({**place, **quick, **unreachable})
    assert failed(found) == {"catalog"}
    assert "dynamodb.endpoint" in found["catalog"].advice


def test_a_hive_metastore_is_tried_with_its_locks_and_left_as_it_was(hive: str, tmp_path: Path) -> None:
    pytest.importorskip("icefield_hive")
    properties = {"type": "hive", "uri": hive, "warehouse": f"file://{tmp_path}/warehouse", "file.sync": "false"}
    with load_catalog("test", **properties) as catalog:
        before = catalog.list_namespaces()
        found = examined(properties)
        assert failed(found) == set(), found
        assert found["create a table"].found == "by HiveStrategy"
        assert found["commits at once"].found == "one of 4 won"
        assert catalog.list_namespaces() == before
    gone = examined({**properties, "uri": "thrift://127.0.0.1:1", "hive.metastore.client.connection.timeout": "1"})
    assert failed(gone) == {"connection"}
    assert gone["connection"].advice


@pytest.fixture
def ignoring(s3: object) -> Iterator[dict[str, str]]:
    """A directory catalog on a store of S3's protocol that accepts conditions and ignores them."""
    pytest.importorskip("icefield_s3")
    with Between(s3.url).open() as between:  # type: ignore[attr-defined]

        def unconditional(asked: Asked, forward: Forward) -> Answered:
            return forward(replace(asked, headers={k: v for k, v in asked.headers.items() if k != "if-none-match"}))

        between.faulty(unconditional, lambda asked: "if-none-match" in asked.headers, times=None)
        place = f"s3://{s3.bucket}/{uuid4().hex}"  # type: ignore[attr-defined]
        reached = {**s3.properties, "s3.endpoint": between.url}  # type: ignore[attr-defined]
        yield {"type": "directory", "commit": "create", "warehouse": place, **reached}


def test_a_store_that_ignores_conditions_is_named_with_the_property_that_declares_it(
    ignoring: dict[str, str], dynamodb: dict[str, str]
) -> None:
    found = examined(ignoring)
    assert failed(found) >= {"atomic create", "commits at once"}
    assert "created twice under one name" in found["atomic create"].found
    advice = found["atomic create"].advice
    assert advice.startswith("declare it by the property s3.conditional-put=false; use commit='dynamodb-lock' or")
    assert "commit='create'" not in advice
    declared = {**ignoring, "s3.conditional-put": "false"}
    refused = examined(declared)
    assert failed(refused) == {"catalog"}
    assert "ATOMIC_CREATE" in refused["catalog"].found
    quick = {"lock.heartbeat-interval-ms": "100", "lock.heartbeat-timeout-ms": "400", "lock.acquire-interval-ms": "50"}
    locked = {**declared, **dynamodb, **quick, "commit": "dynamodb-lock", "lock.table": f"locks-{uuid4().hex}"}
    safe = examined(locked)
    assert failed(safe) == set(), safe
    assert safe["atomic create"].result is Result.SKIPPED
    assert safe["commits at once"].found == "one of 4 won"
    with load_catalog("test", **locked) as catalog:
        assert list(catalog.io.list_files(ignoring["warehouse"])) == []
