"""Metrics of data files: their collection, the modes that limit them, and their form in manifests."""

from icefield.metadata.metrics.collector import Metrics as Metrics
from icefield.metadata.metrics.collector import MetricsCollector as MetricsCollector
from icefield.metadata.metrics.modes import MetricsConfig as MetricsConfig
from icefield.metadata.metrics.modes import apply_modes as apply_modes
from icefield.metadata.metrics.modes import parse_mode as parse_mode
from icefield.metadata.metrics.modes import truncate_lower as truncate_lower
from icefield.metadata.metrics.modes import truncate_upper as truncate_upper
