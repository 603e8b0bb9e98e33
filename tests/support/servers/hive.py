"""A Hive Metastore on loopback: the real one, from the jars of the package pyspark, over a database in memory."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from java_programs import java_17

from servers.process import free_port, listens, running, unavailable

_SOURCE = Path(__file__).parent / "hive_metastore" / "Metastore.java"
_SETTINGS = {
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.disallow.incompatible.col.type.changes": "false",  # as Iceberg tables need it
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.async.log.enabled": "false",
    "hive.hmshandler.retry.interval": "200ms",
}
_LOGGING = """status = WARN
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
"""


@pytest.fixture(scope="session")
def hive() -> Iterator[str]:
    """The URI of a metastore that ends with the session."""
    with serve_hive() as uri:
        yield uri


@contextmanager
def serve_hive(**settings: str) -> Iterator[str]:
    """A metastore that ends with the block; ``settings`` go to ``hive-site.xml``, with ``.`` for ``_`` in names."""
    java, jars = _java(), jars_of_pyspark()
    folder = Path(tempfile.mkdtemp(prefix="icefield-hive-"))
    port = free_port()
    try:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        _configure(folder, {**_SETTINGS, **given})
        # Readers and writers of one row can deadlock in Derby, which breaks a deadlock only after twenty seconds by
        # default.
        derby = [f"-Dderby.stream.error.file={folder}/derby.log", "-Dderby.locks.deadlockTimeout=1"]
        options = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *derby]
        command = [*java, *options, "-cp", f"{folder}:{jars}/*", _SOURCE, str(port)]
        with running(command, lambda: listens(port), folder=folder, seconds=180):
            yield f"thrift://127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drop_databases(uri: str) -> None:
    """Drop every database of a metastore with its tables, but for ``default``, which it has from the start."""
    from icefield_hive.client import Metastore
    from icefield_hive.messages import DROP_DATABASE, GET_ALL_DATABASES

    metastore = Metastore("cleaner", {"uri": uri})
    for name in metastore.ask(GET_ALL_DATABASES):
        if name != "default":
            metastore.ask(DROP_DATABASE, name, False, True)
    metastore.close()


def _configure(folder: Path, settings: dict[str, str]) -> None:
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:{folder.name};create=true",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        **settings,
    }
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    ]
    (folder / "hive-site.xml").write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
    for name in ("hive-log4j2.properties", "log4j2.properties"):
        (folder / name).write_text(_LOGGING)


def _java() -> list[str]:
    command = java_17()
    modules = subprocess.run([command[0], "--list-modules"], capture_output=True, encoding="utf-8", check=False).stdout
    if "jdk.compiler" not in modules:
        unavailable("java has no compiler: a JDK is needed")
    return command


def jars_of_pyspark() -> Path:
    """The folder of the jars that pyspark brings: Hive and Hadoop among them."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        unavailable("the package pyspark is not installed")
    jars = Path(found.submodule_search_locations[0]) / "jars"
    if not [*jars.glob("hive-metastore-*.jar")]:
        unavailable("the package pyspark has no Hive Metastore")
    return jars
