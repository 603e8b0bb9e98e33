"""Tokens of Google and of Microsoft Entra, fetched by their own libraries from an endpoint of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import ClientSecretCredential
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from http_between import Answered, Asked, Between, Forward
from icefield import load_catalog
from icefield.errors import AccessDenied, InvalidArgument
from icefield_rest.auth import entra

pytestmark = pytest.mark.slow

SECRET = "tell-nobody"
LOGIN = "https://login.microsoftonline.com"
APPLICATION = {
    "rest.auth.type": "entra",
    "rest.auth.entra.tenant-id": "11111111-2222-3333-4444-555555555555",
    "rest.auth.entra.client-id": "app",
    "rest.auth.entra.client-secret": SECRET,
}


class Endpoint:
    """A catalog without namespaces, and the two services that give tokens for it."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.bearers: list[str] = []
        self.seconds = 3_600
        self.refuses: set[str] = set()
        self.status = 200

    def __call__(self, asked: Asked, forward: Forward) -> Answered | None:
        if "openid-configuration" in asked.path:
            tenant = asked.path.split("/")[1]
            made = {name: f"{LOGIN}/{tenant}/oauth2/v2.0/{name}" for name in ("authorize", "token")}
            found = {f"{name.replace('authorize', 'authorization')}_endpoint": url for name, url in made.items()}
            return said(200, {**found, "issuer": f"{LOGIN}/{tenant}/v2.0"})
        if asked.path.endswith("/token"):
            self.forms.append({key: values[0] for key, values in parse_qs(asked.body.decode()).items()})
            if self.status != 200:
                return said(self.status, {"error": "invalid_client", "error_description": f"not with {SECRET}"})
            token = f"token-{len(self.forms)}"
            return said(200, {"access_token": token, "token_type": "Bearer", "expires_in": self.seconds})
        bearer = asked.headers.get("authorization", "")
        self.bearers.append(bearer)
        if not bearer.startswith("Bearer token-") or bearer in self.refuses:
            return said(401, {"error": {"message": "who?", "type": "NotAuthorizedException", "code": 401}})
        return said(200, {"defaults": {}, "overrides": {}} if "/config" in asked.path else {"namespaces": []})


def said(status: int, body: Any) -> Answered:
    return Answered(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def url(endpoint: Endpoint) -> Iterator[str]:
    with Between("http://127.0.0.1:9").open() as between:
        between.behave = endpoint
        yield between.url


@pytest.fixture
def account(tmp_path: Path, url: str) -> dict[str, str]:
    """Properties that name the key of a service account."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    stated = {"type": "service_account", "client_email": "a@b.iam", "token_uri": f"{url}/token", "project_id": "p"}
    path = tmp_path / "key.json"
    path.write_text(json.dumps({**stated, "private_key": key.decode(), "private_key_id": "k"}))
    return {"rest.auth.type": "google", "gcp.auth.credentials-path": str(path), "gcp.auth.quota-project": "payer"}


@pytest.fixture
def login(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to Microsoft's login go to the endpoint; everything else of the library is as it is."""

    class Here(RequestsTransport):
        def send(self, request: Any, **given: Any) -> Any:
            assert request.url.startswith(LOGIN)
            request.url = url + request.url.removeprefix(LOGIN)
            return super().send(request, **given)

    monkeypatch.setattr(entra, "ClientSecretCredential", partial(ClientSecretCredential, transport=Here()))


def test_a_token_of_google_is_kept_renewed_before_its_end_and_fetched_anew_when_refused(
    endpoint: Endpoint, url: str, account: dict[str, str]
) -> None:
    with load_catalog("test", type="rest", uri=url, **account) as catalog:
        assert catalog.list_namespaces() == []
        assert [form["grant_type"] for form in endpoint.forms] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        endpoint.refuses.add("Bearer token-1")
        assert catalog.list_namespaces() == []
        assert endpoint.bearers[-2:] == ["Bearer token-1", "Bearer token-2"]
        endpoint.seconds = 60  # Google's library renews what ends so soon
        endpoint.refuses.add("Bearer token-2")
        catalog.list_namespaces()
        catalog.list_namespaces()
        assert endpoint.bearers[-1] == "Bearer token-4"
        assert "PRIVATE KEY" not in repr(catalog) + repr(catalog.backend) + str(catalog.backend.credentials())


def test_google_that_gives_no_token_is_an_access_denied_without_secrets(
    endpoint: Endpoint, url: str, account: dict[str, str]
) -> None:
    endpoint.status = 400
    with pytest.raises(AccessDenied, match="Google's credentials") as raised:
        load_catalog("test", type="rest", uri=url, **account)
    assert SECRET not in str(raised.value)


@pytest.mark.usefixtures("login")
def test_a_token_of_entra_is_kept_and_renewed_before_its_end(endpoint: Endpoint, url: str) -> None:
    with load_catalog("test", type="rest", uri=url, **APPLICATION) as catalog:
        assert catalog.list_namespaces() == []
        form = endpoint.forms[0]
        assert (form["client_id"], form["scope"]) == ("app", "https://storage.azure.com/.default")
        assert endpoint.bearers == ["Bearer token-1", "Bearer token-1"]
        assert SECRET not in repr(catalog) + repr(catalog.backend) + str(catalog.backend.credentials())
    endpoint.seconds = 120  # the library renews what ends within five minutes
    with load_catalog("test", type="rest", uri=url, **APPLICATION) as catalog:
        catalog.list_namespaces()
    assert endpoint.bearers[-2:] == ["Bearer token-2", "Bearer token-3"]


@pytest.mark.usefixtures("login")
def test_entra_that_gives_no_token_is_an_access_denied_without_secrets(endpoint: Endpoint, url: str) -> None:
    endpoint.status = 401
    with pytest.raises(AccessDenied, match="Microsoft Entra") as raised:
        load_catalog("test", type="rest", uri=url, **APPLICATION)
    assert SECRET not in str(raised.value)
    with pytest.raises(InvalidArgument, match="belong together"):
        load_catalog("test", type="rest", uri=url, **{**APPLICATION, "rest.auth.entra.client-id": ""})
