"""The checks of a file system, with one group per module."""

from icefield_testing.file_systems.atomic import AtomicChecks
from icefield_testing.file_systems.failures import FailureChecks
from icefield_testing.file_systems.forks import ForkChecks
from icefield_testing.file_systems.input_files import InputFileChecks
from icefield_testing.file_systems.leftovers import LeftoverChecks
from icefield_testing.file_systems.listing import ListingChecks
from icefield_testing.file_systems.local_files import LocalFileChecks
from icefield_testing.file_systems.outages import OutageChecks
from icefield_testing.file_systems.places import PlaceChecks
from icefield_testing.file_systems.reading import ReadingChecks
from icefield_testing.file_systems.rivals import RivalChecks
from icefield_testing.file_systems.silence import SilentStoreChecks
from icefield_testing.file_systems.spellings import SpellingChecks
from icefield_testing.file_systems.streams import StreamChecks
from icefield_testing.file_systems.values import ValueChecks

__all__ = [
    "AtomicChecks",
    "FailureChecks",
    "ForkChecks",
    "InputFileChecks",
    "LeftoverChecks",
    "ListingChecks",
    "LocalFileChecks",
    "OutageChecks",
    "PlaceChecks",
    "ReadingChecks",
    "RivalChecks",
    "SilentStoreChecks",
    "SpellingChecks",
    "StreamChecks",
    "ValueChecks",
]
