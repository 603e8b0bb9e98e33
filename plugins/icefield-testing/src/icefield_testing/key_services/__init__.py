"""The checks of a key service, by subject."""

from icefield_testing.key_services.ids import IdChecks
from icefield_testing.key_services.outages import OutageChecks
from icefield_testing.key_services.processes import ProcessChecks
from icefield_testing.key_services.secrets import KeySecretChecks
from icefield_testing.key_services.wrapping import WrappingChecks

__all__ = ["IdChecks", "KeySecretChecks", "OutageChecks", "ProcessChecks", "WrappingChecks"]
