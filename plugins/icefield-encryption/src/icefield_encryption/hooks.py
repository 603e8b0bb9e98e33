"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl


@hookimpl
def icefield_encryptions() -> Sequence[Provider]:
    """Provide the encryption ``standard``."""
    return [Provider("standard", "icefield_encryption.standard:StandardEncryption", contract=(1, 1))]


@hookimpl
def icefield_key_services() -> Sequence[Provider]:
    """Provide the key service ``local``."""
    return [Provider("local", "icefield_encryption.local_keystore:LocalKeystore", contract=(1, 1))]
