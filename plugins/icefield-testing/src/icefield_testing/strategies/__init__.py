"""The checks of a commit strategy, with one group per module."""

from icefield_testing.strategies.faults import FaultChecks
from icefield_testing.strategies.racing import RacingChecks
from icefield_testing.strategies.single import SingleWriterChecks

__all__ = ["FaultChecks", "RacingChecks", "SingleWriterChecks"]
