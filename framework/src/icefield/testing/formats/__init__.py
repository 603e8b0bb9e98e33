"""The checks of a file format, one group a module."""

from icefield.testing.formats.damage import DamageChecks
from icefield.testing.formats.evolution import EvolutionChecks
from icefield.testing.formats.large import LargeFileChecks
from icefield.testing.formats.manifests import ManifestChecks
from icefield.testing.formats.metrics import MetricsChecks
from icefield.testing.formats.positions import PositionChecks
from icefield.testing.formats.reading import ReadingChecks
from icefield.testing.formats.types import TypeChecks
from icefield.testing.formats.writing import WritingChecks

__all__ = [
    "DamageChecks",
    "EvolutionChecks",
    "LargeFileChecks",
    "ManifestChecks",
    "MetricsChecks",
    "PositionChecks",
    "ReadingChecks",
    "TypeChecks",
    "WritingChecks",
]
