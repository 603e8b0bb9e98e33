"""Azure Key Vault, with the properties of Iceberg's Java client."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from icefield.abc import MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, InvalidArgument, KeyUnavailable

from icefield_encryption.remote_key_service import RemoteKeyService, checked_length, sdk_of

with sdk_of("azure"):
    from azure.core.credentials import AccessToken
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
    from azure.identity import ClientSecretCredential, DefaultAzureCredential
    from azure.keyvault.keys import KeyClient
    from azure.keyvault.keys.crypto import KeyWrapAlgorithm

URL: Final = "azure.keyvault.url"
ALGORITHM: Final = "azure.keyvault.key-wrap-algorithm"

_NAME: Final = re.compile(r"[0-9A-Za-z-]{1,127}", re.ASCII)
_TOKEN_SECONDS: Final = 3600
_BAD_REQUEST, _DENIED, _TOO_MANY, _SERVER_ERROR = 400, (401, 403), 429, 500


class AzureKeyVault(RemoteKeyService):
    """The key service ``azure``. The id of a master key is its name in the vault.

    Properties: ``azure.keyvault.url``, ``azure.keyvault.key-wrap-algorithm`` (``RSA-OAEP-256``), and the credentials:
    ``adls.tenant-id``, ``adls.client-id`` and ``adls.client-secret``, or ``adls.token``, a bearer token. Without them,
    the SDK's default chain supplies credentials. They need the permissions ``get``, ``list``, ``wrapKey`` and
    ``unwrapKey`` on keys.
    """

    packages = ("azure", "msal", "requests", "urllib3")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key with the latest version."""
        algorithm, name = self._algorithm, _checked(key_id)

        def request(vault: Any) -> bytes:
            found = vault.get_key(name)
            if found.properties.enabled is False:  # the SDK wraps by itself, and would not look at that
                raise AccessDenied(f"the master key '{key_id}' of Azure Key Vault is disabled")
            client = vault.get_cryptography_client(name, key_version=found.properties.version)
            return bytes(client.wrap_key(algorithm, key).encrypted_key)

        return bytes(self.ask(key_id, request, key))

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a key with the latest version, or else with those before it: a wrapped key does not name its own."""
        name = _checked(key_id)
        try:
            return self._unwrapped(wrapped, name, None)
        except DecryptionFailed:
            for version in self._versions(name)[1:]:
                try:
                    return self._unwrapped(wrapped, name, version)
                except DecryptionFailed:
                    continue
            raise

    def master_key(self, key_id: str) -> MasterKey:
        """The name, and the id of the latest version."""
        name = _checked(key_id)
        found = self.ask(key_id, lambda vault: vault.get_key(name))
        return MasterKey(key_id, found.properties.version)

    def _unwrapped(self, wrapped: bytes, name: str, version: str | None) -> bytes:
        def request(vault: Any) -> Any:
            client = vault.get_cryptography_client(name, key_version=version)
            return client.unwrap_key(self._algorithm, wrapped).key

        return checked_length(self.ask(name, request), "Azure Key Vault")

    def _versions(self, name: str) -> list[str]:
        """The enabled versions of a key, the latest first."""
        listed = self.ask(name, lambda vault: list(vault.list_properties_of_key_versions(name)))
        usable = [each for each in listed if each.enabled and each.version and each.created_on]
        return [each.version for each in sorted(usable, key=lambda each: each.created_on, reverse=True)]

    @property
    def _algorithm(self) -> KeyWrapAlgorithm:
        name = self.properties.get(ALGORITHM, "RSA-OAEP-256").replace("_", "-").upper()
        try:
            return KeyWrapAlgorithm(name)
        except ValueError:
            known = ", ".join(each.value for each in KeyWrapAlgorithm)
            raise InvalidArgument(f"{ALGORITHM} is one of {known}, not '{name}'") from None

    def connect(self) -> Any:
        """Make a client of the vault."""
        url = self.required(URL, "https://<vault>.vault.azure.net")
        return KeyClient(
            url,
            self._credential(),
            retry_total=0,
            connection_timeout=self.connect_seconds,
            read_timeout=self.seconds,
        )

    def _credential(self) -> Any:
        get = self.properties.get
        if token := get("adls.token"):
            return _VaultToken(token)
        tenant, client, secret = get("adls.tenant-id"), get("adls.client-id"), get("adls.client-secret")
        if client and secret:
            if not tenant:
                raise InvalidArgument("adls.client-id and adls.client-secret need adls.tenant-id")
            return ClientSecretCredential(tenant, client, secret)
        return DefaultAzureCredential(**({"managed_identity_client_id": client} if client else {}))

    def meaning(self, error: Exception, key_id: str) -> IcefieldError:
        """The meaning of an error by its class and status."""
        if isinstance(error, ResourceNotFoundError):
            return KeyUnavailable(f"Azure Key Vault has no master key '{key_id}'", key_id=key_id)
        status = getattr(error, "status_code", None) if isinstance(error, HttpResponseError) else None
        about = getattr(error, "error", None)
        said = ": ".join(str(each) for each in (getattr(about, "code", None), getattr(about, "message", None)) if each)
        words = f"Azure Key Vault refuses a request for the master key '{key_id}': {said or status}"
        if isinstance(error, ClientAuthenticationError) or status in _DENIED:
            return AccessDenied(f"{words}; look at the state of the key, its permissions, and the credentials")
        if isinstance(error, ValueError):  # the SDK looks at the dates of a key, and at the host that wants a token
            return AccessDenied(f"the master key '{key_id}' of Azure Key Vault cannot be used: {error}")
        if status is None or status == _TOO_MANY or status >= _SERVER_ERROR:
            return self.down(said or str(status or type(error).__name__))
        if status == _BAD_REQUEST:
            return DecryptionFailed(f"the master key '{key_id}' of Azure Key Vault does not open a key: {said}")
        return InvalidArgument(words)


class _VaultToken:
    """A credential of the SDK with a token that the catalog's properties hold."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + _TOKEN_SECONDS)


def _checked(key_id: str) -> str:
    """The id is a part of an address, and may come from a table: it names a key of this vault and nothing else."""
    if not _NAME.fullmatch(key_id):
        raise KeyUnavailable(
            f"'{key_id}' is no master key of Azure Key Vault: its name has letters, digits and '-'", key_id=key_id
        )
    return key_id
