"""Iceberg tables in PySpark, with no JVM jar."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_spark.java import ensure_java
    from icefield_spark.session import IcefieldSession, attach, install

# Names are handed on lazily: the Python workers of Spark need readers and writers, and neither the session nor its SQL.
_PUBLIC = {
    "IcefieldSession": "icefield_spark.session",
    "attach": "icefield_spark.session",
    "ensure_java": "icefield_spark.java",
    "install": "icefield_spark.session",
}

__all__ = ["IcefieldSession", "attach", "ensure_java", "install"]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield_spark' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
