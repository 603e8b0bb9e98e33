"""Catalogs by name: all jobs and steps of a process share one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from icefield import Catalog, load_catalog


def catalog_of(name: str | None, properties: Mapping[str, Any] | None) -> Catalog:
    """The catalog with a name, by default the default catalog, and with these properties besides its configuration."""
    return _loaded(name, tuple(sorted((properties or {}).items())))


@lru_cache(maxsize=64)
def _loaded(name: str | None, properties: tuple[tuple[str, Any], ...]) -> Catalog:
    return load_catalog(name, **dict(properties))
