"""A standalone cluster of stock PySpark on loopback: a master and two workers, each a process with a core."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from shipped_environment import spark_home

from servers.process import answers, free_port, running

WORKERS = 2


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster: its home, its master, and the pages of its processes."""

    home: Path
    url: str
    pages: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which ``spark-submit`` reaches it."""
        return _environment(self.home)

    @property
    def work(self) -> Path:
        """The folder in which executors run, with their output."""
        return self.home / "work"

    def submit(self, *arguments: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
        """A job that was submitted; it prints into ``out.txt`` and ``err.txt`` of its folder."""
        with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
            return subprocess.Popen(
                [self.home / "bin/spark-submit", "--master", self.url, *arguments],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={**self.environment, **environment},
                encoding="utf-8",
            )


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """A cluster that ends with the test."""
    from icefield_spark import ensure_java

    ensure_java()
    home = spark_home(tmp_path / "spark")
    port, pages = free_port(), [free_port() for _ in range(1 + WORKERS)]
    # Spark runs no two attempts of a task at once on one host, so each worker has its own loopback address.
    hosts = [f"127.0.0.{number + 1}" for number in range(len(pages))]
    url, found = (
        f"spark://{hosts[0]}:{port}",
        [f"http://{host}:{page}" for host, page in zip(hosts, pages, strict=True)],
    )
    with ExitStack() as stack:
        for host, page, shown in zip(hosts, pages, found, strict=True):
            given = ["--host", host, "--webui-port", str(page)]
            if host == hosts[0]:
                command = _command(home, "Master", *given, "--port", str(port))
            else:
                folder = home / "work" / host
                command = _command(home, "Worker", *given, "--cores", "1", "--memory", "1g", "-d", str(folder), url)
            environment = {**_environment(home), "SPARK_LOCAL_IP": host}
            stack.enter_context(running(command, partial(answers, shown), environment=environment, seconds=240))
        yield SparkCluster(home, url, tuple(found))


def alive_workers(cluster: SparkCluster) -> list[dict[str, Any]]:
    """Return the master's descriptions of its living workers."""
    with urlopen(f"{cluster.pages[0]}/json/", timeout=30) as answer:
        workers: list[dict[str, Any]] = json.load(answer)["workers"]
    return [worker for worker in workers if worker["state"] == "ALIVE"]


def _command(home: Path, what: str, *arguments: str) -> list[str | Path]:
    name = f"org.apache.spark.deploy.{what.lower()}.{what}"
    return [home / "bin/spark-class", name, *arguments]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", "PYTHON"))}
    return {
        **kept,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
