"""Metrics of data files: their collection, the modes that limit them, and their form in manifests."""

from icefield.metadata.metrics.collector import Metrics, MetricsCollector
from icefield.metadata.metrics.modes import (
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    apply_modes,
    parse_mode,
    truncate_lower,
    truncate_upper,
)

__all__ = [
    "Metrics",
    "MetricsCollector",
    "MetricsConfig",
    "MetricsKind",
    "MetricsMode",
    "apply_modes",
    "parse_mode",
    "truncate_lower",
    "truncate_upper",
]
