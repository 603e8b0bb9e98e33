"""The checks of a file format, with one group per module."""

from icefield_testing.formats.damage import DamageChecks
from icefield_testing.formats.evolution import EvolutionChecks
from icefield_testing.formats.large import LargeFileChecks
from icefield_testing.formats.manifests import ManifestChecks
from icefield_testing.formats.metrics import MetricsChecks
from icefield_testing.formats.positions import PositionChecks
from icefield_testing.formats.reading import ReadingChecks
from icefield_testing.formats.sources import SourceChecks
from icefield_testing.formats.types import TypeChecks
from icefield_testing.formats.writing import WritingChecks

__all__ = [
    "DamageChecks",
    "EvolutionChecks",
    "LargeFileChecks",
    "ManifestChecks",
    "MetricsChecks",
    "PositionChecks",
    "ReadingChecks",
    "SourceChecks",
    "TypeChecks",
    "WritingChecks",
]
