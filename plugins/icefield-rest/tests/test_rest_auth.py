"""Who asks: tokens that are fetched, exchanged and renewed, and credentials that go to nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, Plugins, Provider, hookimpl, load_catalog
from icefield.errors import AccessDenied, BrokenPlugin, InvalidArgument, MissingPlugin, StorageError
from icefield_rest.auth import Authenticator, Post, Unsigned, oauth
from icefield_rest.auth.oauth import held_of
from icefield_rest.service import may_say
from icefield_testing import RecordingServer
from servers.java_rest import drop_everything

SECRETS = ("tell-nobody", "first-token", "second-token")
Script = Callable[[Asked], Answered | None]


def said(status: int, body: Any = None, **headers: str) -> Answered:
    content = b"" if body is None else json.dumps(body).encode()
    return Answered(status, {"Content-Type": "application/json", **headers}, content)


def config(**more: Any) -> Answered:
    return said(200, {"defaults": {}, "overrides": {}, **more})


class TokenService:
    """Gives tokens that differ, and accepts those of them that it was not told to forget."""

    def __init__(self, seconds: float | None = 3_600) -> None:
        self.seconds = seconds
        self.forms: list[dict[str, str]] = []
        self.valid: set[str] = set()

    def token(self, asked: Asked) -> Answered:
        self.forms.append({key: values[0] for key, values in parse_qs(asked.body.decode()).items()})
        token = f"{('first', 'second', 'third')[min(len(self.forms) - 1, 2)]}-token"
        self.valid.add(token)
        stated = {} if self.seconds is None else {"expires_in": self.seconds}
        return said(200, {"access_token": token, "token_type": "bearer", **stated})

    def guarded(self, asked: Asked, forward: Forward, status: int = 401) -> Answered | None:
        """Ask for a token, and hand on who has a valid one."""
        if asked.path.endswith("/v1/oauth/tokens"):
            return self.token(asked)
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.valid:
            return said(status, {"error": {"message": "who?", "type": "NotAuthorizedException", "code": status}})
        return forward(asked)


@pytest.fixture
def between() -> Iterator[Between]:
    with Between("http://127.0.0.1:9").open() as made:
        yield made


@pytest.fixture
def before_java(java_rest: str) -> Iterator[Between]:
    drop_everything(java_rest)
    with Between(java_rest).open() as made:
        yield made


def opened(between: Between, answers: Script, **properties: Any) -> Catalog:
    between.behave = lambda asked, forward: config() if asked.path.startswith("/v1/config") else answers(asked)
    return load_catalog("test", type="rest", uri=between.url, **{"rest.retry.num-retries": "1", **properties})


def no_namespaces(asked: Asked) -> Answered:
    return said(200, {"namespaces": []})


def test_a_token_is_fetched_for_the_credential_of_a_client(before_java: Between) -> None:
    tokens = TokenService()
    before_java.behave = tokens.guarded
    with load_catalog("test", uri=before_java.url, credential="me:tell-nobody", scope="PRINCIPAL_ROLE:ALL") as catalog:
        assert catalog.list_namespaces() == []
    assert tokens.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "me",
            "client_secret": "tell-nobody",
            "scope": "PRINCIPAL_ROLE:ALL",
        }
    ]


@pytest.mark.parametrize("status", [401, 419])
def test_a_token_that_ends_in_the_middle_of_a_commit_or_a_scan_is_renewed(before_java: Between, status: int) -> None:
    tokens = TokenService()
    before_java.behave = lambda asked, forward: tokens.guarded(asked, forward, status)
    with load_catalog("test", uri=before_java.url, credential="me:tell-nobody") as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
        tokens.valid.clear()
        table.append(pa.table({"id": [1, 2]}))
        tokens.valid.clear()
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 2
        assert len(catalog.load_table("db.t").snapshots()) == 1
    assert len(tokens.forms) == 3


def test_a_token_that_many_threads_are_refused_with_is_renewed_once(between: Between) -> None:
    tokens, together = TokenService(), Barrier(4)

    def answer(asked: Asked, forward: Forward) -> Answered | None:
        if asked.path.startswith("/v1/config"):
            return config()
        refused = tokens.guarded(asked, lambda _: no_namespaces(asked))
        if refused is not None and refused.status == 401:
            together.wait(30)  # all were sent with the old token
        return refused

    between.behave = answer
    with load_catalog("test", type="rest", uri=between.url, credential="me:tell-nobody") as catalog:
        assert catalog.list_namespaces() == []
        tokens.valid.clear()
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: catalog.list_namespaces(), range(4))) == [[]] * 4
    assert len(tokens.forms) == 2


def test_a_token_is_renewed_before_it_ends(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = TokenService(seconds=3_600)
    between.behave = lambda asked, forward: (
        tokens.token(asked) if asked.path.endswith("/tokens") else config(namespaces=[])
    )
    with load_catalog("test", uri=between.url, credential="me:tell-nobody") as catalog:
        catalog.list_namespaces()
        later(monkeypatch, 3_400)
        catalog.list_namespaces()
        assert len(tokens.forms) == 2
    held = held_of("t", 3_600)
    assert [held.due(held.began + age) for age in (3_200, 3_301)] == [False, True]


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let tokens be older than they are."""
    monkeypatch.setattr(oauth, "_now", lambda: time.monotonic() + seconds)


def test_a_token_that_was_given_is_exchanged_before_it_ends(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = TokenService()

    def answers(asked: Asked) -> Answered:
        return tokens.token(asked) if asked.path.endswith("/tokens") else no_namespaces(asked)

    with opened(between, answers, token="tell-nobody", **{"token-expires-in-ms": "300000"}) as catalog:
        catalog.list_namespaces()
        assert between.asked[-1].headers["authorization"] == "Bearer tell-nobody"
        later(monkeypatch, 280)
        catalog.list_namespaces()
        assert between.asked[-1].headers["authorization"] == "Bearer first-token"
    (form,) = tokens.forms
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert form["subject_token"] == "tell-nobody"


def test_a_users_token_is_exchanged_with_that_of_the_client_as_the_actor(between: Between) -> None:
    tokens = TokenService()
    subject = {"urn:ietf:params:oauth:token-type:id_token": "tell-nobody-who"}
    between.behave = lambda asked, forward: (
        tokens.token(asked) if asked.path.endswith("/tokens") else config(namespaces=[])
    )
    with load_catalog("test", uri=between.url, credential="me:tell-nobody", **subject) as catalog:
        catalog.list_namespaces()
    first, second = tokens.forms
    assert first["grant_type"] == "client_credentials"
    assert second["subject_token_type"].endswith("id_token")
    assert second["actor_token"] == "first-token"
    assert between.asked[-1].headers["authorization"] == "Bearer second-token"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": "invalid_client", "error_description": "tell-nobody is wrong"}, AccessDenied),
        (503, {}, StorageError),
        (200, {"no": "token"}, StorageError),
        (200, {"access_token": "x" * 10, "token_type": "bearer", "expires_in": 0}, AccessDenied),
    ],
)
def test_a_token_that_cannot_be_had_is_an_error_without_the_secret(
    between: Between, status: int, body: Mapping[str, Any], error: type[Exception]
) -> None:
    between.behave = lambda asked, forward: said(status, body)
    with pytest.raises(error) as caught:
        load_catalog("test", uri=between.url, credential="me:tell-nobody", **{"rest.retry.num-retries": "0"})
    assert "tell-nobody" not in str(caught.value)


def test_a_user_and_a_password_are_sent(between: Between) -> None:
    given = {"rest.auth.type": "basic", "rest.auth.basic.username": "me", "rest.auth.basic.password": "tell-nobody"}
    with opened(between, no_namespaces, **given) as catalog:
        catalog.list_namespaces()
        assert between.asked[-1].headers["authorization"] == "Basic bWU6dGVsbC1ub2JvZHk="
        assert "tell-nobody" not in repr(catalog) + repr(catalog.backend)
    with pytest.raises(InvalidArgument, match="password"):
        opened(between, no_namespaces, **{"rest.auth.type": "basic", "rest.auth.basic.username": "me"})


class Shared(Authenticator):
    """A key of the properties, in a header of its own."""

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        self._key = properties["shared.key"]

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        return {"X-Shared": self._key + request.method}


class SharedPlugin:
    @hookimpl(optionalhook=True)
    def icefield_rest_authenticators(self) -> list[Provider]:
        return [Provider("shared", f"{__name__}:Shared"), Provider("wrong", "collections:ChainMap")]


def test_a_plugin_provides_another_way(between: Between) -> None:
    plugins = Plugins.installed(extra=[SharedPlugin()])
    given = {"rest.auth.type": "Shared", "shared.key": "k", "plugins": plugins}
    with opened(between, no_namespaces, **given) as catalog:
        catalog.list_namespaces()
    assert between.asked[-1].headers["x-shared"] == "kGET"
    with pytest.raises(BrokenPlugin, match="gives no"):
        opened(between, no_namespaces, **{"rest.auth.type": "wrong", "plugins": plugins})


def test_an_unknown_way_is_an_error_that_names_the_installed_ones(between: Between) -> None:
    for kind in ("kerberos", "shared", "json:JSONDecoder"):
        with pytest.raises(MissingPlugin, match="installed are: basic, entra, google, none, oauth2, sigv4"):
            opened(between, no_namespaces, **{"rest.auth.type": kind})


def test_credentials_go_to_no_host_that_the_properties_do_not_name(between: Between) -> None:
    with RecordingServer() as foreign:
        away = f"http://127.0.0.1:{foreign.port}"
        between.behave = lambda asked, forward: config(overrides={"uri": away})
        with pytest.raises(InvalidArgument, match="trusted-hosts"):
            load_catalog("test", uri=between.url, token="tell-nobody")
        between.behave = lambda asked, forward: said(307, None, Location=f"{away}{asked.path}")
        with pytest.raises(StorageError, match="redirects"):
            load_catalog("test", uri=between.url, token="tell-nobody")
        between.behave = lambda asked, forward: config(
            overrides={"oauth2-server-uri": f"{away}/tokens", "rest.trusted-hosts": away, "location.allowed-roots": "x"}
        )
        with load_catalog("test", uri=between.url, token="tell-nobody") as catalog:
            assert catalog.properties.get("location.allowed-roots") is None
            assert "rest.trusted-hosts" not in catalog.properties
        assert foreign.received() == []


def test_a_service_chooses_no_key_service_and_no_master_keys(between: Between) -> None:
    theirs = {"encryption.kms-type": "x", "encryption.vault.url": "x", "kms.endpoint": "x", "azure.keyvault.url": "x"}
    between.behave = lambda asked, forward: config(defaults=theirs, overrides=theirs)
    with load_catalog("test", uri=between.url) as catalog:
        assert not theirs.keys() & catalog.properties.keys()
        assert not theirs.keys() & catalog.io.properties.keys()
    assert may_say(theirs) == {}


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgument) as caught:
        load_catalog("test", type="rest", uri="https://me:tell-nobody@host/api")
    assert "tell-nobody" not in str(caught.value)
