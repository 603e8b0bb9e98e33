"""One Spark session for all tests that are marked ``spark``, and a catalog for each test."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import java_classes
import pyarrow as pa
import pytest

ZONE = "America/Los_Angeles"
"""Far from UTC, and with a summer time, so that a wall clock taken for an instant shows."""

SECRET = "PLANTED-SECRET-7351"


def _to_arrow(frame: Any) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches, None if batches else to_arrow_schema(frame.schema))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from icefield_spark import ensure_java
    from pyspark.sql import DataFrame, SparkSession

    java = ensure_java()
    if not hasattr(DataFrame, "toArrow"):  # Spark 3.5
        DataFrame.toArrow = _to_arrow
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2,2]")  # a task that fails is tried once more
        .appName("icefield tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", ZONE)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark-warehouse")))
        .config("spark.log.level", "OFF")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")  # eight calls of the JVM fewer a function
    )
    with java_classes.used_or_made(java_classes.of_pyspark(), java) as classes:
        session = builder.config("spark.driver.extraJavaOptions", f"{java_classes.QUICK} {classes}").getOrCreate()
        yield session
        java_classes.ended(session)


@pytest.fixture(scope="module")
def canary(spark: Any) -> Any:
    """Whether a property of the JVM was set; it is removed again."""
    system = spark._jvm.java.lang.System

    def found() -> bool:
        value = system.getProperty("icefield.canary")
        system.clearProperty("icefield.canary")
        return value is not None

    return found


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    """The properties of the test's catalog; one of them is a secret."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
        "file.sync": "false",
        "s3.secret-access-key": SECRET,
    }


@pytest.fixture
def catalog(properties: dict[str, str]) -> Iterator[icefield.Catalog]:
    with icefield.load_catalog("test", **properties) as catalog:
        catalog.create_namespace("db")
        yield catalog


@pytest.fixture
def ice(spark: Any, catalog: icefield.Catalog) -> Any:
    """The session on the test's catalog."""
    from icefield_spark import attach

    return attach(spark, catalog)


@pytest.fixture
def by_names(spark: Any, catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The session on the test's catalog, as it is where Spark cannot be given the catalog: see ``by_names.py``."""
    from icefield.errors import UnsupportedFeature
    from icefield_spark import attach
    from icefield_spark.sql import analyzed

    def refused(*_: Any) -> Any:
        raise UnsupportedFeature("no jar may be added")

    monkeypatch.setattr(analyzed, "offered", refused)
    return attach(spark, catalog)


@pytest.fixture
def prod(spark: Any, catalog: icefield.Catalog) -> Iterator[Any]:
    """The session, in which the test's catalog is ``prod``."""
    from icefield_spark import attach

    attach(spark, catalog, name="prod")
    yield spark
    spark.sql("USE spark_catalog.default")


@pytest.fixture
def options(properties: dict[str, str]) -> dict[str, str]:
    """The options by which the data source finds the test's catalog."""
    return {"catalog": "test", **{f"catalog.{key}": value for key, value in properties.items()}}


@pytest.fixture
def data_files(tmp_path: Path) -> Callable[[], set[str]]:
    """The data files that are in the warehouse, whether a table knows them or not."""

    def found() -> set[str]:
        return {f"file://{path}" for path in (tmp_path / "warehouse").rglob("*.parquet")}

    return found


@pytest.fixture
def half_failing(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A frame of two partitions: the second fails as soon as the driver has heard that the first is through."""
    flag, over = tmp_path / "first-is-through", threading.Event()
    path, tracker = str(flag), spark.sparkContext.statusTracker()

    def watch() -> None:
        while not over.wait(0.1):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage is not None and stage.numCompletedTasks for stage in stages):
                flag.touch()

    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() >= 10:
                deadline = time.monotonic() + 120
                while not os.path.exists(path) and time.monotonic() < deadline:
                    time.sleep(0.05)
                raise RuntimeError("planted")
            yield batch

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield spark.range(9, 11, 1, 2).mapInArrow(fails, "id long")
    over.set()
    watcher.join()
    assert flag.exists(), "the first partition never came through, so nothing was shown"


@pytest.fixture
def people(catalog: icefield.Catalog) -> icefield.Table:
    """Three rows, with a required column, a nested one and nulls."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("name", pa.string()),
            ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ]
    )
    table = catalog.create_table("db.people", schema)
    homes = [{"city": "Oslo", "zip": 150}, None, {"city": None, "zip": 7}]
    table.append(pa.table({"id": [1, 2, 3], "name": ["ann", "bob", None], "home": homes}, schema=schema))
    return table


@pytest.fixture
def committed(catalog: icefield.Catalog) -> Callable[[str], set[str]]:
    """The data files of a table's current version."""

    def found(identifier: str) -> set[str]:
        return set(catalog.load_table(identifier).inspect.data_files()["file_path"].to_pylist())

    return found
