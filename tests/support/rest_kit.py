"""Iceberg's REST Compatibility Kit: the tests of catalogs and views that come with its library, against a server."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from java_programs import java_17, maven_jars
from servers.process import answers, free_port, running

ICEBERG = "1.11.0"
_DRIVER = "42.7.7"  # of PostgreSQL
_ARTIFACTS = (
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-api:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-data:{ICEBERG}",
    "org.junit.platform:junit-platform-console-standalone:1.13.4",
    "org.assertj:assertj-core:3.27.3",
    "org.awaitility:awaitility:4.3.0",
    "org.slf4j:slf4j-simple:2.0.17",
    "org.mockito:mockito-core:4.11.0",
    "org.xerial:sqlite-jdbc:3.49.1.0",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-server:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.5",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
)
_PACKAGE = "org.apache.iceberg.rest"
_CLASSES = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")


@dataclass(frozen=True)
class KitResult:
    """How each test of the kit ended: ``skipped`` with the kit's reason, ``failed`` with the message."""

    passed: frozenset[str]
    skipped: dict[str, str]
    failed: dict[str, str]


def run_kit(uri: str, folder: Path) -> KitResult:
    """Run the kit against a server with an empty catalog; reports go to a folder."""
    options = ["-Xmx600m", "-XX:TieredStopAtLevel=1", "-Drck.local=false", "-Drck.requires-namespace-create=true"]
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    classes = [f"--select-class={_PACKAGE}.{name}" for name in _CLASSES]
    command = [*java_17(), *options, f"-Duri={uri}/", logging, "-cp", f"{jars()}/*"]
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--config=rck.local=false", "--details=none"]
    subprocess.run(
        [*command, *launcher, *classes, f"--reports-dir={folder}"], capture_output=True, timeout=900, check=False
    )
    return _result(folder / "TEST-junit-jupiter.xml")


def _result(report: Path) -> KitResult:
    passed, skipped, failed = set(), {}, {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.attrib['classname'].rpartition('.')[2]}.{case.attrib['name']}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            failed[name] = (problem.attrib.get("message") or problem.attrib.get("type") or "").strip()
        elif (left := case.find("skipped")) is not None:
            skipped[name] = (left.text or "").partition("\n")[0].strip()
        else:
            passed.add(name)
    return KitResult(frozenset(passed), skipped, failed)


@contextmanager
def reference_server(folder: Path, database: str | None = None, jvm: Sequence[str] = ()) -> Iterator[str]:
    """Java's reference server over files in a folder, until the block ends.

    Its catalog is in SQLite in the folder, or in the PostgreSQL database of a URI in SQLAlchemy's form. ``jvm`` are
    options of Java.
    """
    port = free_port()
    found = jars()
    path = f"{found}/*"
    # SQLite refuses a second writer at once.
    settings = {"URI": f"jdbc:sqlite:{folder}/catalog.db", "CLIENTS": "1"}
    if database is not None:
        where = urlsplit(database)
        settings = {"URI": f"jdbc:postgresql://{where.hostname}:{where.port}{where.path}", "CLIENTS": "8"}
        settings["JDBC_USER"] = where.username or ""
        path += f":{maven_jars(f'postgresql-jdbc-{_DRIVER}', [f'org.postgresql:postgresql:{_DRIVER}'])}/*"
    settings |= {"REST_PORT": str(port), "WAREHOUSE": f"file://{folder}/w", "JDBC_SCHEMA__VERSION": "V1"}
    environment = {f"CATALOG_{name}": value for name, value in settings.items()}
    options = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path]
    command = [*java_17(), *jvm, *options, f"{_PACKAGE}.RESTCatalogServer"]
    ready = lambda: answers(f"http://127.0.0.1:{port}/v1/config")  # noqa: E731
    with running(command, ready, environment=environment, seconds=180):
        yield f"http://127.0.0.1:{port}"


def jars() -> Path:
    return maven_jars(f"rest-kit-{ICEBERG}", _ARTIFACTS)
