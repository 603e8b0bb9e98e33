"""The checks of a key service, by subject."""

from icefield_testing.key_services.ids import KeyIdChecks
from icefield_testing.key_services.outages import KeyOutageChecks
from icefield_testing.key_services.processes import KeySharingChecks
from icefield_testing.key_services.secrets import KeySecretChecks
from icefield_testing.key_services.wrapping import KeyWrapChecks

__all__ = ["KeyIdChecks", "KeyOutageChecks", "KeySecretChecks", "KeySharingChecks", "KeyWrapChecks"]
