"""The properties of the strategy, under the names of Iceberg's Java lock manager and of PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icefield.errors import InvalidArgument
from icefield.toolkit import whole_number

_MAX_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LockOptions:
    """How the lock is taken and held; times in seconds.

    ``lease`` is the time without a heartbeat after which another writer takes over; ``heartbeat`` is the interval of
    heartbeats. ``foreign_writers`` allows writers of other engines to share the table on a store without a fence.
    """

    table: str
    acquire_interval: float
    acquire_timeout: float
    heartbeat: float
    lease: float
    foreign_writers: bool

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LockOptions:
        """Read the properties ``lock.*``. Raises ``InvalidArgument``."""
        table = properties.get("lock.table")
        if not table:
            raise InvalidArgument(
                "the commit strategy 'dynamodb-lock' needs the property 'lock.table', the name of a DynamoDB table "
                "(it is made when it does not exist)"
            )
        heartbeat = _seconds(properties, "lock.heartbeat-interval-ms", 3_000)
        lease = _seconds(properties, "lock.heartbeat-timeout-ms", 15_000)
        if heartbeat >= lease:
            raise InvalidArgument(
                "lock.heartbeat-interval-ms must be less than lock.heartbeat-timeout-ms, or every lease runs out"
            )
        return cls(
            table,
            _seconds(properties, "lock.acquire-interval-ms", 5_000),
            _seconds(properties, "lock.acquire-timeout-ms", 180_000),
            heartbeat,
            lease,
            properties.get("lock.foreign-writers", "false").lower() == "true",
        )


@dataclass(frozen=True)
class ClientOptions:
    """How to reach DynamoDB. The SDK's own chain supplies fields that are None. ``repr`` shows no credentials."""

    region: str | None
    endpoint: str | None
    profile: str | None
    access_key: str | None
    secret_key: str | None
    token: str | None
    connect_seconds: int
    seconds: int
    retries: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ClientOptions:
        """Read the properties ``dynamodb.*``, else ``client.*``, those for every AWS client.

        Raises ``InvalidArgument``.
        """

        def first(*names: str) -> str | None:
            return next((properties[name] for name in names if properties.get(name)), None)

        return cls(
            first("dynamodb.region", "client.region"),
            first("dynamodb.endpoint"),
            first("dynamodb.profile-name", "client.profile-name"),
            first("dynamodb.access-key-id", "client.access-key-id"),
            first("dynamodb.secret-access-key", "client.secret-access-key"),
            first("dynamodb.session-token", "client.session-token"),
            whole_number(properties, "dynamodb.connect-timeout", 5, 1),
            whole_number(properties, "dynamodb.request-timeout", 10, 1),
            whole_number(properties, "dynamodb.max-retries", 3, 0),
        )

    def __repr__(self) -> str:
        return f"ClientOptions(region={self.region!r}, endpoint={self.endpoint!r}, profile={self.profile!r}, …)"


def _seconds(properties: Mapping[str, str], name: str, default: int) -> float:
    string = properties.get(name, str(default))
    if not string.isdigit() or not 0 < int(string) <= _MAX_MS:
        raise InvalidArgument(f"{name} must be a number of milliseconds from 1 to {_MAX_MS}, not '{string}'")
    return int(string) / 1000
