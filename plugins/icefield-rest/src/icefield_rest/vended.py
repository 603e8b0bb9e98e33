"""Credentials that the service vends for the files of one table, by prefix, and renews before they expire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from icefield.abc import FileAccess, TableName
from icefield.errors import AccessDenied, StorageError
from icefield.toolkit import SharedClients, decodable, is_true

from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.held import SharedProperties, held_for
from icefield_rest.places import Guarded, RefusedAccess, guarded, without_other_places
from icefield_rest.service import Service, may_say
from icefield_rest.settings import REFS

# The services' names for the expiry of credentials, in milliseconds since 1970.
_ENDS: Final = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
)
# The properties that state the endpoint for renewed credentials, and whether to renew them.
_KINDS: Final = {"s3.": "client.", "gcs.": "gcs.oauth2.", "adls.": "adls."}
_ENDPOINT, _ENABLED = "refresh-credentials-endpoint", "refresh-credentials-enabled"
_SERVICES: Final[SharedClients[Service]] = SharedClients()

Items = tuple[tuple[str, str], ...]


@decodable
class VendedCredential(msgspec.Struct):
    """Properties with credentials for the files below a prefix."""

    prefix: str
    config: dict[str, str | None]


@decodable
class _VendedCredentials(msgspec.Struct, rename="kebab"):
    """An answer with credentials, from the credentials endpoint or from loading a table."""

    storage_credentials: list[VendedCredential] | None = None
    config: dict[str, str | None] | None = None


_decoder = msgspec.json.Decoder(_VendedCredentials)


@dataclass(frozen=True)
class VendedAccess(FileAccess):
    """The credentials of a service for a prefix of a table's locations, with their renewal from any process."""

    prefix: str
    table: TableName
    catalog: str
    given: Items = field(repr=False)
    began: float
    ends: float | None
    path: str | None = None
    asked_by: Items = field(default=(), repr=False)
    """The user's properties, with the secrets that the service is asked by; empty where nothing is renewed."""

    @property
    def due(self) -> bool:
        return self._held().waits()

    def properties(self) -> Mapping[str, str]:
        return self._held().current(self._asked)

    def _held(self) -> SharedProperties:
        key = (self.prefix, self.table, self.catalog, self.asked_by or self.given)
        ends = self.ends if self.asked_by else None
        return held_for(key, dict(self.given), self.began, ends)

    def _asked(self) -> tuple[Mapping[str, str], float | None]:
        service = _SERVICES.get((self.catalog, self.asked_by), lambda: Service(self.catalog, dict(self.asked_by)))
        self._held().keep(service)
        what = f"renewing the credentials of {'.'.join(self.table)}"
        path, query = self.path, {}
        if path is None:
            path, query = service.table_path(self.table), {"snapshots": REFS}
        try:
            answer = service.connection.ask("GET", path, what, query=query)
        except ServiceRefusal as refused:
            raise error_of(refused, what) from refused
        except Uncertain as error:
            raise StorageError(f"{what}: {error}", retryable=True) from error
        found: _VendedCredentials = answer.decoded(_decoder, what)
        given = _fitting(found.storage_credentials or [], self.prefix)
        if given is None and path == self.path:
            raise AccessDenied(f"{what}: the service gives none for {self.prefix} any more")
        stated = {**may_say(found.config or {}), **(given or {})}
        return without_other_places(dict(self.given), stated if given is None else given), ends_of(stated)


def vended(
    service: Service,
    table: TableName,
    config: Mapping[str, str | None],
    credentials: Sequence[VendedCredential],
    location: str,
    now: float,
) -> tuple[dict[str, str], tuple[FileAccess, ...], float | None]:
    """Return properties for files at a table's location, accesses for files below prefixes, and the first expiry."""
    stated = may_say(config)
    best = _fitting(credentials, location)
    access = [
        _access(service, table, each.prefix, stated, may_say(each.config), now) for each in credentials if each.prefix
    ]
    if best is None and ends_of(stated) is not None:
        access.append(_access(service, table, location, {}, stated, now))
    whole = _guarded(service, {**stated, **(best or {})})
    # A scheme is the shortest prefix, so these refusals only apply to files without another access.
    access += [RefusedAccess(scheme, said) for scheme, said in whole.refused.items()]
    return whole.over(best or {}), tuple(access), ends_of({**stated, **(best or {})})


def ends_of(properties: Mapping[str, str]) -> float | None:
    """Return the first expiry of some credentials, in seconds since 1970; None if none states one."""
    ends = [
        int(value) / 1_000
        for key, value in properties.items()
        if key.startswith(_ENDS) and value.isascii() and value.isdigit() and len(value) < 16
    ]
    return min(ends, default=None)


def _access(
    service: Service, table: TableName, prefix: str, stated: Mapping[str, str], given: Mapping[str, str], now: float
) -> FileAccess:
    ends = ends_of(given)
    own = _guarded(service, {**stated, **given})
    if said := own.refuses(prefix):
        return RefusedAccess(prefix, said)
    settings = {**service.properties, **stated, **given}
    kind = next((other for own, other in _KINDS.items() if any(key.startswith(own) for key in given)), "client.")
    path = settings.get(kind + _ENDPOINT)
    if path is None and service.has(Endpoint.CREDENTIALS):
        path = service.table_path(table, "credentials")
    renews = ends is not None and is_true(settings, kind + _ENABLED, True)
    return VendedAccess(
        prefix,
        table,
        service.name,
        tuple(sorted(own.over(given).items())),
        now,
        ends,
        path,
        tuple(sorted(service.given.items())) if renews else (),
    )


def _guarded(service: Service, stated: Mapping[str, str]) -> Guarded:
    """Decide on the user's secrets for the properties that the service states, in general and for a table."""
    served = {**service.given_by_service, **stated}
    return guarded(service.name, service.given, served, service.settings.trusts)


def _fitting(credentials: Sequence[VendedCredential], location: str) -> dict[str, str] | None:
    """The properties of the longest prefix of a location."""
    fitting = [each for each in credentials if location.startswith(each.prefix)]
    best = max(fitting, key=lambda each: len(each.prefix), default=None)
    return None if best is None else may_say(best.config)
