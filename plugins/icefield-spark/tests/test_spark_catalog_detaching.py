"""Detaching a catalog, attaching it again, and stopping Spark: nothing is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument
from icefield_spark import attach, install
from icefield_spark.catalog.compiling import HOLDER, compiled_class

JOB = Path(__file__).with_name("restart_job.py")
_SETTING = "spark.sql.catalog.leaving"


def attached(spark: Any) -> int:
    """How many attachments Java holds."""
    return int(compiled_class(spark, HOLDER).getField("CATALOGS").get(None).size())


@pytest.mark.spark
@pytest.mark.slow
def test_a_detached_catalog_is_forgotten_by_all_sessions_until_it_is_attached_again(
    spark: Any, catalog: icefield.Catalog
) -> None:
    ice = attach(spark, catalog, name="leaving")
    spark.sql("CREATE TABLE leaving.db.t AS SELECT 1 AS id")
    other = spark.newSession()
    assert other.table("leaving.db.t").count() == 1
    spark.sql("USE leaving.db")
    before = attached(spark)
    ice.detach()
    assert attached(spark) == before - 1
    assert spark.catalog.currentCatalog() == "spark_catalog"
    assert spark.conf.get(_SETTING, None) is None
    assert spark.newSession().conf.get(f"{_SETTING}.key", None) is None
    for session in (spark, other):
        for statement in ("SELECT * FROM leaving.db.t", "SHOW TABLES IN leaving.db", "DROP TABLE leaving.db.t"):
            with pytest.raises(Exception, match="the catalog leaving was detached from the session: attach it again"):
                session.sql(statement)
    assert ice.table("db.t").count() == 1, "the object itself goes on"
    ice.detach()
    again = attach(spark, catalog, name="leaving")
    assert spark.table("leaving.db.t").count() == spark.newSession().table("leaving.db.t").count() == 1
    again.detach()


@pytest.mark.spark
@pytest.mark.slow
def test_attaching_again_lets_go_of_the_earlier_catalog(spark: Any, catalog: icefield.Catalog) -> None:
    first = attach(spark, catalog, name="leaving")
    before = attached(spark)
    for _ in range(5):
        last = attach(spark, catalog, name="leaving")
    assert attached(spark) == before
    assert spark.sql("SHOW TABLES IN leaving.db").count() == 0
    last.detach()
    first.detach()
    assert attached(spark) == before - 1


@pytest.mark.spark
@pytest.mark.slow
def test_a_catalog_of_the_settings_is_installed_again(spark: Any, tmp_path: Path) -> None:
    settings = {_SETTING: "icefield", f"{_SETTING}.type": "hadoop", f"{_SETTING}.warehouse": f"file://{tmp_path}"}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        for _ in range(2):
            ice = install(spark)["leaving"]
            spark.sql("CREATE NAMESPACE IF NOT EXISTS leaving.db")
            ice.detach()
    finally:
        for name in settings:
            spark.conf.unset(name)
    with pytest.raises(InvalidArgument, match="there is no catalog to attach"):
        install(spark)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_that_is_stopped_and_started_again_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": f"{tmp_path}/tmp"}
    done = subprocess.run(
        [sys.executable, JOB, tmp_path], capture_output=True, encoding="utf-8", timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rounds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(rounds) == 3
    assert all(each == {"threads": rounds[0]["threads"], "held": [], "folders": 1} for each in rounds), rounds
    assert not list((tmp_path / "tmp").glob("icefield-*"))
