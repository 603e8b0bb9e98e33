"""The checks of a file system, one group a module."""

from icefield.testing.file_systems.atomic import AtomicChecks
from icefield.testing.file_systems.failures import FailureChecks
from icefield.testing.file_systems.input_files import InputFileChecks
from icefield.testing.file_systems.listing import ListingChecks
from icefield.testing.file_systems.places import PlaceChecks
from icefield.testing.file_systems.reading import ReadingChecks
from icefield.testing.file_systems.streams import StreamChecks
from icefield.testing.file_systems.values import ValueChecks

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
