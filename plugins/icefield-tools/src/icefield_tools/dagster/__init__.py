"""The IO manager of Dagster: assets as Iceberg tables."""

from icefield_tools.dagster.io_manager import IcefieldIOManager

__all__ = ["IcefieldIOManager"]
