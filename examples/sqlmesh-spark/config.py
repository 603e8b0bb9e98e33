"""SQLMesh in a session of Spark that has a catalog of Icefield as `lake`."""

import os
import sys

from icefield_spark import attach, ensure_java
from pyspark.sql import SparkSession
from sqlmesh.core.config import (
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    ModelDefaultsConfig,
    SparkConnectionConfig,
)

ensure_java()
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[2]").getOrCreate()  # SQLMesh takes the session that is there
attach(spark, "lake", name="lake")  # the catalog `lake` of icefield.toml

connection = SparkConnectionConfig(catalog="lake", concurrent_tasks=1)
state = DuckDBConnectionConfig(database="state.db")
config = Config(
    gateways={"lake": GatewayConfig(connection=connection, state_connection=state)},
    model_defaults=ModelDefaultsConfig(dialect="spark", start="2026-01-01", table_format="iceberg"),
)
