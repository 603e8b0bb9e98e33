"""Catalog types under the names of services: the requests that they send, and the properties that they ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Plugins, load_catalog
from icefield.errors import InvalidArgument
from icefield_rest.presets import PRESETS, with_preset

from .test_rest_sigv4 import ARN, KEYS, REGION, Gateway

SECRET = "tell-nobody"
CLIENT = {"credential": f"client:{SECRET}"}
OAUTH = {
    "polaris": ({"warehouse": "sales"}, "/api/catalog", "/api/catalog/v1/oauth/tokens", "PRINCIPAL_ROLE:ALL"),
    "snowflake": (
        {"warehouse": "SALES", "scope": "session:role:ANALYST"},
        "/polaris/api/catalog",
        "/polaris/api/catalog/v1/oauth/tokens",
        "session:role:ANALYST",
    ),
    "unity": ({"warehouse": "main"}, "/api/2.1/unity-catalog/iceberg-rest", "/oidc/v1/token", "all-apis"),
}


class Service:
    """A catalog without namespaces, which gives tokens and takes no request without one."""

    def __call__(self, asked: Asked, forward: Forward) -> Answered | None:
        if asked.method == "POST":
            return said(200, {"access_token": "token-1", "token_type": "bearer", "expires_in": 3_600})
        if asked.headers.get("authorization") != "Bearer token-1":
            return said(401, {"error": {"message": "who?", "type": "NotAuthorizedException", "code": 401}})
        return said(200, {"defaults": {}, "overrides": {}} if "/config" in asked.path else {"namespaces": []})


def said(status: int, body: object) -> Answered:
    return Answered(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


@pytest.fixture
def between() -> Iterator[Between]:
    with Between("http://127.0.0.1:9").open() as between:
        between.behave = Service()
        yield between


def test_every_preset_is_a_catalog_type() -> None:
    assert set(PRESETS) <= set(Plugins.installed().names("catalogs"))


@pytest.mark.parametrize("kind", OAUTH)
def test_a_host_is_enough_of_an_address_and_the_token_is_fetched_where_the_service_gives_it(
    between: Between, kind: str
) -> None:
    given, base, tokens, scope = OAUTH[kind]
    with load_catalog("test", type=kind, uri=between.url, **given, **CLIENT) as catalog:
        assert catalog.list_namespaces() == []
        assert SECRET not in repr(catalog) + repr(catalog.backend)
    token, config, listing = between.asked
    assert (token.method, urlsplit(token.path).path) == ("POST", tokens)
    assert parse_qs(token.body.decode())["scope"] == [scope]
    assert config.path == f"{base}/v1/config?warehouse={given['warehouse']}"
    assert urlsplit(listing.path).path == f"{base}/v1/namespaces"


@pytest.mark.parametrize("kind", ["nessie", "lakekeeper", "polaris", "unity", "snowflake"])
def test_a_token_of_the_user_is_sent_to_the_path_of_the_service(between: Between, kind: str) -> None:
    warehouse = {} if kind == "nessie" else {"warehouse": "w"}
    with load_catalog("test", type=kind, uri=f"{between.url}/", token="token-1", **warehouse) as catalog:
        assert catalog.list_namespaces() == []
    assert [asked.method for asked in between.asked] == ["GET", "GET"]
    assert between.asked[0].path.startswith(f"{PRESETS[kind].uri}/v1/config")


def test_an_address_with_a_path_and_other_properties_of_the_user_go_before(between: Between) -> None:
    given = {"uri": f"{between.url}/behind/proxy", "scope": "PRINCIPAL_ROLE:one", "warehouse": "w", **CLIENT}
    with load_catalog("test", type="polaris", **given) as catalog:
        catalog.list_namespaces()
    assert parse_qs(between.asked[0].body.decode())["scope"] == ["PRINCIPAL_ROLE:one"]
    assert between.asked[1].path.startswith("/behind/proxy/v1/config")


def test_lakekeeper_fetches_the_token_of_the_identity_provider(between: Between) -> None:
    provider = f"{between.url}/realms/lake/token"
    given = {"warehouse": "w", "oauth2-server-uri": provider, **CLIENT}
    with load_catalog("test", type="lakekeeper", uri=between.url, **given) as catalog:
        catalog.list_namespaces()
    assert between.asked[0].path == "/realms/lake/token"


@pytest.mark.parametrize(("kind", "service"), [("glue-rest", "glue"), ("s3tables", "s3tables")])
def test_requests_to_amazon_are_signed_for_the_service_and_the_region(our_rest: str, kind: str, service: str) -> None:
    gateway = Gateway(our_rest, service)
    of_region = {"client.region": REGION} if kind == "glue-rest" else {}  # the name of a bucket has it
    warehouse = "123456789012" if kind == "glue-rest" else ARN
    with gateway.open():
        uri = f"{gateway.url}/iceberg"
        given = {"warehouse": warehouse, "prefix": gateway.prefix, **of_region, **KEYS}
        with load_catalog("test", type=kind, uri=uri, **given) as catalog:
            catalog.create_namespace("db")
            assert catalog.list_namespaces() == [("db",)]
        assert gateway.refused == []
        assert all(f"/{REGION}/{service}/aws4_request" in asked.headers["authorization"] for asked in gateway.asked)


FULL = {
    "glue-rest": (
        {"warehouse": "123456789012", "client.region": "us-east-1"},
        "https://glue.us-east-1.amazonaws.com/iceberg",
        {"rest.auth.type": "sigv4", "rest.signing-name": "glue", "rest.signing-region": "us-east-1"},
    ),
    "s3tables": (
        {"warehouse": ARN},
        "https://s3tables.eu-central-1.amazonaws.com/iceberg",
        {"rest.signing-name": "s3tables", "rest.signing-region": "eu-central-1", "client.region": "eu-central-1"},
    ),
    "biglake": (
        {"warehouse": "gs://sales", "header.x-goog-user-project": "p"},
        "https://biglake.googleapis.com/iceberg/v1/restcatalog",
        {"rest.auth.type": "google"},
    ),
    "onelake": (
        {"warehouse": "w/i"},
        "https://onelake.table.fabric.microsoft.com/iceberg",
        {"rest.auth.type": "entra"},
    ),
}


@pytest.mark.parametrize("kind", FULL)
def test_a_service_with_one_address_needs_no_uri(kind: str) -> None:
    given, uri, more = FULL[kind]
    found = with_preset("test", {"type": kind, **given})
    assert found["uri"] == uri
    assert {key: found[key] for key in more} == more
    assert {key: found[key] for key in given} == given


MISSING = {
    "glue-rest without a region": ({"type": "glue-rest", "warehouse": "1"}, "'client.region'"),
    "glue-rest without an account": ({"type": "glue-rest", "client.region": "us-east-1"}, "'warehouse'"),
    "s3tables without a bucket": ({"type": "s3tables", "client.region": "us-east-1"}, "'warehouse'"),
    "polaris without an address": ({"type": "polaris", "warehouse": "w", "token": "t"}, "'uri'"),
    "polaris without credentials": (
        {"type": "polaris", "warehouse": "w", "uri": "https://h"},
        "'credential' or 'token'",
    ),
    "snowflake without a role": (
        {"type": "snowflake", "warehouse": "w", "uri": "https://h", "credential": "t"},
        "'scope'",
    ),
    "lakekeeper without a provider": (
        {"type": "lakekeeper", "warehouse": "w", "uri": "https://h", "credential": "c:s"},
        "'oauth2-server-uri'",
    ),
    "biglake without a project": ({"type": "biglake", "warehouse": "gs://b"}, "'header.x-goog-user-project' or"),
    "onelake without an item": ({"type": "onelake"}, "'warehouse'"),
    "an odd region": ({"type": "glue-rest", "warehouse": "1", "client.region": "evil.com/"}, "no region of AWS"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_property_is_asked_for_by_name(case: str) -> None:
    given, named = MISSING[case]
    with pytest.raises(InvalidArgument, match=named):
        load_catalog("test", **given)
