"""A server is given an authenticator, an authorizer and a vendor by their names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from icefield import load_catalog
from icefield.errors import InvalidArgument, MissingPlugin
from icefield_rest_server import Options, Settings, app, check, serving
from icefield_rest_server.credentials import StaticCredentials, StsCredentials
from icefield_rest_server.providers import only_reading
from icefield_rest_server.tokens import JwtTokens, StaticTokens
from local_client import LocalClient

READING = {"rest-server.authorizer": "read-only"}
TOKEN = "0123456789abcdef"


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    return str(tmp_path / "tokens")


@pytest.fixture
def vended(tmp_path: Path) -> str:
    (tmp_path / "vended").write_text(json.dumps({"s3://lake/": {"s3.access-key-id": "key"}}))
    return str(tmp_path / "vended")


def statuses(application: Any, **headers: str) -> list[int]:
    client = LocalClient(application)
    created = client.post("/v1/namespaces", json={"namespace": ["a"]}, headers=headers)
    return [created.status_code, client.get("/v1/namespaces", headers=headers).status_code]


@pytest.mark.parametrize("given", [(Options(authorizer="read-only"), {}), (Options(), READING)], ids=["option", "file"])
def test_the_read_only_authorizer_allows_what_changes_nothing(
    given: tuple[Options, dict[str, str]], tmp_path: Path
) -> None:
    options, properties = given
    settings = check(options, **properties)
    with load_catalog("served", type="sql", uri="sqlite://", warehouse=f"file://{tmp_path}") as catalog:
        assert statuses(app(catalog, settings)) == [403, 200]
        assert statuses(app(catalog, Settings())) == [200, 200]


def test_the_operations_that_read_are_told_from_the_others() -> None:
    allows = check(Options(authorizer="read-only")).authorizer
    assert allows is not None
    reading = [
        "getConfig",
        "loadTable",
        "tableExists",
        "listViews",
        "planTableScan",
        "reportMetrics",
        "loadCredentials",
    ]
    writing = ["updateTable", "createTable", "dropTable", "renameTable", "registerTable", "commitTransaction", "new"]
    assert [allows(None, each, ("db", "t")) for each in reading] == [True] * len(reading)
    assert [allows(None, each, ("db", "t")) for each in writing] == [False] * len(writing)


def test_a_read_only_server_refuses_changes_that_its_authorizer_allows(tmp_path: Path) -> None:
    with load_catalog("served", type="sql", uri="sqlite://", warehouse=f"file://{tmp_path}") as catalog:
        assert statuses(app(catalog, check(Options(read_only=True)))) == [403, 200]
    narrow = only_reading(lambda principal, operation, name: name == ("db", "t"))
    asked = [("loadTable", "t"), ("loadTable", "other"), ("updateTable", "t")]
    assert [narrow(None, operation, ("db", name)) for operation, name in asked] == [True, False, False]


def test_a_process_of_several_has_the_authorizer_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: str
) -> None:
    for key, value in {"TYPE": "sql", "URI": "sqlite://", "WAREHOUSE": f"file://{tmp_path}/wh"}.items():
        monkeypatch.setenv(f"ICEFIELD_CATALOG__LAKE__{key}", value)
    monkeypatch.setenv("ICEFIELD_CATALOG__LAKE__REST_SERVER__TOKENS", tokens)
    given = {"catalog": "lake", "authorizer": "read-only", "log": False}
    monkeypatch.setenv("ICEFIELD_REST_SERVER_OPTIONS", json.dumps(given))
    application = serving.of_environment()
    assert statuses(application) == [401, 401]
    assert statuses(application, Authorization=f"Bearer {TOKEN}") == [403, 200]


def test_a_server_has_what_its_options_and_properties_name(tokens: str, vended: str) -> None:
    issuer = {"jwks": "https://id/keys", "issuer": "me", "audience": "lake"}
    assert isinstance(check(Options(authenticator="tokens", tokens=tokens)).authenticator, StaticTokens)
    assert isinstance(check(Options(**issuer)).authenticator, JwtTokens)
    assert isinstance(check(Options(), **{"rest-server.tokens": tokens}).authenticator, StaticTokens)
    assert isinstance(check(Options(credentials=vended)).vendor, StaticCredentials)
    role = {"rest-server.sts.role-arn": "arn:aws:iam::123456789012:role/tables", "rest-server.sts.region": "eu-west-1"}
    assert isinstance(check(Options(vendor="sts"), **role).vendor, StsCredentials)
    assert check(Options()) == Settings()


def test_the_command_line_wins_over_the_properties(tokens: str) -> None:
    properties = {"rest-server.tokens": "/no/such/file", "rest-server.authorizer": "no-such"}
    assert check(Options(tokens=tokens, authorizer="read-only"), **properties).authenticator is not None


@pytest.mark.parametrize(
    ("name", "known"), [("authenticator", "jwt, tokens"), ("authorizer", "read-only"), ("vendor", "static, sts")]
)
@pytest.mark.parametrize("value", ["no-such", "builtins:print"])
def test_an_unknown_name_is_an_error_that_names_the_installed_ones(name: str, known: str, value: str) -> None:
    with pytest.raises(MissingPlugin, match=f"of the REST server '{value}'; installed are: {known}"):
        check(Options(), **{f"rest-server.{name}": value})


@pytest.mark.parametrize(
    "properties",
    [
        {"rest-server.authoriser": "read-only"},  # spelt otherwise: it would let everybody in
        {"rest-server.tokens": ""},
        {"rest-server.authenticator": "tokens"},
        {"rest-server.authenticator": "jwt", "rest-server.issuer": "me"},
        {"rest-server.vendor": "sts"},
        {"rest-server.vendor": "static"},
    ],
    ids=str,
)
def test_properties_that_are_misspelt_or_half_of_a_whole_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="give"):
        check(Options(), **properties)


@pytest.mark.slow
def test_the_hooks_of_three_plugins_need_no_library_of_theirs() -> None:
    code = (
        "import sys, icefield_report.hooks, icefield_rest.hooks, icefield_rest_server.hooks\n"
        "from icefield import Plugins, Provider\n"
        "plugins = Plugins(['icefield_report.hooks', 'icefield_rest_server.hooks'])\n"
        "assert plugins.records('icefield_authorizers', Provider)\n"
        "print({'starlette', 'uvicorn', 'jwt', 'jinja2', 'matplotlib'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == "set()"
