"""The checks of a commit strategy, one group a module."""

from icefield.testing.strategies.faults import FaultChecks
from icefield.testing.strategies.racing import RacingChecks
from icefield.testing.strategies.single import SingleWriterChecks

__all__ = ["FaultChecks", "RacingChecks", "SingleWriterChecks"]
