"""SQLMesh on DuckDB, with the catalog that `icefield serve` serves as the catalog `lake`."""

import os
from typing import ClassVar

from sqlmesh.core.config import Config, DuckDBConnectionConfig, GatewayConfig, ModelDefaultsConfig
from sqlmesh.core.config.common import VirtualEnvironmentMode
from sqlmesh.core.config.connection import DuckDBAttachOptions
from sqlmesh.core.engine_adapter import DuckDBEngineAdapter

SERVER = os.environ.get("ICEFIELD_ENDPOINT", "http://127.0.0.1:8181")
OPTIONS = f"TYPE iceberg, ENDPOINT '{SERVER}', AUTHORIZATION_TYPE none, PURGE_REQUESTED true, DEFAULT_SCHEMA 'shop'"


class AttachLake(DuckDBAttachOptions):
    """The options of ATTACH for which SQLMesh has no fields; without DEFAULT_SCHEMA, DuckDB refuses USE "lake"."""

    def to_sql(self, alias: str) -> str:
        return f"ATTACH IF NOT EXISTS '{self.path}' AS {alias} ({OPTIONS})"


class LakeAdapter(DuckDBEngineAdapter):
    """Sends no CREATE OR REPLACE TABLE and no DROP TABLE … CASCADE, which DuckDB 1.5 refuses for Iceberg."""

    SUPPORTS_REPLACE_TABLE = False
    SUPPORTED_DROP_CASCADE_OBJECT_KINDS: ClassVar = ["SCHEMA"]


class LakeConnection(DuckDBConnectionConfig):
    """A connection with that adapter."""

    @property
    def _engine_adapter(self) -> type[LakeAdapter]:
        return LakeAdapter


connection = LakeConnection(
    catalogs={
        "lake": AttachLake(type="iceberg", path="lake"),  # the name of the catalog that `icefield serve` serves
        "views": "views.db",  # DuckDB 1.5 keeps no views in the catalog
    },
    extensions=["iceberg"],
    register_comments=False,  # DuckDB 1.5 sets no comments
)
state = DuckDBConnectionConfig(database="state.db")
config = Config(
    gateways={"lake": GatewayConfig(connection=connection, state_connection=state)},
    model_defaults=ModelDefaultsConfig(dialect="duckdb", start="2026-01-01"),
    virtual_environment_mode=VirtualEnvironmentMode.DEV_ONLY,  # production has tables, and no views of them
    environment_catalog_mapping={"^prod$": "lake", ".*": "views"},
)
