"""Signatures of AWS, recomputed by botocore from what came over the wire, as Glue and S3 Tables do it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote

import botocore.auth
import pyarrow as pa
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import AccessDenied
from servers.s3 import S3

REGION, ACCOUNT = "eu-central-1", "123456789012"
SECRET, SESSION = "tell-nobody", "of/the+session=="
KEYS = {"rest.access-key-id": "AKID", "rest.secret-access-key": SECRET, "rest.session-token": SESSION}
ARN = f"arn:aws:s3tables:{REGION}:{ACCOUNT}:bucket/lake"
# The warehouse that the user names, and the prefix that the service makes of it.
SERVICES = {"glue": (ACCOUNT, f"catalogs/{ACCOUNT}"), "s3tables": (ARN, quote(ARN, safe=""))}
ODD = "b ü+&=%41~*'()!:@,;$?#"
SCHEMA = pa.schema([("id", pa.int64())])
TOLERATED = timedelta(minutes=5)
STATED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


class Gateway(Between):
    """Stands where Amazon's services stand: hands on what is signed, by the address below ``/iceberg``."""

    def __init__(self, behind: str, service: str) -> None:
        super().__init__(behind)
        self.service, (_, self.prefix) = service, SERVICES[service]
        self.keys = {"AKID": Credentials("AKID", SECRET, SESSION)}
        self.ahead = timedelta()
        self.refused: list[str] = []
        self.on_the_way: Callable[[Asked], Asked] = lambda asked: asked
        self.behave = self._judge

    def _judge(self, asked: Asked, forward: Forward) -> Answered | None:
        came = self.on_the_way(asked)
        why = self.refusal(came)
        if why is not None:
            self.refused.append(f"{asked.method} {asked.path}: {why}")
            return Answered(403, {"Content-Type": "application/json"}, json.dumps({"message": why}).encode())
        inner = came.path.removeprefix("/iceberg").replace(f"/v1/{self.prefix}", "/v1", 1)
        headers = {name: value for name, value in came.headers.items() if name != "authorization"}
        answered = forward(replace(came, path=inner, headers=headers))
        if inner.startswith("/v1/config"):
            config = json.loads(answered.body)
            config["overrides"]["prefix"] = self.prefix
            return replace(answered, body=json.dumps(config).encode())
        return answered

    def refusal(self, asked: Asked) -> str | None:
        """Why a request is not let in: the rules of Signature Version 4, from what was received alone."""
        stated = STATED.fullmatch(asked.headers.get("authorization", ""))
        if stated is None:
            return "Missing Authentication Token"
        key, day, region, service, named, signature = stated.groups()
        if (region, service) != (REGION, self.service):
            return f"Credential should be scoped to {REGION} and {self.service}"
        if key not in self.keys:
            return "The security token included in the request is invalid."
        signed, date = named.split(";"), asked.headers["x-amz-date"]
        must = {"host"} | {name for name in asked.headers if name.startswith("x-amz-") or name == "content-type"}
        if not must <= set(signed):
            return f"'{sorted(must - set(signed))[0]}' must be a 'SignedHeader' in the AWS Authorization."
        now = datetime.now(UTC) + self.ahead
        made_at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if not date.startswith(day) or abs(now - made_at) > TOLERATED:
            return f"Signature expired: {date} is now earlier than {now - TOLERATED:%Y%m%dT%H%M%SZ}"
        if asked.headers.get("x-amz-security-token") != self.keys[key].token:
            return "The security token included in the request is invalid."
        path, _, query = asked.path.partition("?")
        # From the decoded query, which botocore encodes again: how the client spelt it does not count.
        request = AWSRequest(
            asked.method,
            f"http://{asked.headers['host']}{path}",
            headers={name: asked.headers[name] for name in signed if name != "host"},
            data=asked.body,
            params=dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))),
        )
        request.context["timestamp"] = date
        signer = SigV4Auth(self.keys[key], service, region)
        if signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request) != signature:
            return "The request signature we calculated does not match the signature you provided."
        return None


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def gateway(our_rest: str, service: str) -> Iterator[Gateway]:
    made = Gateway(our_rest, service)
    with made.open():
        yield made


def opened(gateway: Gateway, given: Mapping[str, str] = KEYS, **more: str) -> Catalog:
    own = {"rest.sigv4-enabled": "true", "rest.signing-region": REGION, "rest.signing-name": gateway.service}
    waits = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "10", "rest.retry.num-retries": "2"}
    warehouse, prefix = SERVICES[gateway.service]
    address = {"uri": f"{gateway.url}/iceberg", "warehouse": warehouse, "prefix": prefix}
    return load_catalog("test", type="rest", **address, **own, **waits, **given, **more)


def test_every_request_of_the_protocol_has_the_signature_that_the_service_computes(gateway: Gateway) -> None:
    with opened(gateway, **{"rest-page-size": "1"}) as catalog:
        for name in (("a",), ("a", ODD), ("a", "ü")):
            catalog.create_namespace(name, {"k": ODD})
        assert sorted(catalog.list_namespaces(("a",))) == sorted([("a", ODD), ("a", "ü")])
        catalog.update_namespace_properties(("a", ODD), ["none"], {"k": "é"})
        table = catalog.create_table(("a", "ü", ODD), SCHEMA)
        table.append(pa.table({"id": [1, 2]}, SCHEMA))
        catalog.create_view(("a", "ü", "v 1"), SCHEMA, {"spark": f"SELECT '{ODD}'"})
        assert catalog.view_exists(("a", "ü", "v 1"))
        catalog.rename_table(("a", "ü", ODD), ("a", "ü", "d e"))
        catalog.create_table(("a", "ü", "other"), SCHEMA)
        with catalog.transaction() as tx:
            for name in ("d e", "other"):
                tx.table(("a", "ü", name)).append(pa.table({"id": [3]}, SCHEMA))
        assert len(catalog.list_tables(("a", "ü"))) == 2
        assert catalog.table_exists(("a", "ü", "d e"))
        assert sorted(catalog.load_table(("a", "ü", "d e")).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        catalog.drop_view(("a", "ü", "v 1"))
        catalog.drop_table(("a", "ü", "other"))
        catalog.drop_namespace(("a", ODD))
    assert gateway.refused == []
    methods = {asked.method for asked in gateway.asked}
    assert {"GET", "HEAD", "POST", "DELETE"} <= methods
    queries = "&".join(asked.path.partition("?")[2] for asked in gateway.asked)
    assert {"warehouse", "parent", "pageToken"} <= {name for name, _ in parse_qsl(queries, keep_blank_values=True)}
    assert all(SECRET not in str(asked) for asked in gateway.asked)


def with_header(name: str, value: str) -> Callable[[Asked], Asked]:
    return lambda asked: replace(asked, headers={**asked.headers, name: value})


CHANGES: dict[str, Callable[[Asked], Asked]] = {
    "path": lambda asked: replace(asked, path=asked.path.replace("namespaces", "namespaces/")),
    "query": lambda asked: replace(asked, path=asked.path + ("&" if "?" in asked.path else "?") + "x=1"),
    "body": lambda asked: replace(asked, body=asked.body.replace(b"db", b"bd")),
    "method": lambda asked: replace(asked, method="PUT"),
    "type": with_header("content-type", "text/plain"),
    "host": with_header("host", "elsewhere"),
    "date": with_header("x-amz-date", f"{datetime.now(UTC):%Y%m%d}T000000Z"),
    "session": with_header("x-amz-security-token", "another"),
    "signature": with_header("authorization", "Bearer x"),
}


@pytest.mark.parametrize("service", ["glue"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_on_the_way_is_refused(gateway: Gateway, change: str) -> None:
    with opened(gateway) as catalog:
        gateway.on_the_way = CHANGES[change]
        with pytest.raises(AccessDenied) as caught:
            catalog.create_namespace("db", {"owner": "db"})
    assert len(gateway.refused) == 1, "a refusal is not asked for again"
    assert str(caught.value).endswith("; the credentials of the catalog are wrong, or give no right to this")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("service", ["glue"])
@pytest.mark.parametrize(
    "given",
    [
        {"rest.access-key-id": "AKID", "rest.secret-access-key": "another", "rest.session-token": SESSION},
        {"rest.access-key-id": "AKID", "rest.secret-access-key": SECRET},
        {"rest.access-key-id": "ANOTHER", "rest.secret-access-key": SECRET, "rest.session-token": SESSION},
        {**KEYS, "rest.signing-region": "us-east-1"},
        {**KEYS, "rest.signing-name": "s3tables"},
    ],
)
def test_credentials_that_are_not_right_are_an_error_that_says_what_the_service_said(
    gateway: Gateway, given: dict[str, str]
) -> None:
    own = {"rest.sigv4-enabled": "true", "rest.signing-region": REGION, "rest.signing-name": "glue", **given}
    with pytest.raises(AccessDenied) as caught:
        load_catalog("test", type="rest", uri=f"{gateway.url}/iceberg", **own)
    (said,) = gateway.refused
    assert said.partition(": ")[2] in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("service", ["glue"])
@pytest.mark.parametrize("minutes", [-16, 16])
def test_a_clock_that_is_wrong_is_an_error_that_says_so(gateway: Gateway, minutes: int) -> None:
    with opened(gateway) as catalog:
        gateway.ahead = timedelta(minutes=minutes)
        with pytest.raises(AccessDenied, match=r"Signature expired: .* is now earlier than"):
            catalog.list_namespaces()


@pytest.mark.parametrize("service", ["glue"])
def test_the_sdks_debug_log_shows_no_token_that_signs(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with opened(gateway) as catalog:
        assert catalog.list_namespaces() == []
    assert SESSION not in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("service", ["glue"])
def test_a_request_that_is_made_again_is_signed_again(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(gateway) as catalog:
        own, late = gateway.behave, timedelta(minutes=20)

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            if gateway.ahead:
                return own(asked, forward)
            gateway.ahead = late  # so long the service was not there
            monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: datetime.now(UTC) + late)
            return Answered(503)

        gateway.behave = behave
        assert catalog.list_namespaces() == []
    assert gateway.refused == []


@pytest.mark.parametrize("service", ["glue"])
def test_keys_of_a_role_are_fetched_again_before_they_end(
    gateway: Gateway, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.keys.clear()
    with Between(s3.url).open() as sts:

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            answered = forward(asked)
            text = answered.body.decode()
            found = [re.findall(f"<{name}>(.*?)</{name}>", text)[0] for name in ("AccessKeyId", "SecretAccessKey")]
            gateway.keys.clear()  # those before have ended
            gateway.keys[found[0]] = Credentials(*found, re.findall("<SessionToken>(.*?)</SessionToken>", text)[0])
            soon = f"{datetime.now(UTC) + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
            text = re.sub("<Expiration>.*?</Expiration>", f"<Expiration>{soon}</Expiration>", text)
            return replace(answered, body=text.encode())

        sts.behave = behave
        (tmp_path / "config").write_text(
            "[profile lake]\nrole_arn = arn:aws:iam::123456789012:role/lake\nsource_profile = own\n"
            f"[profile own]\naws_access_key_id = AKOWN\naws_secret_access_key = {SECRET}\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        # A report of metrics would be signed in another thread, while the keys of this one end.
        given = {"rest.profile-name": "lake", "rest-metrics-reporting-enabled": "false"}
        with opened(gateway, given) as catalog:
            catalog.create_namespace("db")
            catalog.create_table("db.t", SCHEMA).append(pa.table({"id": [1]}, SCHEMA))
            assert catalog.load_table("db.t").scan().count() == 1
    assert gateway.refused == []
    assert len({STATED.fullmatch(asked.headers["authorization"])[1] for asked in gateway.asked}) > 2  # type: ignore[index]
