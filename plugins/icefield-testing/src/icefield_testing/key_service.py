"""The suite that a key service must pass.

An author subclasses it, and gives the service and the ids of two master keys::

    class TestMyKeyService(KeyServiceSuite):
        key_ids = ("orders", "others")

        @pytest.fixture
        def key_service(self):
            return MyKeyService({"my.endpoint": "http://127.0.0.1:8200"})

The fixture ``service_port`` and the method ``key_service_at`` let the suite lose requests, repeat them in errors, and
look where hostile ids lead.
"""

from __future__ import annotations

from icefield.abc import KeyService

from icefield_testing.contract_numbers import check_contract_number
from icefield_testing.key_services import (
    KeyIdChecks,
    KeyOutageChecks,
    KeySecretChecks,
    KeySharingChecks,
    KeyWrapChecks,
)


class KeyServiceSuite(KeyWrapChecks, KeyIdChecks, KeyOutageChecks, KeySecretChecks, KeySharingChecks):
    """Checks of ``icefield.abc.KeyService``."""

    def test_the_plugin_states_its_contract_number(self, key_service: KeyService) -> None:
        """If this fails, the ``Provider`` of the plugin states no ``contract``: any kernel loads it, fit or not."""
        check_contract_number(self.plugins(), "key-services", type(key_service))
