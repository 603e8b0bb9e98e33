"""Metrics of data files: their collection, the modes that limit them, and their form in manifests."""

from icefield.base.lazy_names import public_names
from icefield.metadata.metrics.collector import Metrics as Metrics
from icefield.metadata.metrics.collector import MetricsCollector as MetricsCollector
from icefield.metadata.metrics.modes import MetricsConfig as MetricsConfig
from icefield.metadata.metrics.modes import MetricsKind as MetricsKind
from icefield.metadata.metrics.modes import MetricsMode as MetricsMode
from icefield.metadata.metrics.modes import apply_modes as apply_modes
from icefield.metadata.metrics.modes import parse_mode as parse_mode
from icefield.metadata.metrics.modes import truncate_lower as truncate_lower
from icefield.metadata.metrics.modes import truncate_upper as truncate_upper

__all__ = public_names(__name__)
