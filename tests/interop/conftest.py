"""Fixtures that the tests with peers share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import open_catalog
from engines import ClickHouseEngine, DuckDBEngine
from icefield.catalog import Catalog
from servers.spark_runtime import SparkRuntime
from shared_with_spark import Shared


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog in SQLite below ``tmp_path``, with the namespace ``db``."""
    with open_catalog("sql", tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture(scope="session")
def duck() -> Iterator[DuckDBEngine]:
    """DuckDB, which reads Iceberg tables; skips where the peer is not installed."""
    pytest.importorskip("duckdb_extension_httpfs")
    with DuckDBEngine() as engine:
        yield engine


@pytest.fixture(scope="session")
def click() -> Iterator[ClickHouseEngine]:
    """ClickHouse; skips where the peer is not installed."""
    pytest.importorskip("chdb")
    with ClickHouseEngine() as engine:
        yield engine


@pytest.fixture
def shared(spark_runtime: SparkRuntime, tmp_path: Path) -> Iterator[Shared]:
    """A table ``db.t`` that is not created yet, for Icefield and Spark."""
    with open_catalog("rename", tmp_path) as opened:
        opened.create_namespace("db")
        yield Shared(opened, spark_runtime, f"{spark_runtime.catalog(tmp_path / 'warehouse')}.db.t")
