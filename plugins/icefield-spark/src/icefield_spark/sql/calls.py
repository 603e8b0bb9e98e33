"""Names of Iceberg's own functions in a statement: ``system.bucket(16, id)``."""

from __future__ import annotations

from typing import Final

SYSTEM: Final = "system"
UNITS: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
"""The functions of a time, and the transforms that they are."""

VERSION: Final = "iceberg_version"
FUNCTIONS: Final = frozenset({"bucket", "truncate", VERSION, *UNITS})
