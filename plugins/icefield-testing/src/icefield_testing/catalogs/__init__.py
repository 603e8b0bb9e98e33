"""The checks of a catalog, by their subject."""

from icefield_testing.catalogs.names import NameChecks
from icefield_testing.catalogs.places import PlaceChecks
from icefield_testing.catalogs.racing import RaceChecks
from icefield_testing.catalogs.secrets import SecretChecks

__all__ = ["NameChecks", "PlaceChecks", "RaceChecks", "SecretChecks"]
