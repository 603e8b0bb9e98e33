"""The properties of the catalog, with names as in Java and PyIceberg, and the settings parsed from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from icefield.errors import InvalidArgument
from icefield.toolkit import RetryLimits, whole_number

URI: Final = "uri"
WAREHOUSE: Final = "warehouse"
PREFIX: Final = "prefix"
SEPARATOR: Final = "namespace-separator"
SNAPSHOTS: Final = "snapshot-loading-mode"
PLANNING: Final = "scan-planning-mode"
TRUSTED_HOSTS: Final = "rest.trusted-hosts"
CLIENT: Final = "client"
SERVER: Final = "server"
ALL: Final = "all"
REFS: Final = "refs"
HEADER: Final = "header."
OWN: Final = "rest."

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PAGE: Final = 1_000
_ACCESS: Final = "X-Iceberg-Access-Delegation"


@dataclass(frozen=True)
class RestSettings:
    """The parsed properties of a catalog. The ``repr`` shows only the address: headers may hold secrets."""

    uri: str
    warehouse: str | None
    prefix: str
    separator: str
    page_size: int
    headers: Mapping[str, str]
    connect_timeout: float
    read_timeout: float
    connections: int
    certificates: str | None
    client_certificate: tuple[str, str] | None
    proxy: str | None
    trusted: frozenset[str]
    plain: frozenset[str]
    cached_tables: int
    snapshots: str
    planning_timeout: float
    limits: RetryLimits

    def __repr__(self) -> str:
        return f"Settings({self.uri!r})"

    def trusts(self, address: str) -> bool:
        """Whether credentials may go to an address: only to trusted hosts, and without TLS only where allowed."""
        host = host_of(address)
        return host in self.trusted and (urlsplit(address).scheme == "https" or host in self.plain)


def settings_of(name: str, properties: Mapping[str, str]) -> RestSettings:
    """Read the properties. Raises ``InvalidArgument`` for a value that cannot be used."""
    uri = checked_uri(name, properties.get(URI))
    headers = {key[len(HEADER) :]: value for key, value in properties.items() if key.startswith(HEADER)}
    if not any(key.lower() == _ACCESS.lower() for key in headers):
        headers[_ACCESS] = "vended-credentials"
    for key, value in headers.items():
        if not _HEADER_NAME.fullmatch(key) or not is_header_value(value):
            raise InvalidArgument(f"the property {HEADER}{key[:100]!r} is no header that can be sent")
    return RestSettings(
        uri=uri,
        warehouse=properties.get(WAREHOUSE),
        prefix=properties.get(PREFIX, "").strip("/"),
        separator=unquote(properties.get(SEPARATOR, "%1F")),
        page_size=whole_number(properties, "rest-page-size", _PAGE, 1),
        headers={key: value for key, value in headers.items() if value},
        connect_timeout=_seconds(properties, "rest.client.connection-timeout-ms", 10_000),
        read_timeout=_seconds(properties, "rest.client.socket-timeout-ms", 60_000),
        connections=whole_number(properties, "rest.client.max-connections", 32, 1),
        certificates=properties.get("ssl.cabundle"),
        client_certificate=_client_certificate(properties),
        proxy=properties.get("rest.client.proxy-uri"),
        trusted=_named(uri, properties)[0],
        plain=_named(uri, properties)[1],
        cached_tables=whole_number(properties, "rest-table-cache.max-entries", 100, 0),
        snapshots=_one_of(properties, SNAPSHOTS, ALL, REFS),
        planning_timeout=_seconds(properties, "rest.planning.timeout-ms", 300_000),
        limits=RetryLimits.of(properties, OWN),
    )


def is_header_value(value: str) -> bool:
    """Whether a string can be sent as a header: visible ASCII, spaces in between, and tabs."""
    return value == value.strip() and all(" " <= each <= "~" or each == "\t" for each in value)


def checked_uri(name: str, uri: str | None) -> str:
    """The address of the service, without a slash at the end. Raises ``InvalidArgument``."""
    try:
        parts = urlsplit(uri or "")
        _ = parts.port
    except ValueError as error:
        raise InvalidArgument(f"the uri of catalog '{name}' is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgument(
            f"catalog '{name}' of type 'rest' needs the property 'uri', such as https://host/api/catalog"
        )
    if parts.username or parts.password:
        raise InvalidArgument(
            f"the uri of catalog '{name}' holds a user or a password: give them by rest.auth.basic.username and "
            "rest.auth.basic.password"
        )
    if parts.query or parts.fragment:
        raise InvalidArgument(f"the uri of catalog '{name}' has a query or a fragment: write it without")
    return (uri or "").rstrip("/")


def host_of(uri: str) -> str:
    """The host and port of an address, in lower case; the port of the scheme is written out."""
    parts = urlsplit(uri)
    return f"{(parts.hostname or '').lower()}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _named(uri: str, properties: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the hosts that the user's properties name, which may get credentials, and the ones allowed plain HTTP."""
    named = [uri, *(properties.get(key, "") for key in ("oauth2-server-uri", "rest.auth.oauth2.server-uri"))]
    found, plain = set(), set()
    for address in filter(lambda each: "://" in each, named):
        found.add(host_of(address))
        if address.lower().startswith("http:"):
            plain.add(host_of(address))
    for entry in filter(None, (each.strip().lower() for each in properties.get(TRUSTED_HOSTS, "").split(","))):
        host = host_of(entry) if "://" in entry else entry if ":" in entry else f"{entry}:443"
        found.add(host)
        if entry.startswith("http:") or host.endswith(":80") or uri.lower().startswith("http:"):
            plain.add(host)
    return frozenset(found), frozenset(plain)


def check_planning(properties: Mapping[str, str]) -> None:
    """Raise ``InvalidArgument`` for an unknown mode of scan planning."""
    _one_of(properties, PLANNING, CLIENT, SERVER)


def _one_of(properties: Mapping[str, str], key: str, default: str, other: str) -> str:
    given = properties.get(key, default).lower()
    if given not in (default, other):
        raise InvalidArgument(f"{key}={properties[key]} is not supported: it is '{default}' or '{other}'")
    return given


def _client_certificate(properties: Mapping[str, str]) -> tuple[str, str] | None:
    certificate, key = properties.get("ssl.client.cert"), properties.get("ssl.client.key")
    if (certificate is None) != (key is None):
        raise InvalidArgument("ssl.client.cert and ssl.client.key belong together: one of them is not set")
    return None if certificate is None or key is None else (certificate, key)


def _seconds(properties: Mapping[str, str], name: str, default: int) -> float:
    return whole_number(properties, name, default, 1) / 1_000
