"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_hive.properties import PROPERTIES


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``hive``."""
    return [Provider("hive", "icefield_hive.backend:HiveBackend", contract=(2, 2), uri_schemes="thrift")]


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``engine.hive.*``."""
    return PROPERTIES
