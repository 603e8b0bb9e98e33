"""Metrics of data files: what is gathered, what of it is kept, and its form in manifests.

Handed on from ``metrics_collector`` and ``metrics_modes``.
"""

from icefield.metrics_collector import Metrics, MetricsCollector
from icefield.metrics_modes import (
    EncodedMetrics,
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    apply_modes,
    parse_mode,
    truncate_lower,
    truncate_upper,
)

__all__ = [
    "EncodedMetrics",
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
