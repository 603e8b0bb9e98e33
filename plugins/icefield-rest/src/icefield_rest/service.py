"""The service: its configuration merged with the user's, its endpoints and its paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec
from icefield import Plugins
from icefield.abc import NamespaceName, TableName
from icefield.errors import IcefieldError, InvalidArgument, NotSupportedByCatalog, StorageError
from icefield.toolkit import decodable, is_true

from icefield_rest.auth.chosen import authenticator_of
from icefield_rest.connection import Connection, client_of, joined
from icefield_rest.endpoints import Endpoint, offered
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.hearing import HEARERS
from icefield_rest.reading import read
from icefield_rest.reporting import ENABLED, Reporter
from icefield_rest.settings import (
    SEPARATOR,
    SNAPSHOTS,
    TRUSTED_HOSTS,
    URI,
    WAREHOUSE,
    RestSettings,
    check_planning,
    checked_uri,
    host_of,
    settings_of,
)

_LIFETIME: Final = "idempotency-key-lifetime"
# Properties that a service must not set: they decide who gets which secret, and which files may be opened.
_USERS_OWN: Final = (
    "location.",
    "plugins.",
    "rest.auth.",
    "rest.trusted-hosts",
    "oauth2-server-uri",
    "ssl.",
    "rest.client.",
    # Hadoop's settings decide about its tickets and tokens, so a service must not set them.
    "hadoop.",
    "hdfs.",
    "webhdfs.",
    # Keys are sent to the key service that these name, with its credentials.
    "encryption.",
    "kms.",
    "azure.keyvault.",
)
_USERS_NAMES: Final = frozenset(
    {
        "type",
        "token",
        "credential",
        "scope",
        "io-impl",
        "catalog-impl",
        "py-io-impl",
        SNAPSHOTS,
        WAREHOUSE,  # credentials may go to a location that it names
        # These set the proxy of requests, and choose among the secrets of this machine.
        "s3.proxy-uri",
        "s3.profile-name",
        "client.profile-name",
        "gcs.session-kwargs",
    }
)
_IN_A_PATH: Final = "/%:@!$&'()*+,;=-._~"
_MOST_OF_A_TOKEN: Final = 1024 * 1024


@decodable
class _Config(msgspec.Struct):
    defaults: dict[str, str | None] | None = None
    overrides: dict[str, str | None] | None = None
    endpoints: list[str] | None = None
    lifetime: Any = msgspec.field(default=None, name=_LIFETIME)


_decoder = msgspec.json.Decoder(_Config)


class Service:
    """A connection to a service, and the configuration that the service returned at the first request."""

    def __init__(self, name: str, properties: Mapping[str, str], plugins: Plugins | None = None) -> None:
        self.name = name
        self.given = dict(properties)
        """The user's properties with their secrets, to rebuild the service in another process."""
        given = settings_of(name, properties)
        check_planning(properties)
        authenticator = authenticator_of(
            name, properties, lambda *form: _post(given, *form), plugins or Plugins.installed()
        )
        self.connection = Connection(name, given, authenticator)
        try:
            config = self._config(given)
            self.defaults = _theirs(config.defaults or {})
            self.overrides = _theirs(config.overrides or {})
            self.properties: dict[str, str] = {**self.defaults, **properties, **self.overrides}
            self.settings = self._settled(given)
        except BaseException:
            self.connection.close()
            raise
        self.connection.settings = self.settings
        self.connection.repeats_changes = config.lifetime is not None
        self.endpoints = offered(config.endpoints, views=is_true(self.properties, "view-endpoints-supported"))
        reports = self.has(Endpoint.REPORT_METRICS) and is_true(self.properties, ENABLED, True)
        self._reporter = Reporter(self.report) if reports else None

    def __repr__(self) -> str:
        return f"Service({self.settings.uri!r})"

    @property
    def given_by_service(self) -> dict[str, str]:
        """The service's properties in effect: its defaults that the user does not set, and its overrides."""
        return {**{key: value for key, value in self.defaults.items() if key not in self.given}, **self.overrides}

    def has(self, endpoint: Endpoint) -> bool:
        """Whether the service offers an endpoint."""
        return endpoint in self.endpoints

    def needs(self, endpoint: Endpoint, what: str) -> None:
        """Raise ``NotSupportedByCatalog`` where the service does not offer an endpoint."""
        if endpoint not in self.endpoints:
            raise NotSupportedByCatalog(f"{what}: the service of catalog '{self.name}' does not offer '{endpoint}'")

    def path(self, *parts: str) -> str:
        """A path below the prefix, which the service states in the form to send."""
        prefix = quote(self.settings.prefix, safe=_IN_A_PATH)
        return "/".join(("v1", *([prefix] if prefix else []), *parts))

    def namespace_path(self, namespace: NamespaceName, *more: str) -> str:
        """Return the path of a namespace, or of a resource in it."""
        return self.path("namespaces", joined(self.joined_levels(namespace)), *more)

    def joined_levels(self, namespace: NamespaceName) -> str:
        """Join the levels of a namespace. Raises ``InvalidArgument`` if a level contains the separator."""
        separator = self.settings.separator
        if any(separator in level for level in namespace):
            raise InvalidArgument(
                f"a level of namespace {'.'.join(namespace)!r} holds {separator!r}, by which the service of catalog "
                f"'{self.name}' tells levels apart, so that it would be another namespace there"
            )
        return separator.join(namespace)

    def table_path(self, table: TableName, *more: str) -> str:
        """Return the path of a table, or of a resource below it."""
        return self.namespace_path(table[:-1], "tables", joined(table[-1]), *more)

    def view_path(self, view: TableName) -> str:
        """The path of a view."""
        return self.namespace_path(view[:-1], "views", joined(view[-1]))

    def report(self, table: TableName, body: Mapping[str, Any]) -> None:
        """Send a report of a scan or a commit. Raises if the report did not arrive."""
        path = self.table_path(table, "metrics")
        self.connection.ask("POST", path, f"reporting of {'.'.join(table)}", body=body, repeatable=False)

    def follow(self, table_uuid: str) -> None:
        """Report scans and commits of a table, if the service takes reports."""
        if self._reporter is not None:
            HEARERS.follow(self.name, table_uuid, self._reporter)

    def close(self) -> None:
        """Release connections."""
        if self._reporter is not None:
            self._reporter.close()
        self.connection.close()

    def _config(self, given: RestSettings) -> _Config:
        what = f"opening catalog '{self.name}'"
        query = {"warehouse": given.warehouse} if given.warehouse else {}
        try:
            answer = self.connection.ask("GET", "v1/config", what, query=query)
        except (ServiceRefusal, Uncertain) as error:
            raise self._closed(error, what, given) from error
        found: _Config = answer.decoded(_decoder, what)
        return found

    def _closed(self, error: ServiceRefusal | Uncertain, what: str, given: RestSettings) -> IcefieldError:
        if isinstance(error, ServiceRefusal) and error.status == 404 and error.modelled and given.warehouse:
            return InvalidArgument(f"{what}: the service has no warehouse '{given.warehouse}': {error.said}")
        if isinstance(error, ServiceRefusal):
            return error_of(error, what)
        return StorageError(f"{what}: {error}", retryable=True)

    def _settled(self, given: RestSettings) -> RestSettings:
        """Merge the service's settings into the user's, except for properties that only the user may set."""
        stated = {key: value for key, value in self.properties.items() if key != TRUSTED_HOSTS}
        address = checked_uri(self.name, stated.get(URI, given.uri))
        if not given.trusts(address):
            raise InvalidArgument(
                f"the service of catalog '{self.name}' wants to be asked at {host_of(address)}, which the properties "
                "of the catalog do not name, or by http in place of https: set 'uri' to it, or add its host to "
                "rest.trusted-hosts"
            )
        if not stated.get(SEPARATOR, "%1F"):
            raise StorageError(f"the service of catalog '{self.name}' states an empty namespace-separator")
        found = settings_of(self.name, stated)
        return RestSettings(**{**vars(found), "trusted": given.trusted, "plain": given.plain})


def _theirs(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Return the properties that a service may set."""
    return {
        key: value
        for key, value in properties.items()
        if value is not None and not key.startswith(_USERS_OWN) and key not in _USERS_NAMES
    }


def may_say(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Return the properties that a service may set for one table: all except properties that only the user may set."""
    return _theirs(properties)


def _post(
    settings: RestSettings, address: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """Send a form to the token service, which is at a host that the user's properties name."""
    if not settings.trusts(address):
        raise InvalidArgument(f"the token service {host_of(address)} is not named by the properties of the catalog")
    with client_of(settings) as client:
        try:
            with client.stream("POST", address, data=dict(form), headers=dict(headers)) as response:
                return response.status_code, read(response, _MOST_OF_A_TOKEN, settings.read_timeout)
        except httpx.HTTPError as error:
            raise StorageError(
                f"the token service at {host_of(address)} gives no answer: {type(error).__name__}", retryable=True
            ) from error
