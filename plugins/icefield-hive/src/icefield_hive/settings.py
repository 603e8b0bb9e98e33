"""The properties of the catalog: names, defaults, and the settings made from them."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import is_true, whole_number

_DEFAULT_PORT: Final = 9083


@dataclass(frozen=True)
class LockSettings:
    """The waiting times of lock requests, in seconds; the properties have the names of Iceberg's Java library."""

    acquire: float
    """How long to wait for others."""
    check_least: float
    check_most: float
    create: float
    """How long to retry a failed request for a lock."""
    create_least: float
    create_most: float
    heartbeat: float


@dataclass(frozen=True, repr=False)
class HiveSettings:
    """The settings of a catalog. ``repr`` shows no values: some metastores take a secret for a group."""

    servers: tuple[tuple[str, int], ...]
    user: str
    groups: tuple[str, ...] | None
    """None: the client does not send its user to the metastore."""
    connect_seconds: float
    seconds: float
    lock: LockSettings
    hive2_compatible: bool
    hive_engine: bool
    property_size: int


def settings_of(catalog: str, properties: Mapping[str, str]) -> HiveSettings:
    """Read the properties. Raises ``InvalidArgument``, and ``UnsupportedFeature`` for Kerberos."""
    if "commit" in properties:
        raise InvalidArgument(f"catalog '{catalog}' of type 'hive' commits by itself: remove the property 'commit'")
    if is_true(properties, "hive.kerberos-authentication"):
        raise UnsupportedFeature(
            f"catalog '{catalog}': 'hive.kerberos-authentication' cannot be had, since icefield-hive does not speak "
            "SASL; use a metastore or a gateway that takes plain Thrift"
        )
    user, groups = _caller(properties.get("ugi"))
    return HiveSettings(
        servers=_servers(catalog, properties.get("uri")),
        user=user,
        groups=groups,
        connect_seconds=whole_number(properties, "hive.metastore.client.connection.timeout", 10, 1),
        seconds=whole_number(properties, "hive.metastore.client.socket.timeout", 120, 1),
        lock=LockSettings(
            acquire=_seconds(properties, "iceberg.hive.lock-timeout-ms", 180_000, 0),
            check_least=_seconds(properties, "iceberg.hive.lock-check-min-wait-ms", 50, 1),
            check_most=_seconds(properties, "iceberg.hive.lock-check-max-wait-ms", 5_000, 1),
            create=_seconds(properties, "iceberg.hive.lock-creation-timeout-ms", 180_000, 0),
            create_least=_seconds(properties, "iceberg.hive.lock-creation-min-wait-ms", 50, 1),
            create_most=_seconds(properties, "iceberg.hive.lock-creation-max-wait-ms", 5_000, 1),
            heartbeat=_seconds(properties, "iceberg.hive.lock-heartbeat-interval-ms", 60_000, 10),
        ),
        hive2_compatible=is_true(properties, "hive.hive2-compatible"),
        hive_engine=is_true(properties, "iceberg.engine.hive.enabled"),
        property_size=whole_number(properties, "iceberg.hive.table-property-max-size", 32_672, 0),
    )


def _seconds(properties: Mapping[str, str], name: str, default: int, least: int) -> float:
    return whole_number(properties, name, default, least) / 1000


def _servers(catalog: str, uris: str | None) -> tuple[tuple[str, int], ...]:
    if not uris:
        raise InvalidArgument(
            f"catalog '{catalog}' of type 'hive' needs the property 'uri', such as thrift://host:9083; several "
            "metastores are separated by commas"
        )
    return tuple(_server(catalog, uri.strip()) for uri in uris.split(","))


def _server(catalog: str, uri: str) -> tuple[str, int]:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme != "thrift" or not host or parts.path.strip("/") or parts.username is not None:
        # The value may be a URI with a password, so the message shows no part of it.
        raise InvalidArgument(
            f"catalog '{catalog}': 'uri' does not name a metastore: write thrift://host:9083, several separated by "
            "commas"
        )
    return host, port or _DEFAULT_PORT


def _caller(ugi: str | None) -> tuple[str, tuple[str, ...] | None]:
    """The user and groups to send to the metastore: ``user:group:group``."""
    if ugi:
        user, *groups = ugi.split(":")
        return user, tuple(groups)
    try:
        return getpass.getuser(), None
    except (KeyError, OSError):  # a container without a name for its user
        return str(os.getuid()), None
