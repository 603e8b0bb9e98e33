"""The destination ``icefield`` of dlt: ``dlt.pipeline(destination=icefield("lake"))``."""

from icefield_tools.dlt.adapter import icefield_adapter
from icefield_tools.dlt.factory import icefield

__all__ = ["icefield", "icefield_adapter"]
