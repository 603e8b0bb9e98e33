"""The checks of a commit strategy, one group a module."""

from icefield_testing.strategies.faults import FaultChecks
from icefield_testing.strategies.racing import RacingChecks
from icefield_testing.strategies.single import SingleWriterChecks

__all__ = ["FaultChecks", "RacingChecks", "SingleWriterChecks"]
