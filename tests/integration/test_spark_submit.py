"""The unchanged spark-submit example: packed, submitted to a cluster of processes, and run in the archive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import icefield
import pytest
from icefield_spark import ensure_java
from repository import ROOT
from shipped_environment import build_wheels, spark_home

EXAMPLE = ROOT / "examples/spark-submit"
CLUSTER = "local-cluster[1,1,1024]"
"""A master, a worker and executors that are processes of their own, each in a folder of its own."""


@pytest.mark.spark
@pytest.mark.slow
def test_a_packed_environment_runs_a_job_on_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    ensure_java()
    environment = {
        **os.environ,
        "UV_FIND_LINKS": str(build_wheels(tmp_path / "wheels", ("avro", "import", "maintenance", "parquet", "spark"))),
        "UV_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home(tmp_path / "spark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "MASTER": CLUSTER,
        "PATH": f"{tmp_path / 'spark/bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    environment.pop("PYSPARK_PYTHON", None)
    _run("sh", "pack.sh", folder, environment)
    said = _run("sh", "submit.sh", folder, environment)
    assert "counted 900" in said
    place = next(line for line in said.splitlines() if line.startswith("executors run in "))
    assert Path(place.removeprefix("executors run in ")).is_relative_to(tmp_path / "spark/work"), "not in the archive"
    monkeypatch.chdir(folder)
    with icefield.load_catalog("lake") as catalog:
        counts = catalog.load_table("db.counts").scan().to_arrow().to_pylist()
        assert sorted((row["kind"], row["count"]) for row in counts) == [("k0", 300), ("k1", 300), ("k2", 300)]
        assert catalog.load_table("db.events").scan().count() == 1000


def _run(shell: str, script: str, folder: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [shell, script], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=600
    )
    assert ran.returncode == 0, f"{script}: {ran.stdout[-2_000:]} {ran.stderr[-4_000:]}"
    return ran.stdout
