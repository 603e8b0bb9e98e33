"""Iceberg's reference server of the REST catalog: Java's `RESTCatalogServer`, over its JDBC catalog in SQLite.

The jars come from Maven: the fixtures of ``iceberg-open-api``, the tests of ``iceberg-core`` and what they run on.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from java_programs import java_17, maven_jars

from servers.process import answers, free_port, running

VERSION = "1.10.0"
SEPARATOR = "\x1f"
_ARTIFACTS = (
    f"org.apache.iceberg:iceberg-core:{VERSION}",
    "org.eclipse.jetty:jetty-servlet:11.0.26",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.slf4j:slf4j-simple:2.0.17",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
)
_ALONE = (
    f"org.apache.iceberg:iceberg-open-api:{VERSION}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",
)


@pytest.fixture(scope="session")
def java_rest() -> Iterator[str]:
    """The URI of a server that ends with the session, over a warehouse on the local disk."""
    with serve_java_rest() as uri:
        yield uri


@contextmanager
def serve_java_rest() -> Iterator[str]:
    """A server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="icefield-rest-"))
    port = free_port()
    try:
        settings = {
            "REST_PORT": str(port),
            "URI": f"jdbc:sqlite:{folder}/catalog.db",
            "WAREHOUSE": f"file://{folder}/warehouse",
            "JDBC_SCHEMA__VERSION": "V1",
            "CLIENTS": "1",  # SQLite refuses a second writer at once
        }
        environment = {f"CATALOG_{name}": value for name, value in settings.items()}
        jars = maven_jars(f"java-rest-{VERSION}", _ARTIFACTS, _ALONE)
        options = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = [*java_17(), *options, logging, "org.apache.iceberg.rest.RESTCatalogServer"]
        with running(
            command, lambda: answers(f"http://127.0.0.1:{port}/v1/config"), environment=environment, seconds=120
        ):
            yield f"http://127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drop_everything(uri: str) -> None:
    """Drop every namespace of a server, with its tables and views."""
    for namespace in reversed(_namespaces(uri)):
        path = f"{uri}/v1/namespaces/{quote(SEPARATOR.join(namespace), safe='')}"
        for kind in ("tables", "views"):
            for found in _asked(f"{path}/{kind}").get("identifiers", ()):
                _asked(f"{path}/{kind}/{quote(found['name'], safe='')}", "DELETE")
        _asked(path, "DELETE")


def _namespaces(uri: str, parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    query = f"?parent={quote(SEPARATOR.join(parent), safe='')}" if parent else ""
    found = [tuple(name) for name in _asked(f"{uri}/v1/namespaces{query}")["namespaces"]]
    return [name for each in found for name in (each, *_namespaces(uri, each))]


def _asked(url: str, method: str = "GET") -> dict[str, Any]:
    try:
        with urlopen(Request(url, method=method), timeout=60) as response:
            answer: dict[str, Any] = json.loads(response.read() or b"{}")
            return answer
    except HTTPError as error:
        return {"status": error.code}
