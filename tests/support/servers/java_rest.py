"""Iceberg's reference server of the REST catalog: Java's `RESTCatalogServer`, over its JDBC catalog in SQLite."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

import pytest
from rest_kit import reference_server

_QUICK_TO_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def java_rest() -> Iterator[str]:
    """The URI of a server that ends with the session, over a warehouse on the local disk."""
    with serve_java_rest() as uri:
        yield uri


@contextmanager
def serve_java_rest() -> Iterator[str]:
    """A server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="icefield-rest-"))
    try:
        with reference_server(folder, jvm=_QUICK_TO_START) as uri:
            yield uri
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drop_everything(uri: str) -> None:
    """Drop every namespace of a server, with its tables and views."""
    separator = unquote(_asked(f"{uri}/v1/config")["overrides"]["namespace-separator"])
    for namespace in reversed(_namespaces(uri, separator)):
        path = f"{uri}/v1/namespaces/{quote(separator.join(namespace), safe='')}"
        for kind in ("tables", "views"):
            for found in _asked(f"{path}/{kind}").get("identifiers", ()):
                _asked(f"{path}/{kind}/{quote(found['name'], safe='')}", "DELETE")
        _asked(path, "DELETE")


def _namespaces(uri: str, separator: str, parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    query = f"?parent={quote(separator.join(parent), safe='')}" if parent else ""
    found = [tuple(name) for name in _asked(f"{uri}/v1/namespaces{query}")["namespaces"]]
    return [name for each in found for name in (each, *_namespaces(uri, separator, each))]


def _asked(url: str, method: str = "GET") -> dict[str, Any]:
    try:
        with urlopen(Request(url, method=method), timeout=60) as response:
            answer: dict[str, Any] = json.loads(response.read() or b"{}")
            return answer
    except HTTPError as error:
        return {"status": error.code}
