"""Services behind TLS: whom the client trusts, and as whom it comes."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from certificates import Certified, certified
from icefield import load_catalog
from icefield.errors import InvalidArgument, StorageError
from icefield_rest_server import app
from rest_served import served

ONCE = {"rest.retry.num-retries": "0"}


@contextmanager
def behind_tls(own: Certified, **options: Any) -> Iterator[str]:
    """The address of a service that shows a certificate."""
    with (
        load_catalog("served", type="sql", uri="sqlite://", warehouse="memory://tls") as catalog,
        served(app(catalog), ssl_certfile=own.certificate, ssl_keyfile=own.key, **options) as uri,
    ):
        yield uri.replace("http://", "https://")


def names(uri: str, **properties: str) -> list[tuple[str, ...]]:
    with load_catalog("lake", type="rest", uri=uri, **ONCE, **properties) as catalog:
        return catalog.list_namespaces()


def test_certificates_are_read_once_until_their_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = certified(tmp_path, "own"), certified(tmp_path, "other")
    bundle = tmp_path / "bundle"
    bundle.write_bytes(Path(other.certificate).read_bytes())
    reads: list[str] = []
    real = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda **given: [reads.append(""), real(**given)][1])
    with behind_tls(own) as uri:
        for _ in range(2):
            with pytest.raises(StorageError, match="no answer from https://"):
                names(uri, **{"ssl.cabundle": str(bundle)})
        assert len(reads) == 1
        bundle.write_bytes(Path(own.certificate).read_bytes())
        os.utime(bundle, (1, 1))
        for _ in range(2):
            assert names(uri, **{"ssl.cabundle": str(bundle)}) == []
        assert len(reads) == 2


@pytest.mark.parametrize("named", ["ssl.cabundle", "SSL_CERT_FILE"])
def test_a_service_is_trusted_by_the_certificates_that_are_named(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = certified(tmp_path, "own")
    given = {named: own.certificate} if named.islower() else {}
    if not given:
        monkeypatch.setenv(named, own.certificate)
    with behind_tls(own) as uri:
        assert names(uri, **given) == []


def test_a_client_shows_its_certificate_and_no_other_catalog_does(tmp_path: Path) -> None:
    own, client = certified(tmp_path, "own"), certified(tmp_path, "client")
    trust = {"ssl.cabundle": own.certificate}
    shown = {**trust, "ssl.client.cert": client.certificate, "ssl.client.key": client.key}
    with behind_tls(own, ssl_ca_certs=client.certificate, ssl_cert_reqs=ssl.CERT_REQUIRED) as uri:
        assert names(uri, **shown) == []
        with pytest.raises(StorageError, match="no answer from https://"):
            names(uri, **trust)


@pytest.mark.parametrize("missing", ["ssl.cabundle", "ssl.client.cert"])
def test_certificates_that_cannot_be_read_are_said(missing: str, tmp_path: Path) -> None:
    own = certified(tmp_path, "own")
    given = {"ssl.cabundle": own.certificate, "ssl.client.cert": own.certificate, "ssl.client.key": own.key}
    given[missing] = str(tmp_path / "nowhere")
    with pytest.raises(InvalidArgument, match=r"ssl\.cabundle, ssl\.client\.cert or .* cannot be used: FileNotFound"):
        names("https://127.0.0.1:1", **given)
