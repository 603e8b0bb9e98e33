"""Microsoft Entra: the credentials of the machine, of the command line, or of an application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.identity import ClientSecretCredential, DefaultAzureCredential
from icefield.errors import AccessDenied, InvalidArgument

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned

_SCOPE: Final = "https://storage.azure.com/.default"
_NAMES: Final = tuple(f"rest.auth.entra.{part}" for part in ("tenant-id", "client-id", "client-secret"))


class Entra(Authenticator):
    """A bearer token of Microsoft Entra; its library caches it and renews it before it expires.

    ``rest.auth.entra.tenant-id``, ``.client-id`` and ``.client-secret`` name an application; without them the default
    credentials apply. ``rest.auth.entra.scope`` is the scope of the token.
    """

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        given = [properties.get(key, "") for key in _NAMES]
        if any(given) and not all(given):
            raise InvalidArgument(f"{', '.join(_NAMES)} belong together: one of them is not set")
        self._scope = properties.get("rest.auth.entra.scope", _SCOPE)
        self._of = f"the application '{given[1]}'" if all(given) else "the default credentials"
        tenant, client, secret = given
        self._credential: Any = ClientSecretCredential(tenant, client, secret) if secret else DefaultAzureCredential()

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        try:
            return {"Authorization": f"Bearer {self._credential.get_token(self._scope).token}"}
        except AzureError as error:
            raise AccessDenied(f"no token of Microsoft Entra can be had: {type(error).__name__}") from error

    def says(self) -> str | None:
        return f"Microsoft Entra's, by {self._of}"
