"""HDFS on loopback: a name node and two data nodes of Hadoop's own mini cluster, by RPC and by WebHDFS."""

from __future__ import annotations

import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from java_programs import java_17, maven_jars

from servers.process import free_port, running

# Hadoop's REST interface needs ``jaxb-api``, which later versions of Java no longer contain.
ARTIFACTS = ("org.apache.hadoop:hadoop-client-minicluster:3.4.1", "javax.xml.bind:jaxb-api:2.3.1")
# With two copies, of which one suffices, a file can be closed when its last block was sent. With one copy, closing
# waits until the data node has reported the block, which takes 400 ms.
SETTINGS = {
    "dfs.replication": "2",
    "dfs.namenode.file.close.num-committed-allowed": "1",
    "dfs.permissions.enabled": "false",
    "dfs.namenode.resource.du.reserved": "1048576",
    "dfs.datanode.max.transfer.threads": "512",
    "dfs.ls.limit": "60",  # a page of a listing, so that few files fill several
}


@dataclass(frozen=True)
class Hdfs:
    """A running cluster: the ports of its name node."""

    rpc_port: int
    http_port: int

    @property
    def url(self) -> str:
        """The root location over Hadoop's own protocol."""
        return f"hdfs://127.0.0.1:{self.rpc_port}"

    @property
    def web_url(self) -> str:
        """The root over WebHDFS."""
        return f"webhdfs://127.0.0.1:{self.http_port}"


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """A cluster that ends with the session."""
    with serve_hdfs() as server:
        yield server


@contextmanager
def serve_hdfs() -> Iterator[Hdfs]:
    """A cluster that ends with the block."""
    java = java_17()
    jars = maven_jars("hdfs-3.4.1", ARTIFACTS)
    server = Hdfs(free_port(), free_port())
    folder = Path(tempfile.mkdtemp(prefix="icefield-hdfs-"))
    settings = [part for name, value in SETTINGS.items() for part in ("-D", f"{name}={value}")]
    ports = ["-nnport", str(server.rpc_port), "-httpport", str(server.http_port)]
    # Without ``-Xrs`` its shutdown takes many seconds.
    command = [*java, "-Xmx384m", "-Xrs", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={folder}", "-cp", f"{jars}/*"]
    main = ["org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "2", "-format", *ports, *settings]
    try:
        with running([*command, *main], lambda: _takes_a_file(server), folder=folder, seconds=120):
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _takes_a_file(server: Hdfs) -> bool:
    """Whether both data nodes are there and a write succeeds."""
    base = f"http://127.0.0.1:{server.http_port}"
    try:
        query = "qry=Hadoop:service=NameNode,name=FSNamesystemState"
        with urllib.request.urlopen(f"{base}/jmx?{query}", timeout=2) as answer:
            if json.load(answer)["beans"][0]["NumLiveDataNodes"] < 2:
                return False
        write_around(server, "/ready", b"yes")
        return read_around(server, "/ready") == b"yes"
    except (OSError, ValueError, LookupError):
        return False


def read_around(server: Hdfs, path: str) -> bytes | None:
    """The bytes of a file, without the plugin; None when there is none."""
    try:
        with urllib.request.urlopen(_url(server, path, op="OPEN"), timeout=30) as answer:
            data: bytes = answer.read()
            return data
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def write_around(server: Hdfs, path: str, data: bytes) -> None:
    """Write a file without the plugin."""
    asked = urllib.request.Request(_url(server, path, op="CREATE", overwrite="true", noredirect="true"), method="PUT")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        target = json.load(answer)["Location"]
    headers = {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(target, data, headers, method="PUT"), timeout=30).close()


def list_around(server: Hdfs, path: str) -> list[str]:
    """The paths of all files below a folder, hidden ones too, without the plugin."""
    try:
        with urllib.request.urlopen(_url(server, path, op="LISTSTATUS"), timeout=30) as answer:
            found = json.load(answer)["FileStatuses"]["FileStatus"]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise
    files = []
    for each in found:
        below = f"{path}/{each['pathSuffix']}"
        files += list_around(server, below) if each["type"] == "DIRECTORY" else [below]
    return files


def _url(server: Hdfs, path: str, **query: str) -> str:
    return f"http://127.0.0.1:{server.http_port}/webhdfs/v1{quote(path)}?{urlencode(query)}"
