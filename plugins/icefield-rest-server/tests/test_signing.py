"""The server signs requests to S3 for a client: those for one table's objects, and no others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import AccessDenied, InvalidArgument
from icefield_rest_server import Principal, S3Keys, S3Signer, Settings, StaticTokens, app
from icefield_rest_server.aws_signature import signed_headers
from local_client import LocalClient
from overlaps import move_past_guards
from rest_served import served
from servers.s3 import S3
from signed_store import KEY, REGION, SECRET, Store, signature

SCHEMA = pa.schema([("id", pa.int64())])
TOKENS = {"writer": "token-of-the-writer", "reader": "token-of-the-reader"}
ASKING = {"header.X-Iceberg-Access-Delegation": "remote-signing"}


def may(who: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
    assert who is not None
    if target[:1] not in ((), ("db",)):
        return False
    return who.name == "writer" or operation.startswith(("getConfig", "load", "list", "plan"))


@pytest.fixture
def store(s3: S3) -> Iterator[Store]:
    with Store(s3).open() as made:
        assert isinstance(made, Store)
        yield made


@pytest.fixture
def behind(s3: S3, tmp_path: Path) -> Iterator[Catalog]:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"s3://{s3.bucket}/{tmp_path.name}"
    roots = {"location.allowed-roots": f"{warehouse}, file:///etc"}  # a table may say that it is there
    own = {**s3.properties, "s3.path-style-access": "true", **roots}
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse, **own) as catalog:
        for namespace in ("db", "theirs"):
            catalog.create_namespace(namespace)
        yield catalog


@pytest.fixture
def settings(store: Store) -> Settings:
    signer = S3Signer(lambda: S3Keys(KEY, SECRET), REGION, store.url)
    return Settings(authenticator=StaticTokens(TOKENS), authorizer=may, signer=signer)


@pytest.fixture
def uri(behind: Catalog, settings: Settings) -> Iterator[str]:
    with served(app(behind, settings)) as address:
        yield address


def test_a_client_without_keys_works_by_requests_that_the_server_signs(uri: str, store: Store) -> None:
    with load_catalog("test", type="rest", uri=uri, token=TOKENS["writer"], **ASKING) as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": list(range(1_000))}))
        table.append(pa.table({"id": [5, 6]}))
        assert catalog.load_table("db.t").scan("id < 10").to_arrow().num_rows == 12
        found = list(table.io.list_files(table.location()))
        assert len(found) > 5
        data = [task.file.file_path for task in catalog.load_table("db.t").scan().plan_files()]
    with load_catalog("test", type="rest", uri=uri, token=TOKENS["reader"], **ASKING) as catalog:
        mine = catalog.load_table("db.t")
        assert mine.scan().to_arrow().num_rows == 1_002
        with pytest.raises(AccessDenied, match="not write"), mine.io.open_output(f"{mine.location()}/data/x") as sink:
            sink.write(b"x")
        with pytest.raises(AccessDenied, match="not write"):
            mine.io.delete_many(data)
    with load_catalog("test", type="rest", uri=uri, token=TOKENS["writer"], **ASKING) as catalog:
        table.io.delete_many(data)
    assert store.refused == []
    assert {asked.method for asked in store.taken} >= {"GET", "PUT", "POST"}


def test_a_table_elsewhere_and_a_client_that_does_not_ask_get_no_signatures(uri: str, behind: Catalog) -> None:
    behind.create_table("db.t", SCHEMA)
    behind.create_table("db.far", SCHEMA, location=behind.properties["warehouse"] + "/theirs/far")
    with load_catalog("test", type="rest", uri=uri, token=TOKENS["writer"]) as catalog:
        assert not catalog.load_table("db.t").io.access
    with load_catalog("test", type="rest", uri=uri, token=TOKENS["writer"], **ASKING) as catalog:
        assert catalog.load_table("db.t").io.access
        assert not catalog.load_table("db.far").io.access


def test_a_server_without_a_signer_does_not_offer_to_sign(behind: Catalog) -> None:
    client = LocalClient(app(behind, Settings()))
    assert not any(each.endswith("/sign") for each in client.get("/v1/config").json()["endpoints"])
    assert client.post("/v1/namespaces/db/tables/t/sign", json={}).status_code == 404


# -- requests that are not to be signed ------------------------------------------------------------------------------


class Signing:
    """Asks for signatures of requests to a bucket, for the table ``db.t``."""

    def __init__(self, behind: Catalog, settings: Settings, store: Store, s3: S3) -> None:
        self._client = LocalClient(app(behind, settings))
        self.base = f"{store.url}/{s3.bucket}"
        self.bucket = s3.bucket
        self.prefix = behind.create_table("db.t", SCHEMA).location().removeprefix(f"s3://{s3.bucket}/")
        behind.create_table("db.tt", SCHEMA)
        behind.create_table("theirs.t", SCHEMA)

    def ask(self, method: str, url: str, who: str = "writer", table: str = "t", **more: Any) -> Any:
        body = {"region": REGION, "uri": url, "method": method, "headers": {}, **more}
        headers = {"Authorization": f"Bearer {TOKENS[who]}"}
        return self._client.post(f"/v1/namespaces/db/tables/{table}/sign", json=body, headers=headers)


@pytest.fixture
def signing(behind: Catalog, settings: Settings, store: Store, s3: S3) -> Signing:
    return Signing(behind, settings, store, s3)


GOOD = (
    ("GET", "/{p}/data/a.parquet", {}),
    ("HEAD", "/{p}/data/a.parquet", {}),
    ("GET", "/{p}/data/a%20b%3Dc.parquet?partNumber=1&x-id=GetObject", {}),
    ("PUT", "/{p}/data/a.parquet?x-id=PutObject", {"x-amz-checksum-crc32": "AAAAAA==", "if-none-match": "*"}),
    ("PUT", "/{p}/data/a.parquet?partNumber=2&uploadId=abc", {}),
    ("POST", "/{p}/data/a.parquet?uploads", {}),
    ("POST", "/{p}/data/a.parquet?uploadId=abc", {}),
    ("DELETE", "/{p}/data/a.parquet", {}),
    ("DELETE", "/{p}/data/a.parquet?uploadId=abc", {}),
    ("PUT", "/{p}/data/a.parquet", {"x-amz-copy-source": "/{b}/{p}/data/b.parquet"}),
    ("GET", "?list-type=2&prefix={p}%2F&delimiter=%2F", {}),
    ("GET", "?list-type=2&prefix={p}/data/", {}),
)
BAD = (
    ("GET", "/{t}/data/a.parquet", {}),
    ("GET", "/{p}", {}),
    ("GET", "/{p}/", {}),
    ("GET", "/{p}t/data/a.parquet", {}),
    ("GET", "/{p}/../t2/a", {}),
    ("GET", "/{p}/%2E%2E/t2/a", {}),
    ("GET", "/{p}/%2e%2e%2ft2/a", {}),
    ("GET", "/{p}/a/./b", {}),
    ("GET", "/{p}/a//b", {}),
    ("GET", "/{p}/a%00b", {}),
    ("GET", "/{p}/a%5Cb", {}),
    ("GET", "/{p}/a%zz", {}),
    ("GET", "/{p}/a%", {}),
    ("GET", "/{p}/a%ff", {}),
    ("GET", "/{p}/a+b", {}),
    ("GET", "/{p}/a#b", {}),
    ("GET", "/{p}/a?acl", {}),
    ("GET", "/{p}/a?tagging", {}),
    ("GET", "/{p}/a?versionId=1", {}),
    ("GET", "/{p}/a?partNumber=1&partNumber=2", {}),
    ("GET", "/{p}/a?x-id=a#b", {}),
    ("GET", "/{p}/a?X-Amz-Signature=0", {}),
    ("GET", "", {}),
    ("GET", "?list-type=2", {}),
    ("GET", "?list-type=2&prefix=", {}),
    ("GET", "?list-type=2&prefix={t}/", {}),
    ("GET", "?list-type=2&prefix={p}", {}),
    ("GET", "?list-type=2&prefix={p}/../", {}),
    ("GET", "?list-type=2&prefix={p}/&prefix={t}/", {}),
    ("GET", "?prefix={p}/&versions", {}),
    ("GET", "?policy", {}),
    ("HEAD", "", {}),
    ("PUT", "", {}),
    ("DELETE", "", {}),
    ("PUT", "/{t}/a", {}),
    ("PUT", "/{p}/a?acl", {}),
    ("PUT", "/{p}/a?partNumber=1", {}),
    ("PUT", "/{p}/a?tagging", {}),
    ("PUT", "/{p}/a", {"x-amz-acl": "public-read"}),
    ("PUT", "/{p}/a", {"x-amz-grant-read": "uri=all"}),
    ("PUT", "/{p}/a", {"x-amz-website-redirect-location": "/x"}),
    ("PUT", "/{p}/a", {"x-amz-copy-source": "/{b}/{t}/data/a"}),
    ("PUT", "/{p}/a", {"x-amz-copy-source": "{b}/{p}/../t2/a"}),
    ("PUT", "/{p}/a", {"x-amz-copy-source": "{b}%2F{p}%2F..%2Ft2"}),
    ("PUT", "/{p}/a", {"x-amz-copy-source": "/{b}/{p}/a?versionId=1"}),
    ("PUT", "/{p}/a", {"x-amz-copy-source": "/other/{p}/a"}),
    ("PUT", "/{p}/a", {"X-Amz-Copy-Source": "/{b}/{p}/a", "x-amz-copy-source": "/{b}/{t}/a"}),
    ("PUT", "/{p}/a", {"x-amz-meta": "a"}),
    ("PUT", "/{p}/a", {"x-amz-content-sha256": "A" * 64}),
    ("PUT", "/{p}/a", {"range": "a\r\nx-amz-acl: public-read"}),
    ("PUT", "/{p}/a", {"a b": "c"}),
    ("PUT", "/{p}/a", {"ä": "c"}),
    ("POST", "/{p}/a", {}),
    ("POST", "/{p}/a?select&select-type=2", {}),
    ("POST", "/{p}/a?restore", {}),
    ("POST", "/{p}/a?uploads&uploadId=1", {}),
    ("DELETE", "/{p}/a?tagging", {}),
    ("DELETE", "/{t}/a", {}),
    ("PATCH", "/{p}/a", {}),
    ("OPTIONS", "/{p}/a", {}),
    ("get", "/{p}/a", {}),
)


def filled(signing: Signing, text: str) -> str:
    theirs = signing.prefix.replace("/db/", "/theirs/")
    return text.replace("{p}", signing.prefix).replace("{t}", theirs).replace("{b}", signing.bucket)


@pytest.mark.parametrize(("method", "rest", "headers"), GOOD)
def test_requests_of_the_table_are_signed_as_botocore_signs_them(
    signing: Signing, method: str, rest: str, headers: dict[str, str]
) -> None:
    url = signing.base + filled(signing, rest)
    sent = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", **{k: filled(signing, v) for k, v in headers.items()}}
    answer = signing.ask(method, url, headers={name: [value] for name, value in sent.items()})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found = {name: value for name, (value,) in answer.json()["headers"].items()}
    assert answer.json()["uri"] == url
    wanted = {name: value for name, value in found.items() if name != "authorization"}
    # botocore takes a query as it is written; S3 reads it and writes it again.
    given = url.replace(f"prefix={signing.prefix}/data/", f"prefix={signing.prefix}/data/".replace("/", "%2F"))
    given = given.replace(f"prefix={signing.prefix}%2F", f"prefix={signing.prefix}/".replace("/", "%2F"))
    given = given.replace("?uploads", "?uploads=")
    right = signature(method, given, wanted, found["x-amz-date"])["Authorization"]
    assert found["authorization"].rpartition("Signature=")[2] == right
    assert SECRET not in answer.text


@pytest.mark.parametrize(("method", "rest", "headers"), BAD)
def test_no_other_request_is_signed(signing: Signing, method: str, rest: str, headers: dict[str, str]) -> None:
    url = signing.base + filled(signing, rest)
    answer = signing.ask(method, url, headers={name: [filled(signing, value)] for name, value in headers.items()})
    assert answer.status_code in (400, 403), answer.text
    assert "AWS4" not in answer.text


def test_addresses_of_other_places_are_not_signed(signing: Signing) -> None:
    key = f"/{signing.bucket}/{signing.prefix}/a"
    here = signing.base.removesuffix(f"/{signing.bucket}").removeprefix("http://")
    for url in (
        f"https://{here}{key}",
        f"http://example.org{key}",
        f"http://{here}@example.org{key}",
        f"http://user@{here}{key}",
        f"http://user:word@{here}{key}",
        f"http://{here}.example.org{key}",
        f"http://example.org#{here}{key}",
        f"http://{here}:80{key}",
        f"http://{here.partition(':')[0]}{key}",
        f"http://[::1]{key}",
        f"http:/{key}",
        f"//{here}{key}",
        f"file://{key}",
        f"http://{here}\\@example.org{key}",
        f"http://{here}/other{key}",
        f"http://other.{here}{key}",
        f"http://{here}/{'a' * 9000}",
        f" http://{here}{key}",
        f"http://{here}{key}\n",
        f"http://{here}/{signing.bucket}%2F{signing.prefix}/../a",
        "",
    ):
        answer = signing.ask("GET", url)
        assert answer.status_code in (400, 403), (url, answer.text)
    # The bucket may be in the host as well, and case and the port of the scheme do not matter.
    assert signing.ask("GET", f"http://{signing.bucket}.{here}/{signing.prefix}/a").status_code == 200
    assert signing.ask("GET", f"http://{here.upper()}{key}").status_code == 200
    assert signing.ask("GET", f"http://{signing.bucket}.{here}{key}").status_code == 403


def deletion(*keys: str, more: str = "") -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}{more}</Delete>'


def test_bodies_that_delete_name_objects_of_the_table_alone(signing: Signing) -> None:
    def asked(body: str | None, **headers: list[str]) -> Any:
        return signing.ask("POST", f"{signing.base}?delete", body=body, headers=headers)

    mine, theirs = f"{signing.prefix}/a", signing.prefix.replace("/db/", "/theirs/") + "/a"
    good = deletion(mine, f"{mine}%20b &amp; c", more="<Quiet>true</Quiet>")
    for body in (good, '<?xml version="1.0" encoding="UTF-8"?>' + good):
        answer = asked(body)
        assert answer.status_code == 200, answer.text
        digest = hashlib.sha256(body.encode()).hexdigest()
        assert answer.json()["headers"]["x-amz-content-sha256"] == [digest]
        assert asked(body, **{"x-amz-content-sha256": [digest]}).status_code == 200
    for body in (
        None,
        "",
        "<Delete",
        deletion(),
        deletion(theirs),
        deletion(mine, theirs),
        deletion(f"{mine}/../../t2"),
        deletion(f"{mine}&#10;"),
        deletion(mine, more=f"<Object><Key>{mine}</Key><VersionId>1</VersionId></Object>"),
        deletion(mine, more=f"<Object><Key>{mine}</Key><Key>{theirs}</Key></Object>"),
        deletion(mine, more=f"<Object><Key>{mine}<Key>{theirs}</Key></Key></Object>"),
        deletion(mine, more=f"<Key>{theirs}</Key>"),
        deletion(*[mine] * 1001),
        f"<!DOCTYPE a [<!ENTITY x '{theirs}'>]>" + deletion("&x;"),
        deletion(f"<![CDATA[{theirs}]]>"),
        '<?xml version="1.0" encoding="UTF-16"?>' + good,
        good.replace("Delete", "Other"),
        good + good,
        "x" * 2_000_000,
    ):
        answer = asked(body)
        assert answer.status_code in (400, 403), (body or "")[:300]
    assert asked(good, **{"x-amz-content-sha256": ["0" * 64]}).status_code == 400
    for url in (f"{signing.base}?delete=1", f"{signing.base}?delete&uploads", f"{signing.base}/?delete&x-id=a&acl"):
        assert signing.ask("POST", url, body=good).status_code in (400, 403)


def test_who_may_read_gets_requests_that_read_and_who_may_nothing_none(signing: Signing) -> None:
    url = f"{signing.base}/{signing.prefix}/a"
    assert signing.ask("GET", url, "reader").status_code == 200
    assert signing.ask("HEAD", url, "reader").status_code == 200
    for method, of in (("PUT", url), ("DELETE", url), ("POST", f"{url}?uploads"), ("POST", f"{signing.base}?delete")):
        assert signing.ask(method, of, "reader", body=deletion(f"{signing.prefix}/a")).status_code == 403
    assert signing.ask("GET", url, table="tt").status_code == 403
    assert signing.ask("GET", url, table="none").status_code == 404
    assert signing.ask("GET", url, region="eu-central-1").status_code == 400
    assert signing.ask("GET", url, provider="gcs").status_code == 400
    assert signing.ask("GET", url, headers="x").status_code == 400


def test_a_table_that_says_it_is_elsewhere_has_nothing_signed(signing: Signing, behind: Catalog) -> None:
    for place in (behind.load_table("theirs.t").location(), behind.properties["warehouse"], "file:///etc"):
        location = place.removeprefix(f"s3://{signing.bucket}/")
        behind.drop_table("db.tt")
        behind.create_table("db.tt", SCHEMA)
        table = behind.load_table("db.tt")
        move_past_guards(behind, "db.tt", place)
        assert table.refresh().location() == place
        assert signing.ask("GET", f"{signing.base}/{location}/a", table="tt").status_code == 403


def test_keys_with_an_end_are_signed_with_their_token() -> None:
    keys = S3Keys("AK", "secret", "session")
    found = signed_headers("GET", "s3.amazonaws.com", "/b/k", [], {"x-amz-content-sha256": "x"}, keys, "r", 0.0)
    assert found["x-amz-security-token"] == "session"
    assert "x-amz-security-token" in found["authorization"]
    assert "secret" not in repr(keys)
    assert "session" not in repr(keys)


def test_the_hosts_of_aws_are_those_of_the_region() -> None:
    scheme, hosts = S3Signer(lambda: S3Keys("a", "b"), "eu-central-1").hosts()
    assert scheme == "https"
    assert hosts == ("s3.eu-central-1.amazonaws.com", "s3.dualstack.eu-central-1.amazonaws.com")
    for endpoint in ("s3.example.org", "http://a/b", "http://u@h", "http://h?x"):
        with pytest.raises(InvalidArgument):
            S3Signer(lambda: S3Keys("a", "b"), "r", endpoint).hosts()
