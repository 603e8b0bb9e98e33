"""A job that was written for Iceberg's Java runtime prints the same with Icefield: only its settings differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import java_classes
import pytest
from icefield_spark import ensure_java
from java_programs import java_17, maven_jars
from servers.spark_runtime import DRIVER, RUNTIME, spark_environment

pytestmark = [pytest.mark.peer, pytest.mark.slow]

JOB = Path(__file__).with_name("java_job.py")
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
ICEFIELD = {"spark.sql.catalog.prod": "icefield"}
JAVA = {
    "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


def test_a_medallion_job_of_the_java_runtime_prints_the_same_with_only_its_settings_changed(tmp_path: Path) -> None:
    expected, found = by_java(tmp_path / "java"), by_icefield(tmp_path / "icefield")
    assert len(expected) > 70
    assert found == expected


def by_icefield(folder: Path) -> list[dict[str, object]]:
    ensure_java()
    return ran(Path(sys.executable), folder, ICEFIELD, {})


def by_java(folder: Path) -> list[dict[str, object]]:
    java, environment = Path(java_17()[0]), spark_environment()
    jars = [str(jar) for named in (RUNTIME, DRIVER) for jar in jars_of(named)]
    settings = {**JAVA, "spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    home = {"JAVA_HOME": str(java.resolve().parent.parent)}
    return ran(environment / "bin" / "python", folder, settings, home)


def jars_of(artifact: str) -> Sequence[Path]:
    return sorted(maven_jars(artifact.split(":", 1)[1].replace(":", "-"), [artifact]).glob("*.jar"))


def ran(python: Path, folder: Path, settings: dict[str, str], home: dict[str, str]) -> list[dict[str, object]]:
    """What each step of the job prints."""
    folder.mkdir()
    catalog = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": f"file://{folder}/warehouse",
    }
    given = {**SETTINGS, **settings, **{f"spark.sql.catalog.prod.{name}": each for name, each in catalog.items()}}
    given["spark.driver.extraJavaOptions"] = java_classes.QUICK
    (folder / "settings.json").write_text(json.dumps(given), "utf-8")
    kept = {name: each for name, each in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK_", "SPARK_"))}
    environment = {**kept, **home, "PYSPARK_PYTHON": str(python), "TZ": "UTC"}
    command = [str(python), str(JOB), str(folder / "settings.json"), str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", timeout=500)
    assert done.returncode == 0, done.stderr[-4_000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
