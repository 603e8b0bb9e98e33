"""Classes of Spark 4.2 and later for bounded batches, and substitutes for earlier versions."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

HAS_ADMISSION: Final = find_spec("pyspark.sql.streaming.datasource") is not None
"""Whether Spark states where a batch begins, and bounds how far it goes."""

_found: Any = import_module("pyspark.sql.streaming.datasource") if HAS_ADMISSION else None
AVAILABLE_NOW: Final[tuple[type, ...]] = (_found.SupportsTriggerAvailableNow,) if HAS_ADMISSION else ()
ReadAllAvailable: Any = getattr(_found, "ReadAllAvailable", None)
ReadMaxFiles: Any = getattr(_found, "ReadMaxFiles", None)
ReadMaxRows: Any = getattr(_found, "ReadMaxRows", None)
