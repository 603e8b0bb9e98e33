"""The checks of a commit strategy, with one group per module."""

from icefield_testing.strategies.drops import DropChecks
from icefield_testing.strategies.faults import FaultChecks
from icefield_testing.strategies.lost_replies import LostReplyChecks
from icefield_testing.strategies.racing import RacingChecks
from icefield_testing.strategies.sharing import SharingChecks
from icefield_testing.strategies.showing import ShowingChecks
from icefield_testing.strategies.silence import SilentServiceChecks
from icefield_testing.strategies.single import SingleWriterChecks

__all__ = [
    "DropChecks",
    "FaultChecks",
    "LostReplyChecks",
    "RacingChecks",
    "SharingChecks",
    "ShowingChecks",
    "SilentServiceChecks",
    "SingleWriterChecks",
]
