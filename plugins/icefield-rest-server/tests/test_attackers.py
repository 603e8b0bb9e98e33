"""What somebody may try who has a token, or none: each is bounded, and gets nothing of what is another's."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from icefield import Catalog, load_catalog
from icefield_rest_server import JwtTokens, Settings, StaticCredentials, StsCredentials, app
from icefield_rest_server.answers import Answer
from icefield_rest_server.idempotency import Begun, IdempotencyKeys
from icefield_rest_server.namespaces import named
from icefield_rest_server.providers import only_reading
from icefield_rest_server.state import State
from jwt.algorithms import ECAlgorithm
from local_client import LocalClient
from rest_bodies import SCHEMA

TABLE = "/v1/namespaces/db/tables/t"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("served", type="sql", **place) as made:
        made.create_namespace("db")
        yield made


def failed(answer: Any, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == kind


class Issuer:
    """Somebody who signs tokens, and says with which keys."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._public = json.loads(ECAlgorithm.to_jwk(self._key.public_key()))
        self.name, self.asked, self.down = "1", 0, False
        self.tokens = JwtTokens("http://127.0.0.1:9/jwks", issuer="me", audience="ice")
        monkeypatch.setattr(self.tokens._keys, "fetch_data", self._keys)

    def _keys(self) -> Any:
        self.asked += 1
        if self.down:
            raise OSError("refused")
        return {"keys": [{**self._public, "kid": self.name, "use": "sig"}]}

    def token(self, name: str) -> str:
        claims = {"sub": "alice", "iss": "me", "aud": "ice", "exp": time.time() + 60}
        return jwt.encode(claims, self._key, "ES256", headers={"kid": name})


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("RS256", lambda: rsa.generate_private_key(65537, 2048)),
        ("PS512", lambda: rsa.generate_private_key(65537, 2048)),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate),
        ("HS256", lambda: "a" * 32),
        ("ES256", lambda: ec.generate_private_key(ec.SECP256R1())),
    ],
)
def test_a_token_that_the_issuers_key_cannot_have_signed_is_not_valid(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, algorithm: str, key: Any
) -> None:
    issuer = Issuer(monkeypatch)
    claims = {"sub": "alice", "iss": "me", "aud": "ice", "exp": time.time() + 60}
    token = jwt.encode(claims, key(), algorithm, headers={"kid": "1"})
    client = LocalClient(app(catalog, Settings(authenticator=issuer.tokens)))
    headers = {"Authorization": f"Bearer {token}"}
    failed(client.get("/v1/namespaces", headers=headers), 401, "NotAuthorizedException")
    headers = {"Authorization": f"Bearer {issuer.token('1')}"}
    assert client.get("/v1/namespaces", headers=headers).status_code == 200


def test_an_issuer_is_not_asked_for_each_key_that_somebody_makes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(monkeypatch)
    assert issuer.tokens.principal(issuer.token("1")) is not None
    assert issuer.asked == 1
    for number in range(50):
        assert issuer.tokens.principal(issuer.token(f"made-up-{number}")) is None
    assert issuer.asked == 2
    issuer.name = "2"
    monkeypatch.setattr(issuer.tokens._keys, "_asked_again", -1000.0)
    assert issuer.tokens.principal(issuer.token("2")) is not None
    assert issuer.asked == 3


def test_a_valid_token_does_not_wait_while_the_issuer_is_asked_for_an_unknown_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issuer = Issuer(monkeypatch)
    valid = issuer.token("1")
    assert issuer.tokens.principal(valid) is not None
    asked, answers = threading.Event(), threading.Event()

    def slow() -> Any:
        asked.set()
        assert answers.wait(60)
        return issuer._keys()

    monkeypatch.setattr(issuer.tokens._keys, "fetch_data", slow)
    with ThreadPoolExecutor(2) as pool:
        try:
            stranger = pool.submit(issuer.tokens.principal, issuer.token("unknown"))
            assert asked.wait(60)
            found = pool.submit(issuer.tokens.principal, valid).result(timeout=30)  # it ends before the issuer answers
            assert found is not None
            assert not stranger.done()
        finally:
            answers.set()
        assert stranger.result(timeout=60) is None


def test_without_the_issuers_keys_nobody_is_called_a_stranger(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = Issuer(monkeypatch)
    issuer.down = True
    client = LocalClient(app(catalog, Settings(authenticator=issuer.tokens)))
    for _ in range(20):
        headers = {"Authorization": f"Bearer {issuer.token('1')}"}
        failed(client.get("/v1/namespaces", headers=headers), 503, "ServiceUnavailableException")
        failed(client.get("/metrics", headers=headers), 503, "ServiceUnavailableException")
    assert issuer.asked < 5
    issuer.down = False
    monkeypatch.setattr(issuer.tokens._keys, "_failed_until", 0.0)
    assert client.get("/v1/namespaces", headers=headers).status_code == 200


def test_who_may_not_do_everything_gets_no_credentials_by_naming_anothers_place(catalog: Catalog) -> None:
    catalog.create_namespace("theirs")
    secret = catalog.create_table("theirs.t", pa.schema([("id", pa.int64())])).metadata.location
    warehouse = secret.removesuffix("/theirs/t")
    vendor = StaticCredentials({warehouse: {"s3.secret-access-key": "hush-hush"}})
    settings = Settings(vendor=vendor, authorizer=lambda _, __, target: target[:1] in ((), ("db",)))
    client = LocalClient(app(catalog, settings))
    asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}

    def created(name: str, **more: Any) -> Any:
        body = {"name": name, "schema": SCHEMA, **more}
        return client.post("/v1/namespaces/db/tables", json=body, headers=asking).json()

    assert created("mine")["storage-credentials"][0]["prefix"] == warehouse
    assert created("beside", location=f"{warehouse}/db/beside-1")["storage-credentials"]
    for number, place in enumerate((secret, f"{warehouse}/db/../theirs/t", f"{warehouse}/db", f"{warehouse}/dbs/t")):
        for staged in (True, False):
            body = {"name": f"t{number}", "schema": SCHEMA, "location": place, "stage-create": staged}
            answer = client.post("/v1/namespaces/db/tables", json=body, headers=asking)
            assert "hush" not in answer.text
    body = {"updates": {"location": f"{warehouse}/theirs"}}
    failed(client.post("/v1/namespaces/db/properties", json=body), 403, "ForbiddenException")
    body = {"namespace": ["db", "own"], "properties": {"location": f"{warehouse}/theirs"}}
    failed(client.post("/v1/namespaces", json=body), 403, "ForbiddenException")


def test_who_may_not_use_a_namespace_neither_lists_it_nor_makes_one_in_it(catalog: Catalog) -> None:
    for name in ("secret", "secret.sub", "open"):
        catalog.create_namespace(name)
    asked: list[tuple[str, tuple[str, ...]]] = []

    def may(who: Any, operation: str, target: tuple[str, ...]) -> bool:
        asked.append((operation, target))
        return target[:1] != ("secret",)

    client = LocalClient(app(catalog, Settings(authorizer=may)))
    for parent in ("secret", "secret%1Fsub", "secret%1Fno"):
        failed(client.get(f"/v1/namespaces?parent={parent}"), 403, "ForbiddenException")
    for made in (["secret", "mine"], ["secret", "sub", "mine"]):
        failed(client.post("/v1/namespaces", json={"namespace": made}), 403, "ForbiddenException")
    assert not catalog.namespace_exists(("secret", "mine"))
    asked.clear()
    assert client.get("/v1/namespaces").json()["namespaces"] == [["db"], ["open"], ["secret"]]
    assert client.get("/v1/namespaces?parent=open").json()["namespaces"] == []
    assert asked == [("listNamespaces", ()), ("listNamespaces", ("open",))]
    asked.clear()
    for made in (["open", "mine"], ["new"]):
        assert client.post("/v1/namespaces", json={"namespace": made}).status_code == 200
    assert set(asked) == {("createNamespace", each) for each in (("open", "mine"), ("open",), ("new",), ())}


class Sts:
    """Gives keys, and holds the policies that they were asked for with."""

    def __init__(self) -> None:
        self.policies: list[dict[str, Any]] = []

    def assume_role(self, **given: Any) -> Any:
        self.policies.append(json.loads(given["Policy"]))
        keys = {"AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c"}
        return {"Credentials": {**keys, "Expiration": datetime.now(UTC) + timedelta(hours=1)}}


@pytest.mark.parametrize(
    ("folder", "written"),
    [
        ("wh/*/orders", "wh/${*}/orders"),
        ("wh/db/t?", "wh/db/t${?}"),
        ("wh/${aws:username}/t", "wh/${$}{aws:username}/t"),
        ("wh/$*?", "wh/${$}${*}${?}"),
        ("wh/db/t/", "wh/db/t"),
    ],
)
def test_a_sign_of_policies_in_a_location_opens_no_other(folder: str, written: str) -> None:
    sts = Sts()
    assert StsCredentials(sts, "role").credentials(None, ("db", "t"), f"s3://lake/{folder}", True)
    objects, listing = sts.policies[0]["Statement"]
    assert objects["Resource"] == f"arn:aws:s3:::lake/{written}/*"
    assert listing["Resource"] == "arn:aws:s3:::lake"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": [f"{written}/*"]}}


@pytest.mark.parametrize("may_write", [True, False])
def test_keys_of_sts_write_only_for_clients_that_may_change_the_table(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, may_write: bool
) -> None:
    sts = Sts()
    settings = Settings(authorizer=None if may_write else only_reading(None), vendor=StsCredentials(sts, "role"))
    monkeypatch.setattr(State, "may_open", lambda state, table, location: True)
    assert State(catalog, settings).vended(None, ("db", "t"), "s3://lake/db/t")
    objects, _ = sts.policies[0]["Statement"]
    assert "s3:GetObject" in objects["Action"]
    assert ("s3:PutObject" in objects["Action"], "s3:DeleteObject" in objects["Action"]) == (may_write, may_write)


@pytest.mark.parametrize("place", ["lake", "lake/", "lake//", "*/wh/t", "la?e/wh/t", "", "/", "/wh/t"])
def test_keys_of_sts_open_no_whole_bucket_and_none_by_a_sign(place: str) -> None:
    sts = Sts()
    assert StsCredentials(sts, "role").credentials(None, ("db", "t"), f"s3://{place}", True) == []
    assert sts.policies == []


@pytest.mark.parametrize(
    ("count", "update"),
    [
        (5_001, {"action": "remove-properties", "removals": ["x"]}),
        (201, {"action": "add-spec", "spec": {"spec-id": 1, "fields": []}}),
    ],
)
def test_a_request_with_more_updates_than_may_be_is_refused(
    catalog: Catalog, count: int, update: dict[str, Any]
) -> None:
    client = LocalClient(app(catalog))
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    change = {"requirements": [], "updates": [update] * count}
    failed(client.post(TABLE, json=change), 400, "IllegalArgumentException")
    several = {"table-changes": [{**change, "identifier": {"namespace": ["db"], "name": "t"}}]}
    failed(client.post("/v1/transactions/commit", json=several), 400, "IllegalArgumentException")
    change["updates"] = [update] * (count - 1)
    assert client.post(TABLE, json=change).status_code == 200


@pytest.mark.parametrize("action", [{"type": "not"}, ["add-spec"], 7, None, True])
def test_an_update_whose_action_is_no_string_is_refused(catalog: Catalog, action: Any) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    body = {"requirements": [], "updates": [{"action": action}]}
    failed(LocalClient(app(catalog)).post(TABLE, json=body), 400, "IllegalArgumentException")


@given(
    st.lists(st.text(st.sampled_from('a",\\{}[]:\n\u00e9\U0001f600') | st.characters(codec="utf-8")), max_size=6),
    st.lists(st.text(min_size=1), min_size=1, max_size=3),
)
def test_a_listing_holds_any_name(names: list[str], namespace: list[str]) -> None:
    written = named(tuple(namespace), [(*namespace, name) for name in names])
    assert json.loads(bytes(written)) == [{"namespace": namespace, "name": name} for name in names]


def test_answers_by_idempotency_keys_take_no_more_memory_than_they_may() -> None:
    keys = IdempotencyKeys(1800, most_bytes=200_000)
    names = [str(uuid4()) for _ in range(60)]
    for number, name in enumerate(names):
        assert keys.begin("alice", name, "asked", 0.0) is Begun.NEW
        keys.end("alice", name, Answer(200, random.Random(number).randbytes(10_000).hex().encode()))
        assert keys._bytes <= 200_000
    kept = [name for name in names if isinstance(keys.begin("alice", name, "asked", 0.0), Answer)]
    assert kept == names[-len(kept) :]
    assert 5 <= len(kept) < 40
    found = keys.begin("alice", names[-1], "asked", 0.0)
    assert isinstance(found, Answer)
    assert found.body == random.Random(59).randbytes(10_000).hex().encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8181"}, 200),
        ({"Host": "[::1]:8181"}, 200),
        ({"Origin": "http://127.0.0.1:3000"}, 200),
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "example.org:8181"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
    ],
)
def test_a_page_in_a_browser_of_this_machine_is_not_this_machine(
    catalog: Catalog, headers: dict[str, str], status: int
) -> None:
    client = LocalClient(app(catalog))
    for answer in (
        client.get("/v1/namespaces", headers=headers),
        client.post("/v1/namespaces/db/tables/t/unregister", content="{}", headers=headers),
    ):
        assert answer.status_code in (status, 404 if status == 200 else status)


def test_who_may_not_load_a_table_may_not_by_another_spelling_of_its_name(hive: str, tmp_path: Path) -> None:
    name = f"n{uuid4().hex}"
    properties = {"type": "hive", "uri": hive, "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("test", **properties) as catalog:
        catalog.create_namespace(name)
        for table in ("secret", "open"):
            catalog.create_table(f"{name}.{table}", pa.schema([("id", pa.int64())]))
        may = Settings(authorizer=lambda who, operation, target: target != (name, "secret"))
        client = LocalClient(app(catalog, may))
        tables = f"/v1/namespaces/{name.upper()}/tables"
        assert client.get(f"{tables}/OPEN").status_code == 200
        for spelled in ("secret", "SECRET", "Secret"):
            failed(client.get(f"{tables}/{spelled}"), 403, "ForbiddenException")
            failed(client.delete(f"{tables}/{spelled}"), 403, "ForbiddenException")
        moved = {
            "source": {"namespace": [name], "name": "SECRET"},
            "destination": {"namespace": [name], "name": "mine"},
        }
        failed(client.post("/v1/tables/rename", json=moved), 403, "ForbiddenException")


class RecordingVendor:
    """Gives nothing, and keeps which tables it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def credentials(
        self, principal: Any, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        self.asked.append(table)
        return []


@pytest.mark.parametrize("place", ["of its name", "elsewhere in its namespace"])
def test_a_vendor_of_credentials_is_asked_by_the_name_that_the_catalog_keeps(
    hive: str, tmp_path: Path, place: str
) -> None:
    name = f"n{uuid4().hex}"
    properties = {"type": "hive", "uri": hive, "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("test", **properties) as catalog:
        catalog.create_namespace(name)
        folder = catalog.backend.table_location((name, "t"))
        location = {} if place == "of its name" else {"location": f"{folder.rpartition('/')[0]}/elsewhere"}
        catalog.create_table(f"{name}.t", pa.schema([("id", pa.int64())]), **location)
        vendor = RecordingVendor()
        client = LocalClient(app(catalog, Settings(vendor=vendor, authorizer=lambda who, operation, target: True)))
        headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        for spelled in ("t", "T"):
            assert client.get(f"/v1/namespaces/{name.upper()}/tables/{spelled}", headers=headers).status_code == 200
        assert vendor.asked == [(name, "t")] * 2
