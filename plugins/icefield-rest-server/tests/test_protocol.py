"""The endpoints, asked over ASGI: what the catalog behind can do, what each answers, and the error model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield_rest_server import JwtTokens, Settings, StaticCredentials, StaticTokens, app
from local_client import LocalClient
from rest_bodies import SCHEMA, VIEW_VERSION
from rest_description import check_answer, check_request, operation_of

TABLE = "/v1/namespaces/db/tables/t"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def opened(folder: Path, kind: str = "sql") -> Catalog:
    warehouse = f"file://{folder}/warehouse"
    if kind == "directory":
        return load_catalog("served", warehouse=warehouse)
    return load_catalog("served", type=kind, uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with opened(tmp_path) as made:
        made.create_namespace("db")
        yield made


def described(answer: Any) -> None:
    """Hold a request that was carried out, and its answer, against the description of the protocol."""
    answer.read()
    request = answer.request
    if operation_of(request.method, str(request.url)) is not None:
        if answer.status_code < 400:
            check_request(request.method, str(request.url), request.content)
        check_answer(request.method, str(request.url), answer.status_code, answer.content)


@pytest.fixture
def client(catalog: Catalog) -> LocalClient:
    """What asks the server; the description judges each request and answer."""
    made = LocalClient(app(catalog))
    made.event_hooks = {"response": [described]}
    return made


def posted(client: LocalClient, path: str, body: Any, status: int = 200, **more: Any) -> Any:
    answer = client.post(path, content=json.dumps(body), **more)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def failed(answer: Any, status: int, kind: str) -> str:
    """The message of an error of the model."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == (status, kind)
    message: str = error["message"]
    return message


def test_the_config_lists_what_the_catalog_behind_can_do_and_no_more(tmp_path: Path, client: LocalClient) -> None:
    of_sql = client.get("/v1/config").json()["endpoints"]
    of_folders = LocalClient(app(opened(tmp_path, "directory"))).get("/v1/config").json()["endpoints"]
    assert set(of_folders) < set(of_sql)
    lacking = {each.split("/", 3)[3] for each in set(of_sql) - set(of_folders)}
    assert {"tables/rename", "transactions/commit", "namespaces/{namespace}/views", "views/rename"} <= lacking
    failed(LocalClient(app(opened(tmp_path, "directory"))).get("/v1/namespaces/db/views"), 404, "NotFoundException")


def test_a_table_lives_its_life(client: LocalClient, catalog: Catalog) -> None:
    made = posted(client, "/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA, "properties": {"a": "b"}})
    uuid = made["metadata"]["table-uuid"]
    catalog.load_table("db.t").append(ROWS)
    loaded = client.get(TABLE)
    assert loaded.json()["metadata"]["snapshots"][0]["summary"]["added-records"] == "2"
    etag = loaded.headers["etag"]
    assert client.get(TABLE, headers={"If-None-Match": etag}).status_code == 304
    change = {
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
        "updates": [{"action": "set-properties", "updates": {"c": "d"}}],
    }
    changed = posted(client, TABLE, change)
    assert changed["metadata"]["properties"] == {"a": "b", "c": "d"}
    assert client.get(TABLE, headers={"If-None-Match": etag}).status_code == 200
    assert catalog.load_table("db.t").metadata_location == changed["metadata-location"]
    stale = {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}], "updates": []}
    failed(client.post(TABLE, json=stale), 409, "CommitFailedException")
    assert client.head(TABLE).status_code == 204
    names = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "u"}}
    posted(client, "/v1/tables/rename", names, 204)
    assert client.get("/v1/namespaces/db/tables").json()["identifiers"] == [{"namespace": ["db"], "name": "u"}]
    gone = posted(client, "/v1/namespaces/db/tables/u/unregister", {})
    again = {"name": "t", "metadata-location": gone["metadata-location"]}
    assert posted(client, "/v1/namespaces/db/register", again)["metadata"]["table-uuid"] == uuid
    failed(client.post("/v1/namespaces/db/register", json=again), 409, "AlreadyExistsException")
    assert client.delete(TABLE, params={"purgeRequested": "true"}).status_code == 204
    failed(client.get(TABLE), 404, "NoSuchTableException")


def test_a_staged_table_is_made_by_the_commit_alone(client: LocalClient, catalog: Catalog) -> None:
    staged = posted(client, "/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA, "stage-create": True})
    assert "metadata-location" not in staged
    assert not catalog.table_exists("db.t")
    metadata = staged["metadata"]
    creation = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 1},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
            {"action": "set-properties", "updates": {"a": "b"}},
        ],
    }
    assert posted(client, TABLE, creation)["metadata"]["table-uuid"] == metadata["table-uuid"]
    failed(client.post(TABLE, json=creation), 409, "AlreadyExistsException")
    catalog.load_table("db.t").append(ROWS)
    assert catalog.load_table("db.t").scan().count() == 2


def test_only_snapshots_that_a_ref_names_are_sent_where_that_is_asked_for(
    client: LocalClient, catalog: Catalog
) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for _ in range(3):
        table.append(ROWS)
    assert len(client.get(TABLE).json()["metadata"]["snapshots"]) == 3
    (only,) = client.get(TABLE, params={"snapshots": "refs"}).json()["metadata"]["snapshots"]
    assert only["snapshot-id"] == catalog.load_table("db.t").metadata.current_snapshot_id
    failed(client.get(TABLE, params={"snapshots": "some"}), 400, "IllegalArgumentException")


@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_a_table_is_registered_over_nothing_and_never_over_another(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path, kind) as catalog:
        catalog.create_namespace("db")
        source = catalog.create_table("db.s", pa.schema([("id", pa.int64())]))
        client = LocalClient(app(catalog))
        given = {"name": "t", "metadata-location": source.metadata_location, "overwrite": True}
        made = posted(client, "/v1/namespaces/db/register", given)
        assert made["metadata"]["table-uuid"] == source.metadata.table_uuid
        before = catalog.load_table("db.t").metadata_location
        answer = client.post("/v1/namespaces/db/register", json=given)
        assert "drop db.t first" in failed(answer, 406, "UnsupportedOperationException")
        assert catalog.load_table("db.t").metadata_location == before


@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_a_table_that_is_made_anew_in_the_place_of_another_is_not_taken_for_it(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path, kind) as catalog:
        catalog.create_namespace("db")
        client = LocalClient(app(catalog))
        made = client.post("/v1/namespaces/db/tables", json={"name": "t", "schema": SCHEMA})
        held = {"If-None-Match": made.headers["etag"]}
        assert client.get(TABLE, headers=held).status_code == 304
        assert client.delete(TABLE, params={"purgeRequested": "true"}).status_code == 204
        other = {**SCHEMA, "fields": [{**SCHEMA["fields"][0], "name": "other"}]}  # type: ignore[index]
        posted(client, "/v1/namespaces/db/tables", {"name": "t", "schema": other})
        found = client.get(TABLE, headers=held)
        assert found.status_code == 200
        assert found.json()["metadata"]["schemas"][0]["fields"][0]["name"] == "other"


@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_a_version_has_one_etag_for_each_mode_whoever_asks(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path, kind) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(ROWS)
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"c": "d"}}]}
        first, second = LocalClient(app(catalog)), LocalClient(app(catalog))
        etag = first.post(TABLE, json=change).headers["etag"]
        assert [each.get(TABLE).headers["etag"] for each in (first, second, second)] == [etag] * 3
        of_refs = {each.get(TABLE, params={"snapshots": "refs"}).headers["etag"] for each in (first, second)}
        assert len(of_refs) == 1
        assert etag not in of_refs
        for held in (f"W/{etag}", f'"x", W/{etag}', "*", " * "):
            assert first.get(TABLE, headers={"If-None-Match": held}).status_code == 304, held
        for other in ("W/", '"*"', '"x"', f"x{etag}"):
            assert first.get(TABLE, headers={"If-None-Match": other}).status_code == 200, other


def test_several_tables_change_in_one_step_or_not_at_all(client: LocalClient, catalog: Catalog, tmp_path: Path) -> None:
    for name in ("a", "b"):
        posted(client, "/v1/namespaces/db/tables", {"name": name, "schema": SCHEMA})

    def changes(value: str, *requirements: Any) -> dict[str, Any]:
        steps = [{"action": "set-properties", "updates": {"by": value}}]
        named = [{"namespace": ["db"], "name": name} for name in ("a", "b")]
        return {
            "table-changes": [
                {"identifier": named[0], "updates": steps, "requirements": []},
                {"identifier": named[1], "updates": steps, "requirements": list(requirements)},
            ]
        }

    posted(client, "/v1/transactions/commit", changes("1"), 204)
    other = {"type": "assert-table-uuid", "uuid": str(uuid4())}
    failed(client.post("/v1/transactions/commit", json=changes("2", other)), 409, "CommitFailedException")
    assert [catalog.load_table(f"db.{name}").properties["by"] for name in ("a", "b")] == ["1", "1"]


def test_a_view_lives_its_life(client: LocalClient, catalog: Catalog) -> None:
    given = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    made = posted(client, "/v1/namespaces/db/views", given)
    failed(client.post("/v1/namespaces/db/views", json=given), 409, "AlreadyExistsException")
    update = {"action": "set-properties", "updates": {"a": "b"}}
    change = {
        "requirements": [{"type": "assert-view-uuid", "uuid": made["metadata"]["view-uuid"]}],
        "updates": [update],
    }
    assert posted(client, "/v1/namespaces/db/views/v", change)["metadata"]["properties"] == {"a": "b"}
    assert catalog.load_view("db.v").sql == {"spark": "SELECT 1"}
    names = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}}
    posted(client, "/v1/views/rename", names, 204)
    assert client.get("/v1/namespaces/db/views").json()["identifiers"] == [{"namespace": ["db"], "name": "w"}]
    assert client.head("/v1/namespaces/db/views/w").status_code == 204
    assert client.delete("/v1/namespaces/db/views/w").status_code == 204
    failed(client.get("/v1/namespaces/db/views/w"), 404, "NoSuchViewException")


def test_listings_have_pages_where_they_are_asked_for(client: LocalClient, catalog: Catalog) -> None:
    for number in range(5):
        catalog.create_namespace(f"n{number}")
    assert len(client.get("/v1/namespaces").json()["namespaces"]) == 6
    found, token = [], ""
    while token is not None:
        page = client.get("/v1/namespaces", params={"pageSize": "2", "pageToken": token}).json()
        assert len(page["namespaces"]) <= 2
        found += page["namespaces"]
        token = page["next-page-token"]
    assert found == [["db"], *([f"n{number}"] for number in range(5))]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/namespaces", b"no json"),
        ("POST", "/v1/namespaces", b"[" * 1_000_000),
        ("POST", "/v1/namespaces", b'{"a":' * 101 + b"1" + b"}" * 101),
        ("POST", "/v1/namespaces", b'{"namespace": []}'),
        ("POST", "/v1/namespaces", b'{"namespace": ["a", 1]}'),
        ("POST", "/v1/namespaces", b'{"namespace": [".."]}'),
        ("POST", "/v1/namespaces", b'{"namespace": ["x"], "properties": {"a": 1}}'),
        ("GET", "/v1/namespaces/..%2F..%2Fetc/tables/%00", None),
        ("GET", "/v1/namespaces/%ff/tables", None),
        ("GET", "/v1/namespaces/db/tables?pageSize=-1", None),
        ("GET", "/v1/namespaces/db/tables?pageSize=99999999999999999999", None),
        ("GET", "/v1/namespaces/..", None),
        ("POST", TABLE, b"{}"),
        ("POST", TABLE, b'{"updates": [{"action": "no-such"}]}'),
        ("POST", TABLE, b'{"updates": [{"action": "add-snapshot", "snapshot": {}}], "requirements": 1}'),
        ("POST", "/v1/namespaces/db/tables", b'{"name": "x"}'),
        ("POST", "/v1/namespaces/db/tables", b'{"name": "x", "schema": {"type": "struct", "fields": 1}}'),
        ("POST", "/v1/namespaces/db/register", b'{"name": "x", "metadata-location": "relative"}'),
        ("POST", "/v1/transactions/commit", b'{"table-changes": [1]}'),
        ("PUT", "/v1/namespaces", b"{}"),
        ("GET", "/v1/" + "a" * 20_000, None),
        ("GET", "/nowhere", None),
    ],
)
def test_a_request_that_cannot_be_is_answered_by_the_error_model(
    client: LocalClient, catalog: Catalog, method: str, path: str, body: bytes | None
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    before = catalog.load_table("db.t").metadata_location
    answer = client.request(method, path, content=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]["code"] == answer.status_code
    assert catalog.load_table("db.t").metadata_location == before
    assert catalog.list_namespaces() == [("db",)]


@pytest.mark.parametrize("name", ["b/secret", "b\\secret", "/b", "b/", ".", "..", "b\0", " "])
def test_a_name_that_is_no_name_of_a_folder_is_refused_with_the_reason(
    client: LocalClient, catalog: Catalog, name: str
) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    other = {"namespace": ["db"], "name": name}
    change = {"requirements": [], "updates": [], "identifier": other}
    escaped = "".join(f"%{byte:02x}" for byte in name.encode())
    answers = [
        client.post("/v1/namespaces/db/tables", json={"name": name}),
        client.post("/v1/namespaces/db/views", json={"name": name, "view-version": VIEW_VERSION}),
        client.post("/v1/namespaces/db/register", json={"name": name, "metadata-location": "memory://x/y"}),
        client.post("/v1/namespaces", json={"namespace": [name]}),
        client.post("/v1/namespaces", json={"namespace": ["a", name]}),
        client.post("/v1/tables/rename", json={"source": {"namespace": ["db"], "name": "t"}, "destination": other}),
        client.post("/v1/transactions/commit", json={"table-changes": [change]}),
        client.get(f"/v1/namespaces/db/tables/{escaped}"),
        client.get(f"/v1/namespaces/{escaped}/tables"),
        client.get(f"/v1/namespaces?parent={escaped}"),
    ]
    for answer in answers:
        message = failed(answer, 400, "IllegalArgumentException")
        assert "level" in message
        assert ("slash" in message) == ("/" in name or "\\" in name)


def test_a_body_beyond_the_limit_is_refused_unread(catalog: Catalog) -> None:
    client = LocalClient(app(catalog, Settings(max_body=1000)))
    assert client.post("/v1/namespaces", content=b" " * 1001).status_code == 413

    def parts() -> Iterator[bytes]:
        yield from [b" " * 600] * 2

    assert client.post("/v1/namespaces", content=parts()).status_code == 413


def test_nobody_from_elsewhere_is_let_in_without_authentication(catalog: Catalog) -> None:
    client = LocalClient(app(catalog), client=("192.0.2.1", 1))
    failed(client.get("/v1/namespaces"), 403, "ForbiddenException")
    assert client.get("/health/live").status_code == 200


def test_only_a_known_token_is_let_in_and_may_do_what_is_allowed(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# who\nalice 0123456789abcdef0123\nbob zyxwvutsrqponmlkjihg\n")

    def may(principal: Any, operation: str, target: tuple[str, ...]) -> bool:
        return principal.name == "alice" or (operation.startswith(("load", "list")) and target[:1] != ("secret",))

    settings = Settings(authenticator=StaticTokens.from_file(file), authorizer=may)
    client = LocalClient(app(catalog, settings), client=("192.0.2.1", 1))

    def asked(token: str | None, method: str = "GET", path: str = "/v1/namespaces", **more: Any) -> Any:
        return client.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {}, **more)

    for wrong in (None, "x", "0123456789abcdef012", "Basic"):
        failed(asked(wrong), 401, "NotAuthorizedException")
        failed(asked(wrong, path="/v1/config"), 401, "NotAuthorizedException")
        assert asked(wrong, path="/metrics").status_code == 401
    assert asked("zyxwvutsrqponmlkjihg").status_code == 200
    body = {"namespace": ["n"]}
    failed(asked("zyxwvutsrqponmlkjihg", "POST", json=body), 403, "ForbiddenException")
    failed(asked("zyxwvutsrqponmlkjihg", path="/v1/namespaces/secret/tables"), 403, "ForbiddenException")
    assert asked("0123456789abcdef0123", "POST", json=body).status_code == 200


def test_a_signed_token_is_let_in_until_it_expires_and_for_this_audience_alone(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    import jwt
    from cryptography.hazmat.primitives.asymmetric import rsa
    from jwt.algorithms import RSAAlgorithm

    key, other = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    jwks = {"keys": [{**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": "1", "use": "sig"}]}
    tokens = JwtTokens("http://127.0.0.1:9/jwks", issuer="me", audience="ice")
    monkeypatch.setattr(tokens._keys, "fetch_data", lambda: jwks)

    def token(signer: Any = key, **changes: Any) -> str:
        claims = {"sub": "alice", "iss": "me", "aud": "ice", "exp": time.time() + 60, **changes}
        return jwt.encode(claims, signer, "RS256", headers={"kid": "1"})

    found = tokens.principal(token())
    assert found is not None
    assert found.name == "alice"
    for wrong in (token(other), token(exp=time.time() - 60), token(aud="x"), token(iss="x"), token(sub=None), "a.b.c"):
        assert tokens.principal(wrong) is None
    unsigned = jwt.encode({"sub": "alice", "iss": "me", "aud": "ice", "exp": time.time() + 60}, "", "none")
    assert tokens.principal(unsigned) is None


def test_credentials_are_given_by_prefix_to_those_who_ask_for_them_and_shown_to_nobody(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    location = catalog.create_table("db.t", pa.schema([("id", pa.int64())])).metadata.location
    vendor = StaticCredentials({location: {"s3.secret-access-key": "hush-hush"}, "s3://other": {"k": "v"}})
    settings = Settings(vendor=vendor)
    client = LocalClient(app(catalog, settings))
    assert "hush" not in client.get(TABLE).text
    given = client.get(TABLE, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json()
    assert given["config"]["s3.secret-access-key"] == "hush-hush"
    wanted = [{"prefix": location, "config": {"s3.secret-access-key": "hush-hush"}}]
    assert given["storage-credentials"] == wanted
    assert client.get(TABLE + "/credentials").json()["storage-credentials"] == wanted
    assert "hush" not in repr((settings, vendor)) + caplog.text + client.get("/metrics").text


def test_a_request_with_the_same_idempotency_key_is_done_once(client: LocalClient, catalog: Catalog) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    first = posted(client, "/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA}, headers=key)
    again = posted(client, "/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA}, headers=key)
    assert first == again
    failed(
        client.post("/v1/namespaces/db/tables", json={"name": "u", "schema": SCHEMA}, headers=key),
        400,
        "BadRequestException",
    )


@pytest.mark.parametrize("form", ["x", "", "{%s}", "urn:uuid:%s", "%s ,%s", "%s-", "undashed"])
def test_an_idempotency_key_is_a_uuid_in_its_one_form(client: LocalClient, catalog: Catalog, form: str) -> None:
    key = str(uuid4())
    given = key.replace("-", "") if form == "undashed" else form.replace("%s", key)
    bad = client.post("/v1/namespaces", json={"namespace": ["x"]}, headers={"Idempotency-Key": given})
    failed(bad, 400, "IllegalArgumentException")
    assert catalog.list_namespaces() == [("db",)]
    posted(client, "/v1/namespaces", {"namespace": ["x"]}, headers={"Idempotency-Key": key.upper()})


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/v1/config", "/health/live", "/health/ready", "/metrics", "/v1/namespaces"])
def test_a_path_that_is_there_says_which_methods_it_has(client: LocalClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    allowed = {"/v1/config": "GET", "/v1/namespaces": "GET, POST"}.get(path, "GET, HEAD")
    if method in allowed.split(", "):
        assert answer.status_code != 405
        return
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert client.get(path).status_code == 200


def test_it_says_how_it_is_and_what_it_did(client: LocalClient) -> None:
    client.get("/v1/namespaces")
    assert client.get("/health/ready").status_code == 200
    said = client.get("/metrics").text
    assert 'icefield_rest_requests_total{operation="listNamespaces",status="200"} 1' in said
    assert 'icefield_rest_request_seconds_count{operation="listNamespaces"} 1' in said
