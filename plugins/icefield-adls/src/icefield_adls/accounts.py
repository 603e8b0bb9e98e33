"""The account of a location: its name, its address, and the credentials for its requests.

The host of a location comes from a table, and a table is not trusted. Credentials go only to the hosts that the
configuration names. The key and the shared access signature of an account go to that account only. Without
credentials, requests go only to Azure's own hosts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.identity.aio import ClientSecretCredential, DefaultAzureCredential
from icefield.errors import InvalidArgument, LocationRefused
from icefield.toolkit import authorities_named, credentials_refused, endpoint_of

from icefield_adls.hosts import blob_host, is_azure
from icefield_adls.locations import SCHEMES, place_of

_AUTHORITY: Final = ".blob.core.windows.net"
_OF_ONE_HOST: Final = ("sas-token", "connection-string")
_OF_ONE_ACCOUNT: Final = ("connection-string", "account-key", "sas-token", "credential")
_OF_A_TENANT: Final = ("token", "client-id", "client-secret", "tenant-id")
_IN_JAVA: Final = {"account-name": "auth.shared-key.account.name", "account-key": "auth.shared-key.account.key"}
_ENVIRONMENT: Final = {
    "connection-string": "AZURE_STORAGE_CONNECTION_STRING",
    "account-name": "AZURE_STORAGE_ACCOUNT_NAME",
    "account-key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas-token": "AZURE_STORAGE_SAS_TOKEN",
}
_HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class Account:
    """An account: its name, its address, and its credential, which ``repr`` does not show.

    ``source`` says in words where the credential comes from.
    """

    name: str
    url: str
    credential: Any = None
    connection_string: str | None = None
    source: str = ""

    def __repr__(self) -> str:
        return f"Account({self.name})"


class StaticToken:
    """A bearer token from the properties, which cannot be renewed."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return the token, for any scope."""
        return AccessToken(self._token, int(time.time()) + _HOUR)

    async def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> StaticToken:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def account_of(properties: Mapping[str, str], host: str | None, location: str = "") -> Account:
    """Return the account of a location's host; without a host, the account that the properties name.

    Raises ``InvalidArgument`` when no account is named. Raises ``LocationRefused`` for a host that the configuration
    does not name, unless access is anonymous and the host is Azure's, and for credentials of another account.
    """
    given = _AccountProperties(properties)
    host = host or given.only_host()
    name = host.partition(".")[0] if host else given.name()
    if name is None:
        raise InvalidArgument(
            "the location names no account: write abfss://container@account.dfs.core.windows.net/path, or set "
            "adls.account-name"
        )
    location = location or f"abfss://container@{host or name}"
    url = given.url(name, host, location)
    if host is not None and blob_host(host) not in given.hosts():
        if given.is_anonymous():
            return Account(name, url, source="anonymous, by adls.anon")
        named = f"adls.account-name, or adls.sas-token.{host}"
        raise credentials_refused(location, f"the account '{name}', at {host}", named)
    own = given.for_host(host or name)
    if "connection-string" in own:
        return _by_connection_string(own["connection-string"], name, "a connection string of its own")
    if "sas-token" in own:
        return Account(name, url, _signature(own["sas-token"]), source="a shared access signature of its own")
    return given.shared(name, url, location)


class _AccountProperties:
    """The properties ``adls.*``; where they hold no credential, the environment's."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._all = {name[5:]: value for name, value in properties.items() if name.startswith("adls.") and value}
        self._all |= {
            name: self._all[java] for name, java in _IN_JAVA.items() if java in self._all and name not in self._all
        }
        self._explicit = any(name in self._all for name in (*_OF_ONE_ACCOUNT, *_OF_A_TENANT, "anon"))

    def get(self, name: str) -> str | None:
        value = self._all.get(name)
        if value is None and name in _ENVIRONMENT and (name == "account-name" or not self._explicit):
            value = os.environ.get(_ENVIRONMENT[name])
        return value or None

    def origin(self, name: str) -> str:
        """The origin of a property, in words."""
        return f"adls.{name}" if name in self._all else f"{_ENVIRONMENT[name]} of the environment"

    def is_anonymous(self) -> bool:
        return (self.get("anon") or "").lower() == "true"

    def name(self) -> str | None:
        """Return the account that account-specific credentials belong to; None if the properties do not name it."""
        string = self.get("connection-string")
        return self.get("account-name") or (_parts(string).get("accountname") if string else None)

    def only_host(self) -> str | None:
        """Return the only host with a property of its own, unless a property names an account; None otherwise."""
        hosts = {self._full(key.split(".", 1)[1]) for key in self._all if key.startswith(_with_dots(_OF_ONE_HOST))}
        return hosts.pop() if len(hosts) == 1 and self.name() is None else None

    def hosts(self) -> set[str]:
        """Return the hosts that the configuration names, as hosts of the blob service."""
        found = {place_of("://".join(place[:2])).host for place in authorities_named(self._properties, SCHEMES)}
        found |= {self._full(key.split(".", 1)[1]) for key in self._all if key.startswith(_with_dots(_OF_ONE_HOST))}
        if own := self.get("account-host"):
            found.add(str(self._endpoint(own).host))
        if name := self.get("account-name"):
            found.add(self._full(name))
        if string := self.get("connection-string"):
            parts = _parts(string)
            if address := parts.get("blobendpoint"):
                found.add(str(endpoint_of(address, "the BlobEndpoint of adls.connection-string").host))
            if name := parts.get("accountname"):
                found.add(f"{name}.blob.{parts.get('endpointsuffix') or 'core.windows.net'}")
        return {blob_host(host) for host in found if host}

    def for_host(self, host: str) -> dict[str, str]:
        """``adls.sas-token.<host>`` and ``adls.connection-string.<host>``, by the host's or the account's name."""
        wanted = blob_host(self._full(host))
        return {
            kind: value
            for kind in _OF_ONE_HOST
            for key, value in self._all.items()
            if key.startswith(f"{kind}.") and blob_host(self._full(key[len(kind) + 1 :])) == wanted
        }

    def url(self, name: str, host: str | None, location: str) -> str:
        """Where the account's blobs answer."""
        scheme = self.get("blob-storage-scheme") or "https"
        own = self._endpoint(self.get("account-host"))
        if own and (host is None or host == str(own.host) or name == self._name_at(own)):
            return f"{scheme}://{own.host}{own.path}"
        if host is None:
            return f"{scheme}://{self._full(name)}"
        blob = blob_host(host)
        if not is_azure(blob) and blob not in self.hosts():
            raise LocationRefused(
                f"{location} is refused: {host} is no host of Azure, and nothing goes there unless the configuration "
                f"names it, by adls.account-host or adls.connection-string.{host}",
                location=location,
            )
        return f"{scheme}://{blob}"

    def _full(self, name: str) -> str:
        """Return the host of an account's name; a host is returned unchanged."""
        return name if "." in name else f"{name}{self.get('blob-storage-authority') or _AUTHORITY}"

    def _endpoint(self, string: str | None) -> Any:
        return endpoint_of(string, "adls.account-host") if string else None

    def _name_at(self, own: Any) -> str:
        """The account that answers at ``adls.account-host``."""
        return self.name() or str(own.path).rpartition("/")[2] or str(own.host).partition(".")[0]

    def shared(self, name: str, url: str, location: str) -> Account:
        """Return the account with credentials that are not limited to one host."""
        mine = self.name() in (None, name)
        if mine and (string := self.get("connection-string")):
            return _by_connection_string(string, name, self.origin("connection-string"))
        if self.is_anonymous():
            return Account(name, url, source="anonymous, by adls.anon")
        if token := self.get("token"):
            return Account(name, url, StaticToken(token), source=self.origin("token"))
        if (client := self.get("client-id")) and (secret := self.get("client-secret")):
            tenant = self.get("tenant-id")
            if not tenant:
                raise InvalidArgument("adls.client-id and adls.client-secret need adls.tenant-id")
            service = ClientSecretCredential(tenant, client, secret)
            return Account(name, url, service, source=self.origin("client-secret"))
        for kind in ("account-key", "sas-token", "credential") if mine else ():
            if secret := self.get(kind):
                found = _signature(secret) if "sig=" in secret else AzureNamedKeyCredential(name, secret)
                return Account(name, url, found, source=self.origin(kind))
        if not mine and any(self.get(kind) for kind in _OF_ONE_ACCOUNT):
            raise LocationRefused(
                f"the credentials are those of account '{self.name()}', and {location} is on '{name}': set "
                f"adls.sas-token.{name}.dfs.core.windows.net or adls.connection-string.{name}.dfs.core.windows.net",
                location=location,
            )
        options = {"managed_identity_client_id": client} if client else {}
        return Account(name, url, DefaultAzureCredential(**options), source="the SDK's default chain")


def _by_connection_string(string: str, name: str, source: str) -> Account:
    parts = _parts(string)
    if not parts:
        raise InvalidArgument(f"the connection string of account '{name}' holds no name=value")
    return Account(parts.get("accountname", name), "", connection_string=string, source=source)


def _parts(string: str) -> dict[str, str]:
    """A connection string's parts, by lower-case name."""
    pairs = (part.partition("=") for part in string.split(";") if "=" in part)
    return {key.strip().lower(): value for key, _, value in pairs}


def _signature(string: str) -> AzureSasCredential:
    return AzureSasCredential(string.lstrip("?"))


def _with_dots(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)
