"""A job on a standalone cluster of two worker processes, its environment shipped with it, its tables in S3.

Executors are killed, tasks are tried twice at once, and what computes the rows fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import icefield
import pytest
from servers.s3 import S3, SECRET
from servers.spark_cluster import SparkCluster, alive_workers
from shipped_environment import build_wheels

JOB = Path(__file__).with_name("cluster_job.py")
ROWS = 8_000
SHIPPED = ("avro", "import", "maintenance", "parquet", "s3", "spark")
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.task.maxFailures": "4",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "4s",
    "spark.sql.shuffle.partitions": "4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.ui.port": "0",
}


@pytest.mark.soak
@pytest.mark.slow
def test_nothing_is_lost_doubled_or_left_when_executors_die_and_attempts_race(
    spark_cluster: SparkCluster, s3: S3, tmp_path: Path
) -> None:
    deadline = time.monotonic() + 240
    while len(alive_workers(spark_cluster)) < 2:
        assert time.monotonic() < deadline, "the workers do not register"
        time.sleep(0.2)
    job = tmp_path / "job"
    for name in ("events", "pages"):
        (job / name).mkdir(parents=True)
    archive = packed(tmp_path)
    properties = {"type": "directory", "warehouse": f"s3://{s3.bucket}/cluster", **s3.properties}
    given = {f"ICEFIELD_CATALOG__LAKE__{_shell(name)}": value for name, value in properties.items()}
    settings = {**SETTINGS, "spark.eventLog.dir": f"file://{job}/events"}
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    # Both the driver, next to the environment, and the executors, in whose folders it is unpacked, find it so.
    (job / "environment").symlink_to(tmp_path / "environment")
    given["PYSPARK_PYTHON"] = "./environment/bin/python"
    arguments = [*options, "--archives", f"{archive}#environment", str(JOB), str(job)]
    running = spark_cluster.submit(*arguments, folder=job, environment=given)
    try:
        running.wait(800)
    finally:
        running.terminate()
        running.wait(60)
    said = (job / "out.txt").read_text()
    assert running.returncode == 0, f"{said[-2_000:]} {(job / 'err.txt').read_text()[-4_000:]}"
    executors = next(line for line in said.splitlines() if line.startswith("executors run in "))
    assert Path(executors.removeprefix("executors run in ")).is_relative_to(spark_cluster.work), "not in the archive"
    keep_pages_of_the_cluster(spark_cluster, job / "pages")
    _was_troubled(job, spark_cluster)
    _nothing_is_lost_or_left(s3)
    _no_secret(job, spark_cluster)


def _nothing_is_lost_or_left(s3: S3) -> None:
    properties = {"type": "directory", "warehouse": f"s3://{s3.bucket}/cluster", **s3.properties}
    with icefield.load_catalog("lake", **properties) as catalog:
        table, copy = catalog.load_table("db.t"), catalog.load_table("db.copy")
        found = sorted(table.scan(selected_fields=("id", "kind")).to_arrow().to_pylist(), key=lambda row: row["id"])
        merged = range(ROWS + ROWS // 2, 2 * ROWS + ROWS // 2)
        kept = [number for number in range(2 * ROWS) if number % 100 and number not in merged]
        wanted = {**{number: str(number % 4) for number in kept}, **dict.fromkeys(merged, "new")}
        assert [(row["id"], row["kind"]) for row in found] == sorted(wanted.items())
        assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [*merged]
        for each in (table, copy):
            now = int(time.time() * 1000) + 60_000
            orphans = each.maintenance.remove_orphan_files(older_than=now, dry_run=True, allow_recent=True).orphans
            assert orphans["location"].to_pylist() == []
    assert s3.unpublished() == 0


def _was_troubled(job: Path, cluster: SparkCluster) -> None:
    """What the test plants has come to pass: executors were lost, tasks raised, and attempts were killed by others."""
    events = "".join(path.read_text("utf-8") for path in (job / "events").rglob("*") if path.is_file())
    assert events.count('"Event":"SparkListenerExecutorRemoved"') >= 2
    assert "planted upstream" in events
    assert "planted for good" in events
    assert "as the attempt 1 succeeded" in (job / "err.txt").read_text(), "no attempt had a rival"
    assert len([*(job / "pages").iterdir()]) > 20
    assert [*cluster.work.rglob("stderr")]


def _no_secret(job: Path, cluster: SparkCluster) -> None:
    """No log, page or event log holds what the store is reached with."""
    searched = 0
    for folder in (job, cluster.work, cluster.home / "local"):
        for path in folder.rglob("*"):
            if path.is_file() and "environment" not in path.relative_to(folder).parts:
                searched += 1
                assert SECRET.encode() not in path.read_bytes(), path
    assert searched > 30


def packed(folder: Path) -> Path:
    """An archive of an environment with the wheels of this repository, without Spark."""
    uv = [sys.executable, "-m", "uv"]
    environment, archive = folder / "environment", folder / "environment.tar.gz"
    wheels = build_wheels(folder / "wheels", SHIPPED)
    commands: list[list[str | Path]] = [
        [*uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, environment],
        [*uv, "pip", "install", "--quiet", "--python", environment / "bin/python", "icefield[spark,parquet,s3]"],
        ["tar", "-I", "gzip -1", "-cf", archive, "-C", environment, "."],
    ]
    for command in commands:
        given = {**os.environ, "UV_FIND_LINKS": str(wheels)}
        subprocess.run(command, check=True, capture_output=True, timeout=300, env=given)
    return archive


def keep_pages_of_the_cluster(cluster: SparkCluster, folder: Path) -> None:
    """What the master and its workers show, the logs of executors among it."""
    todo, seen = list(cluster.pages), set[str]()
    while todo:
        page = todo.pop()
        if page in seen or len(seen) > 200:
            continue
        seen.add(page)
        with urlopen(page, timeout=60) as answer:
            text = answer.read().decode("utf-8", "replace")
        (folder / f"cluster-{len(seen)}.html").write_text(f"{page}\n{text}", "utf-8")
        links = [link.replace("&amp;", "&") for link in re.findall(r'href="(http://127[^"#]+|/[^"#]*)"', text)]
        here = "/".join(page.split("/")[:3])
        full = [link if link.startswith("http") else here + link for link in links]
        todo += [each for each in full if each.startswith(cluster.pages) and "/static/" not in each]


def _shell(name: str) -> str:
    return name.upper().replace(".", "__").replace("-", "_")
