"""Which account a location belongs to, where it answers, and with which credentials it is asked.

The host of a location comes from a table, and a table is not trusted. Credentials go to Azure's own hosts and to the
hosts that the properties name; and those of one account (its key, its shared access signature) to that account only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.identity.aio import ClientSecretCredential, DefaultAzureCredential
from icefield.errors import InvalidArgument

_CLOUDS: Final = (
    ".core.windows.net",
    ".core.usgovcloudapi.net",
    ".core.chinacloudapi.cn",
    ".storage.azure.net",
    ".fabric.microsoft.com",
)
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
    """An account: its name, its address, and what it is asked with. Its ``repr`` shows no credential.

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
    """A bearer token that was given, and that nobody here can renew."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """The token, whatever is asked for."""
        return AccessToken(self._token, int(time.time()) + _HOUR)

    async def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> StaticToken:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def account_of(properties: Mapping[str, str], host: str | None) -> Account:
    """The account of a location's host; without a host, the one that the properties name.

    Raises ``InvalidArgument`` when none is named, when the host is not one that credentials may go to, and when the
    credentials are those of another account.
    """
    given = _Given(properties)
    host = host or given.only_host()
    name = host.partition(".")[0] if host else given.name()
    if name is None:
        raise InvalidArgument(
            "the location names no account: write abfss://container@account.dfs.core.windows.net/path, or set "
            "adls.account-name"
        )
    own = given.for_host(host or name)
    if "connection-string" in own:
        return _by_connection_string(own["connection-string"], name, "a connection string of its own")
    url = given.url(name, host)
    if "sas-token" in own:
        return Account(name, url, _signature(own["sas-token"]), source="a shared access signature of its own")
    return given.shared(name, url)


class _Given:
    """The properties ``adls.*``; where they hold no credential, the environment's."""

    def __init__(self, properties: Mapping[str, str]) -> None:
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
        """Where a property comes from, in words."""
        return f"adls.{name}" if name in self._all else f"{_ENVIRONMENT[name]} of the environment"

    def name(self) -> str | None:
        """The account that the credentials of one account are of; None when that is not said."""
        text = self.get("connection-string")
        return self.get("account-name") or (_parts(text).get("accountname") if text else None)

    def only_host(self) -> str | None:
        """The one host that has a property of its own, when no account is named otherwise."""
        hosts = {key.split(".", 1)[1] for key in self._all if key.startswith(("sas-token.", "connection-string."))}
        return hosts.pop() if len(hosts) == 1 and self.name() is None else None

    def for_host(self, host: str) -> dict[str, str]:
        """``adls.sas-token.<host>`` and ``adls.connection-string.<host>``, by the host's or the account's name."""
        wanted = {_plain(host), host.partition(".")[0]}
        found = {}
        for kind in ("sas-token", "connection-string"):
            for key, value in self._all.items():
                if key.startswith(f"{kind}.") and _plain(key[len(kind) + 1 :]) in wanted:
                    found[kind] = value
        return found

    def url(self, name: str, host: str | None) -> str:
        """Where the account's blobs answer."""
        scheme = self.get("blob-storage-scheme") or "https"
        own = self.get("account-host")
        if own and (host is None or self.name() in (None, name) or host == own):
            return f"{scheme}://{own}"
        authority = self.get("blob-storage-authority")
        if host is None:
            return f"{scheme}://{name}{authority or '.blob.core.windows.net'}"
        blob = host.replace(".dfs.", ".blob.", 1)
        if not blob.endswith(_CLOUDS) and not (authority and blob == name + authority):
            raise InvalidArgument(
                f"{host} is no host of Azure, and credentials do not go there: name it with adls.account-host or "
                f"adls.connection-string.{host}"
            )
        return f"{scheme}://{blob}"

    def shared(self, name: str, url: str) -> Account:
        """The credentials that are not of one host."""
        mine = self.name() in (None, name)
        if mine and (text := self.get("connection-string")):
            return _by_connection_string(text, name, self.origin("connection-string"))
        if (self.get("anon") or "").lower() == "true":
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
            raise InvalidArgument(
                f"the credentials are those of account '{self.name()}', and the location lies on '{name}': set "
                f"adls.sas-token.{name}.dfs.core.windows.net or adls.connection-string.{name}.dfs.core.windows.net"
            )
        options = {"managed_identity_client_id": client} if client else {}
        return Account(name, url, DefaultAzureCredential(**options), source="the SDK's default chain")


def _by_connection_string(text: str, name: str, source: str) -> Account:
    parts = _parts(text)
    if not parts:
        raise InvalidArgument(f"the connection string of account '{name}' holds no name=value")
    return Account(parts.get("accountname", name), "", connection_string=text, source=source)


def _parts(text: str) -> dict[str, str]:
    """A connection string's parts, by lower-case name."""
    pairs = (part.partition("=") for part in text.split(";") if "=" in part)
    return {key.strip().lower(): value for key, _, value in pairs}


def _signature(text: str) -> AzureSasCredential:
    return AzureSasCredential(text.lstrip("?"))


def _plain(host: str) -> str:
    return host.lower().replace(".blob.", ".dfs.", 1)
