"""The checks of a file system, with one group per module."""

from icefield_testing.file_systems.atomic import AtomicChecks
from icefield_testing.file_systems.failures import FailureChecks
from icefield_testing.file_systems.input_files import InputFileChecks
from icefield_testing.file_systems.listing import ListingChecks
from icefield_testing.file_systems.places import PlaceChecks
from icefield_testing.file_systems.reading import ReadingChecks
from icefield_testing.file_systems.streams import StreamChecks
from icefield_testing.file_systems.values import ValueChecks

__all__ = [
    "AtomicChecks",
    "FailureChecks",
    "InputFileChecks",
    "ListingChecks",
    "PlaceChecks",
    "ReadingChecks",
    "StreamChecks",
    "ValueChecks",
]
